"""Schema readers: the reader of the values of a registered schema, made once for each schema."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final, Protocol

from topics.codecs.batch import Batch
from topics.codecs.by_schema.refusing_reader import RefusingReader
from topics.codecs.json_schema import check_of
from topics.codecs.limits import Limits
from topics.codecs.protobuf import ProtobufReader
from topics.columns.records import Controls, FeatureValues, Instances, Labels
from topics.errors import SchemaError
from topics.registry.registered_schema import RegisteredSchema

if TYPE_CHECKING:
    from topics.codecs.avro.reader import AvroReader

MOST_READERS: Final = 4096


class SchemaReader(Protocol):
    """Reads values by a schema; the values of a batch have no frame."""

    def read_instances(self, batch: Batch, limits: Limits) -> Instances:
        """Return the instances of the batch; bad records are in its `malformed`."""

    def read_labels(self, batch: Batch, limits: Limits) -> Labels:
        """Return the labels of the batch."""

    def read_feature_values(self, batch: Batch, limits: Limits) -> FeatureValues:
        """Return the feature values of the batch."""

    def read_controls(self, batch: Batch, limits: Limits) -> Controls:
        """Return the commands of the batch."""


@lru_cache(MOST_READERS)
def reader_of(schema: RegisteredSchema) -> SchemaReader:
    """Return the reader of a schema of Avro or Protobuf; values by a JSON schema are read as JSON.

    It may take some seconds. A schema that is not valid leads to a reader that refuses every record. Raise
    RegistryError if a package for its kind is missing.
    """
    from topics.codecs.avro.avro_schema import AvroSchema  # kernels: loaded only when they are needed
    from topics.codecs.avro.reader import AvroReader

    try:
        if schema.kind == "PROTOBUF":
            return ProtobufReader(schema)
        return AvroReader(AvroSchema.of(schema.text, [reference.text for reference in schema.references]))
    except SchemaError as error:
        return RefusingReader(f"schema {schema.id}: {error}")


def avro_reader_of(schema: RegisteredSchema) -> AvroReader | None:
    """Return the reader of a schema; None if the schema is of another kind, or not valid."""
    from topics.codecs.avro.reader import AvroReader

    reader = reader_of(schema) if schema.kind == "AVRO" else None
    return reader if isinstance(reader, AvroReader) else None


def prepare(schema: RegisteredSchema) -> None:
    """Make the reader of a schema ahead of its records. Raise RegistryError as `reader_of` does."""
    if schema.kind == "JSON":
        check_of(schema)
    else:
        reader_of(schema)
