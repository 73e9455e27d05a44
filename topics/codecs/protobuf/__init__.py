"""Protobuf: one record is one message of a schema, which a schema registry has (docs/schemas.md)."""

from topics.codecs.protobuf.protobuf_reader import ProtobufReader

__all__ = ["ProtobufReader"]
