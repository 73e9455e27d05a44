"""Attribute observers: the statistics of a leaf, and the split tests that follow from them."""
