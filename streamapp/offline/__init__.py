"""The state of a partition for those who do not run it: read from Kafka and rebuilt, nothing written."""
