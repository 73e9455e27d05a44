"""Restoring the task of a partition from offsets, snapshots and journal in Kafka."""
