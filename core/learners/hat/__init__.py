"""Adaptive trees: detectors at every node, and alternate trees beside nodes, in compiled code."""
