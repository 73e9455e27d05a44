"""Leaf models: how a leaf predicts."""
