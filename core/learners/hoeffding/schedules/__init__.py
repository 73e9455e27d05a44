"""Schedules: when a leaf is due for its next split attempt."""
