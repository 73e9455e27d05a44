"""Confidence bounds: how far an observed gap between two merits may be from the true one."""
