"""Columnar decoding: JSON records of a known shape go from bytes to columns in one compiled call."""
