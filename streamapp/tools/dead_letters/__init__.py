"""Dead letters for operators: found, read, and skipped."""
