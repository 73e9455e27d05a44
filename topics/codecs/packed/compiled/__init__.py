"""Packed records by kernels: fixed layouts are read straight into columns."""
