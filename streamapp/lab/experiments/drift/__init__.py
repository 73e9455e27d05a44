"""Drift detectors on streams whose changes are known."""
