"""Fetching: record batches as brokers send them, inflated within bounds, and a consumer that reads them."""
