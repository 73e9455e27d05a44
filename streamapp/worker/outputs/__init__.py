"""Outputs: effects to records, records to the broker."""
