"""Watching: the state of models, partitions and dead letters that pages show."""
