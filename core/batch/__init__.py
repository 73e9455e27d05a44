"""Batch learners: trees made anew from all labelled instances, as baselines of the online ones."""
