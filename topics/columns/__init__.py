"""Columns: records, keys, headers and values of a run as arrays, without an object for each record."""
