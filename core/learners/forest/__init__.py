"""Forests: ensembles of Hoeffding trees that learn resampled records, in compiled code."""
