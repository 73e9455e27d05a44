"""Experiments of Sun and others on candidates for splits (IMAC)."""
