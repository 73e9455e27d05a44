"""UFODT: an online decision tree that buys the features of a record."""
