"""Watching: the state of models, partitions and dead letters, for pages."""
