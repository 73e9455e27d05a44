"""BOCT: trees whose splits are bought with credible bounds, in compiled code."""
