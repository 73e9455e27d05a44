"""Rows as record values, written independently of `topics`, as other producers would (docs/records.md)."""

from __future__ import annotations

import json
from collections.abc import Iterator

import numpy as np
import orjson
import pyarrow as pa

from benchmarks.rig.stream import N_ATTRIBUTES, NAMES, Rows

BLOCK_ROWS = 1000
PACKED = np.dtype(
    [
        ("magic", "S2"),
        ("version", "u1"),
        ("kind", "u1"),
        ("value_bytes", "u1"),
        ("flags", "u1"),
        ("id_bytes", "<u2"),
        ("count", "<u4"),
        ("label", "<i4"),
        ("values", "<f8", N_ATTRIBUTES),
    ]
)
PACKED_FIELDS = {
    "magic": b"\xd6\x47",
    "version": 1,
    "kind": 1,
    "value_bytes": 8,
    "flags": 1,
    "count": N_ATTRIBUTES,
}

AVRO_ID = 1
"""The id that a new registry gives to the first schema."""
ANSWER_ID = 2
"""The id that it gives to the second schema, of answers."""
AVRO_SCHEMA = json.dumps(
    {
        "type": "record",
        "name": "Instance",
        "fields": [
            {
                "name": "features",
                "type": {
                    "type": "record",
                    "name": "Features",
                    "fields": [{"name": name, "type": "double"} for name in NAMES],
                },
            },
            {"name": "label", "type": "string"},
        ],
    }
)
AVRO = np.dtype(
    [
        ("magic", "u1"),
        ("id", ">u4"),
        ("values", "<f8", N_ATTRIBUTES),
        ("label_bytes", "u1"),
        ("label", "S1"),
    ]
)


def values(rows: Rows, form: str) -> Iterator[tuple[int, bytes]]:
    """Yield (first row, value) of every record."""
    if form == "json":
        return _json(rows)
    if form == "avro":
        return _avro(rows)
    return _packed(rows) if form == "packed" else _arrow(rows)


def _json(rows: Rows) -> Iterator[tuple[int, bytes]]:
    labels = rows.y.astype(str).tolist()
    for number, (x, label) in enumerate(zip(rows.x.tolist(), labels, strict=True)):
        yield number, orjson.dumps({"features": dict(zip(NAMES, x, strict=True)), "label": label})


def _packed(rows: Rows) -> Iterator[tuple[int, bytes]]:
    table = np.zeros(len(rows), dtype=PACKED)
    for name, value in PACKED_FIELDS.items():
        table[name] = value
    table["label"], table["values"] = rows.y, rows.x
    blob, size = table.tobytes(), PACKED.itemsize
    return ((number, blob[number * size : (number + 1) * size]) for number in range(len(rows)))


def _avro(rows: Rows) -> Iterator[tuple[int, bytes]]:
    table = np.zeros(len(rows), dtype=AVRO)
    table["id"], table["label_bytes"] = AVRO_ID, 2  # one byte, in zigzag coding
    table["label"], table["values"] = rows.y.astype("S1"), rows.x
    blob, size = table.tobytes(), AVRO.itemsize
    return ((number, blob[number * size : (number + 1) * size]) for number in range(len(rows)))


def _arrow(rows: Rows) -> Iterator[tuple[int, bytes]]:
    """Yield blocks of `BLOCK_ROWS` rows with one key each: keys change only at multiples of that number."""
    labels = rows.y.astype(str)
    for first in range(0, len(rows), BLOCK_ROWS):
        last = min(first + BLOCK_ROWS, len(rows))
        columns = [pa.array(np.ascontiguousarray(column)) for column in rows.x[first:last].T]
        columns.append(pa.array(labels[first:last]))
        batch = pa.record_batch(columns, names=[*NAMES, "label"])
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema) as writer:
            writer.write_batch(batch)
        yield first, sink.getvalue().to_pybytes()
