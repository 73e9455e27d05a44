"""Drift detectors: alarms raised by the errors of a model."""
