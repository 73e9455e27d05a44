"""Snapshots of tasks: cut at a commit, written behind it in slices, complete with a record in the journal."""
