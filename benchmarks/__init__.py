"""Benchmarks of streamgrove and its peers: `python -m benchmarks.core`, `python -m benchmarks.pipeline`."""
