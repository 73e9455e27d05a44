"""Kafka clients: administration, producers, consumers without a group, access and partitioning."""
