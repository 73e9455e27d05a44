"""Measurements beside peers: `python -m benchmarks.core`, `python -m benchmarks.pipeline`."""
