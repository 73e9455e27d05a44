"""Schemas: the released Avro schemas of outputs, one file for each version (docs/schemas.md)."""
