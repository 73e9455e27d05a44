"""Operators' tools: a look into an installation, dead letters, model files, migration."""
