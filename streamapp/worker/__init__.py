"""The worker: its process and all that happens in it from a fetch to a commit."""
