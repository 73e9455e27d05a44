"""Alternatives that a team would run: bare echoes and learning loops, processes that read until SIGTERM."""
