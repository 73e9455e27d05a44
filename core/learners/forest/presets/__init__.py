"""Forests by name: each sets the attributes, the weights and the replacement of its members."""
