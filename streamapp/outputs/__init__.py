"""The way out: effects to records, records to the broker."""
