"""Measurements of streamgrove beside its peers: `python -m benchmarks.core`, `python -m benchmarks.pipeline`."""
