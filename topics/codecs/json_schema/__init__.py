"""JSON Schema: bodies of JSON are checked by the schema that a registry has; the JSON codec reads them."""

from topics.codecs.json_schema.schema_check import SchemaCheck, check_of

__all__ = ["SchemaCheck", "check_of"]
