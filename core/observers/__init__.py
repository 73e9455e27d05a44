"""Attribute observers: what a leaf remembers of its records, and the tests it can propose from that."""
