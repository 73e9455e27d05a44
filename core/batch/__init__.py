"""Batch learners: trees built again from all labelled instances, as baselines for the online learners."""
