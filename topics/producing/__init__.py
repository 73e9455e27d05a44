"""Producing: record batches and the requests of a transaction, over aiokafka's connections."""
