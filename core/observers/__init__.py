"""Attribute observers: the statistics of a leaf, and the tests it can propose from them."""
