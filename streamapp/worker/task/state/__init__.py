"""State of a task as units: cut, written, assembled again."""
