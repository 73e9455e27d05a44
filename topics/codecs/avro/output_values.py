"""Output values: answers and reports from JSON to Avro, and from Avro back to JSON for their readers."""

from __future__ import annotations

from collections.abc import Iterable
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
from topics.columns.spans import Spans

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


class ValueReader:
    """Reads the values of one schema as JSON."""

    def __init__(self, schema: AvroSchema) -> None:
        self._schema = schema
        self._program = compiled(schema, _NO_CELLS).bounded(MAX_ITEMS)

    def __call__(self, body: bytes) -> bytes | None:
        """Return a value as JSON; None if the bytes are not a value of the schema, or JSON cannot hold it."""
        if read_rows(self._program, _NO_CELLS.shape, Spans.of([body])).flaws:
            return None
        (value,) = values(self._schema, [body])
        document: Any = plain(value)
        if isinstance(document, dict):
            for name in _json_fields(self._schema):
                if document.get(name) is not None:
                    document[name] = orjson.Fragment(document[name])
        try:
            return orjson.dumps(document)
        except orjson.JSONEncodeError:  # more levels than JSON has here
            return None


@lru_cache(maxsize=64)
def _json_fields(schema: AvroSchema) -> tuple[str, ...]:
    """Return the names of fields whose strings are JSON."""
    root = schema.type_of(schema.root)
    fields = root.get("fields", ()) if isinstance(root, dict) else ()
    return tuple(field["name"] for field in fields if field.get(JSON_TEXT) is True)
