"""Offline state of a partition: read from Kafka and rebuilt outside the group; nothing is written."""
