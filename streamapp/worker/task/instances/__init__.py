"""Instances: family runs in a few calls, and all other records in the general way."""
