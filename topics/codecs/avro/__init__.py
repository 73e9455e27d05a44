"""Avro: one record is one value of a writer schema, which a schema registry has (docs/records.md)."""
