"""Tree in words of a buffer: layout, the way of a record, and the statistics of nodes."""
