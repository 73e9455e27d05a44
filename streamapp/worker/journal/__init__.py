"""The journal: per commit and partition, the processed records and their order."""
