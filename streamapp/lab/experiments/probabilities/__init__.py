"""Experiments on probabilities: calibration and conformal sets."""
