"""Conformal sets of answers."""
