"""Hoeffding trees by name: each sets a criterion, a bound, a schedule and a leaf model."""
