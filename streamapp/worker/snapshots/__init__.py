"""Snapshots of tasks: cut at a commit, written after it in slices, complete with a record in the journal."""
