"""Instances: plain runs in a few calls, and every other record on its own way."""
