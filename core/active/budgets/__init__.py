"""Budgets: how many labels a query strategy may request."""
