"""Files: a model with the data of its task, as a unit of a snapshot and as a file."""
