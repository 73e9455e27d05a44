"""UFFT: a forest with a tree for each pair of classes, in compiled code."""
