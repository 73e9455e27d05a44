"""Active learning: whether the label of a record is requested, and how requests end."""
