"""A tree in words: where things lie, the way of a record through it, and what its nodes count."""
