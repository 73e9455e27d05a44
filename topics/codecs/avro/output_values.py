"""Output values: answers and reports from JSON to Avro, and from Avro back to JSON for their readers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from io import BytesIO
from typing import Any, Final

import fastavro
import orjson

from topics.codecs.avro.avro_schema import AvroSchema
from topics.codecs.avro.avro_values import plain, values
from topics.codecs.avro.compiled.program import compiled
from topics.codecs.avro.compiled.rows import read_rows
from topics.codecs.avro.layout import Layout
from topics.codecs.avro.output_schemas import JSON_TEXT, Output, output_schema
from topics.codecs.frames.wire_format import PREFIX_BYTES, id_before_body
from topics.columns.spans import Spans
from topics.errors import RegistryError, SchemaError
from topics.registry.registered_schema import RegisteredSchema, SchemaId

MAX_ITEMS: Final = 1 << 24
"""Items of arrays and maps in an output, which a worker has bounded by its bytes."""

_NO_CELLS: Final = Layout((), is_open=False, has_features=False, is_flat=False)


def avro_values(output: Output, texts: Iterable[bytes]) -> list[bytes]:
    """Return outputs that are JSON as values of their Avro schema, without a frame."""
    schema = output_schema(output)
    written = []
    for text in texts:
        document = orjson.loads(text)
        for name in _json_fields(schema):
            if document.get(name) is not None:
                document[name] = orjson.dumps(document[name]).decode()
        sink = BytesIO()
        fastavro.schemaless_writer(sink, schema.root, document)
        written.append(sink.getvalue())
    return written


class OutputReader:
    """Reads outputs in any format as JSON or as they are: those in Avro become JSON."""

    def __init__(self, schema_of: Callable[[SchemaId], RegisteredSchema] | None) -> None:
        """`schema_of`: returns the schema of an id, or raises RegistryError; None: there is no registry."""
        self._schema_of = schema_of

    def texts(self, contents: Sequence[bytes]) -> list[bytes]:
        """Return values whose decoders know JSON, packed and Arrow.

        A value that is not what its schema says stays as it is, and its decoder names the flaw. Raises
        RegistryError if the schema of a value cannot be had now.
        """
        if self._schema_of is None:
            return list(contents)
        return [self._text(content, self._schema_of) for content in contents]

    def _text(self, content: bytes, schema_of: Callable[[SchemaId], RegisteredSchema]) -> bytes:
        schema_id = id_before_body(content)
        if schema_id is None:
            return content
        registered = schema_of(schema_id)
        body = content[PREFIX_BYTES:]
        if registered.kind != "AVRO":
            return content
        try:
            reader = _reader(registered.text, tuple(each.text for each in registered.references))
        except SchemaError as error:
            message = f"schema {schema_id} of the registry: {error}"
            raise RegistryError(message) from error
        text = reader(body)
        return content if text is None else text


class _ValueReader:
    """Reads the values of one schema as JSON."""

    def __init__(self, schema: AvroSchema) -> None:
        self._schema = schema
        self._program = compiled(schema, _NO_CELLS, MAX_ITEMS)

    def __call__(self, body: bytes) -> bytes | None:
        """Return a value as JSON; None if the bytes are not a value of the schema."""
        if read_rows(self._program, _NO_CELLS.shape, Spans.of([body])).flaws:
            return None
        (value,) = values(self._schema, [body])
        document: Any = plain(value)
        if isinstance(document, dict):
            for name in _json_fields(self._schema):
                if document.get(name) is not None:
                    document[name] = orjson.Fragment(document[name])
        return orjson.dumps(document)


@lru_cache(maxsize=64)
def _reader(text: str, references: tuple[str, ...]) -> _ValueReader:
    return _ValueReader(AvroSchema.of(text, references))


@lru_cache(maxsize=64)
def _json_fields(schema: AvroSchema) -> tuple[str, ...]:
    """Return the names of fields whose strings are JSON."""
    root = schema.type_of(schema.root)
    fields = root.get("fields", ()) if isinstance(root, dict) else ()
    return tuple(field["name"] for field in fields if field.get(JSON_TEXT) is True)
