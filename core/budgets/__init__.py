"""Budgets: whether a label may be asked for at all."""
