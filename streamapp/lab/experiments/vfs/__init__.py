"""Experiments of Sun and co-authors on candidates for splits (IMAC)."""
