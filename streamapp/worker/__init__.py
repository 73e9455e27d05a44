"""Worker process, the parent of several, and an operator's requests to them."""
