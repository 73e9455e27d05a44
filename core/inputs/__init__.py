"""Input detectors: compare the records that a model answers with earlier ones; they need no labels."""
