"""Drift detectors: alarms on the errors of a model."""
