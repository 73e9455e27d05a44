"""Leaf models: what a leaf predicts."""
