"""Active learning: whether the label of a record is asked for, and what becomes of the request."""
