"""Faults at random against a running installation, and a check that nothing was lost, doubled or confused."""
