"""Programs: writer schemas as instructions that a kernel runs over the records of a run."""
