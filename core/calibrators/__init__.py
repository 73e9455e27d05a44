"""Calibrators: from the learner's class shares to probabilities, one file each."""
