"""Frames: how a record names the schema of its value, and the value inside."""
