"""Operators' tools: inspection of an installation, dead letters, model files, migration."""
