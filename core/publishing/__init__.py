"""Calibrated probabilities and conformal sets of answers."""
