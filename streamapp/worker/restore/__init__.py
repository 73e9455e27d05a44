"""Restoring the task of a partition from what Kafka holds."""
