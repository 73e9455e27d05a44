"""JSON by kernels: records of a known shape are read straight into columns."""
