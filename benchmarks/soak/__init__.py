"""Soak: a worker under a long load, and what grows in it."""
