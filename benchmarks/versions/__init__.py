"""Versions: workers of the last release and of this tree in one group."""
