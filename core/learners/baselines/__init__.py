"""Learners without a tree: the yardsticks that every tree must beat."""
