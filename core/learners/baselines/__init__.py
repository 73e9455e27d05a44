"""Learners without a tree: the baselines that every tree must beat."""
