"""Experiments of Collet and Pietquin on credible bounds (BOCT)."""
