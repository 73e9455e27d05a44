"""Model: its buffer of words, snapshot, file and predictions, and the checks of foreign models."""
