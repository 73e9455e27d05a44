"""Processing: runs through the tasks of a worker, commits and transactions."""
