"""Avro: one record is one value of a writer schema, which a schema registry has (docs/records.md)."""

from topics.codecs.avro.avro_schema import AvroSchema
from topics.codecs.avro.reader import AvroReader

__all__ = ["AvroReader", "AvroSchema"]
