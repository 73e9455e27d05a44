"""The journal: per commit and partition, what was processed and in which order."""
