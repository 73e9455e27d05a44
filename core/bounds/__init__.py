"""Confidence bounds: the possible difference between an observed and the true gap of two merits."""
