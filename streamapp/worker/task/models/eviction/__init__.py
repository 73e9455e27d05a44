"""Eviction: models in memory up to a limit, and the other models in a swap file."""
