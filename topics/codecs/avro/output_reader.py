"""Output reader: records as their decoders take them, if a schema registry may be in use."""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from topics.codecs.frames.schema_ids import distinct_schema_ids
from topics.codecs.frames.wire_format import PREFIX_BYTES, id_before_body
from topics.columns.records import RawRecords
from topics.errors import SchemaError, UnknownSchemaError
from topics.registry.absent_ids import AbsentIds, not_registered
from topics.registry.registered_schema import RegisteredSchema, SchemaId

if TYPE_CHECKING:
    from topics.codecs.avro.output_values import ValueReader

logger = logging.getLogger(__name__)

MOST_READERS: Final = 1024


class OutputReader:
    """Turns outputs in Avro to JSON; values in other formats stay as they are.

    It may be used in one thread at a time. Kernels are loaded with the first value in Avro.
    """

    def __init__(self, schema_of: Callable[[SchemaId], RegisteredSchema] | None) -> None:
        """`schema_of`: returns the schema of an id, or raises RegistryError; None: there is no registry."""
        self._schema_of = schema_of
        self._readers: OrderedDict[SchemaId, ValueReader | None] = OrderedDict()  # the last used at the end
        self._absent = AbsentIds()
        self._has_warned = False

    def texts(self, contents: Sequence[bytes]) -> list[bytes]:
        """Return values for decoders of JSON, packed and Arrow.

        A value that does not fit its schema, or whose schema the registry does not have, stays as it is, so
        that its decoder names the flaw. Raises RegistryError if the registry does not answer about a new id.
        """
        if self._schema_of is None:
            self._warn(contents)
            return list(contents)
        return [self._text(content, self._schema_of) for content in contents]

    def inputs(self, raw: RawRecords) -> RawRecords:
        """Return records of an input topic with the schemas that they name.

        Raises RegistryError if the registry does not answer about a new id.
        """
        if self._schema_of is None:
            return raw
        schemas = {}
        for schema_id in distinct_schema_ids(raw):
            schema = self._schema(schema_id, self._schema_of)
            if schema is not None:  # else the decoder reports it, as the worker does
                schemas[schema_id] = schema
        return raw.read_by(schemas)

    def _warn(self, contents: Sequence[bytes]) -> None:
        """Warn once of values that cannot be read without a registry."""
        if not self._has_warned and any(map(_needs_registry, contents)):
            self._has_warned = True
            logger.warning(
                "Values that name a schema of a registry are left out: set schema.registry.url, as "
                "the workers have it (docs/schemas.md)"
            )

    def _text(self, content: bytes, schema_of: Callable[[SchemaId], RegisteredSchema]) -> bytes:
        schema_id = id_before_body(content)
        if schema_id is None:
            return content
        if schema_id not in self._readers:
            schema = self._schema(schema_id, schema_of)
            if schema is None:
                return content
            self._readers[schema_id] = _reader(schema)
            if len(self._readers) > MOST_READERS:
                self._readers.popitem(last=False)
        self._readers.move_to_end(schema_id)
        reader = self._readers[schema_id]
        text = None if reader is None else reader(content[PREFIX_BYTES:])
        return content if text is None else text

    def _schema(
        self, schema_id: SchemaId, schema_of: Callable[[SchemaId], RegisteredSchema]
    ) -> RegisteredSchema | None:
        """Return the schema of an id; None if the registry does not have it, or did not a moment ago."""
        if self._absent.reason(schema_id) is not None:
            return None
        try:
            return schema_of(schema_id)
        except UnknownSchemaError:
            self._absent.add(schema_id, not_registered(schema_id))
            return None


def _needs_registry(content: bytes) -> bool:
    """Whether a value names a schema, and its body is not JSON, which is read without one."""
    return id_before_body(content) is not None and content[PREFIX_BYTES:].lstrip()[:1] not in (b"{", b"[")


def _reader(schema: RegisteredSchema) -> ValueReader | None:
    """Return the reader of a schema; None if its values are JSON, or if it cannot be used."""
    if schema.kind != "AVRO":
        return None
    from topics.codecs.avro.avro_schema import AvroSchema
    from topics.codecs.avro.output_values import ValueReader

    try:
        return ValueReader(AvroSchema.of(schema.text, [reference.text for reference in schema.references]))
    except SchemaError:
        return None


AS_WRITTEN: Final = OutputReader(None)
"""A reader for topics without outputs in Avro."""
