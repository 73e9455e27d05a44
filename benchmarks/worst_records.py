"""The worst possible records within `record.max.bytes`, by input and format, and a plain record of each.

`benchmarks.hostile` measures these records, and tests/topology/test_worst_records.py bounds their cost.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np
import pyarrow as pa

from topics.codecs import encode_instances
from topics.columns.records import Features, Headers

Source = Literal["instances", "labels", "controls"]
Format = Literal["json", "packed", "arrow"]

CLOUDEVENT: Final = ("content-type", b"application/cloudevents+json")
TEXT: Final = 1024  # text.max.bytes
ROWS: Final = 10_000  # block.max.rows
ATTRIBUTES: Final = 4096  # models.max.attributes
VALUES: Final = 65_536  # commas and brackets of a JSON record
UNPACKED: Final = 16 << 20  # bytes of a block's texts, which may be sent in fewer
KEY: Final = b"m"


@dataclass(frozen=True, slots=True)
class WorstRecord:
    """A record, the instance that has created its model before, and the expected outcome."""

    name: str
    source: Source
    form: Format
    value: bytes
    reason: str | None = None  # reason of its dead letter; None: it is accepted
    answers: int = 0  # rows that are answered
    headers: Headers = ()
    before: bytes | None = None
    plain: bool = False  # only its size is unusual


def worst_records(size: int) -> Iterator[WorstRecord]:
    """Yield records of at most `size` bytes one at a time, because all of them take hundreds of megabytes."""
    for make in (_json, _wide_json, _labels, _controls, _packed, _arrow, _arrow_texts, _growing):
        yield from make(size)


def _filled(head: bytes, unit: bytes, tail: bytes, size: int, most: int | None = None) -> bytes:
    """Return `head`, then all units that fit (at most `most`), then `tail`."""
    n = (size - len(head) - len(tail)) // len(unit)
    return head + unit * (n if most is None else min(n, most)) + tail


def _json(size: int) -> Iterator[WorstRecord]:
    def record(name: str, value: bytes, reason: str | None = None, **more: Any) -> WorstRecord:
        return WorstRecord(name, "instances", "json", value, reason, 0 if reason else 1, **more)

    half = _filled(b'{"features":{"x":1},"note":"', b"a", b'"}', size)
    yield record("a member without a reader", half, plain=True)
    yield record("escapes in it", _filled(b'{"features":{"x":1},"note":"', b"\\u00e9", b'"}', size))
    yield record("white space", _filled(b'{"features":{"x":1}', b" ", b"}", size))
    yield record("an array of numbers", _filled(b'{"features":[1', b",1", b"]}", size), "too-large")
    yield record("empty objects", _filled(b'{"features":[1],"note":[1', b",{}", b"]}", size), "too-large")
    most = _filled(b'{"features":[1],"note":[1', b",{}", b"]}", size, VALUES // 2 - 8)
    yield record("the most objects", most)
    yield record("nested arrays", b'{"features":[1],"note":' + b"[" * (size // 2), "too-large")
    deep = b"[" * 1000 + b"]" * 1000
    yield record("deep arrays", _filled(b'{"features":[1],"note":[1', b"," + deep, b"]}", size, 64))
    yield record("a long number", _filled(b'{"features":{"x":0.', b"1", b"}}", size))
    yield record("a long value", _filled(b'{"features":{"x":1,"c":"', b"a", b'"}}', size), "too-long")
    yield record("a long name", _filled(b'{"features":{"x":1,"', b"a", b'":1}}', size), "too-long")
    yield record("a long id", _filled(b'{"features":{"x":1},"id":"', b"a", b'"}', size), "too-long")
    yield record("a long class", _filled(b'{"features":{"x":1},"label":"', b"a", b'"}', size), "too-long")
    yield record("no JSON at the end", _filled(b'{"features":{"x":1},"note":"', b"a", b'"', size), "not-json")
    envelope = b'{"specversion":"1.0","data":{"features":[1]},"note":['
    yield record(
        "a CloudEvent of objects", _filled(envelope, b"{},", b"1]}", size), "too-large", headers=(CLOUDEVENT,)
    )
    data = _filled(b'{"data":{"features":{"x":1},"note":"', b"a", b'"}}', size)
    yield record("a CloudEvent", data, headers=(CLOUDEVENT,))
    headers = tuple((f"h{i}", b"v" * 60) for i in range(size // 64))
    yield record("headers", b'{"features":{"x":1}}', headers=headers)


def _wide_json(size: int) -> Iterator[WorstRecord]:
    before = b'{"features":{"x":1}}'

    def document(n: int, value: Callable[[int], Any]) -> bytes:
        pad = "n" * min(TEXT - 8, max(size // n - len(json.dumps(value(0))) - 24, 1))
        return json.dumps({"features": {f"{pad}{i:06}": value(i) for i in range(n)}}).encode()

    def record(name: str, value: bytes, reason: str | None = None, **more: Any) -> WorstRecord:
        return WorstRecord(name, "instances", "json", value, reason, 0 if reason else 1, **more)

    numbers, many = document(ATTRIBUTES, float), document(16_384, float)
    texts = document(ATTRIBUTES, lambda i: f"{i:06}" + "v" * min(TEXT - 8, size // ATTRIBUTES // 2))
    yield record("a first record of the most features", numbers)
    yield record("of the most nominal features", texts)
    yield record("a first record of too many", many, "too-many-features")
    yield record("the most new features", numbers, before=before)
    yield record("more than the model takes in", many, before=before)
    yield record("more than a record names", document(20_000, float), "too-many-features")


def _labels(size: int) -> Iterator[WorstRecord]:
    features = {f"{'n' * min(TEXT - 8, size // ATTRIBUTES - 40)}{i:06}": 1.5 for i in range(ATTRIBUTES)}
    wide = json.dumps({"id": "a", "label": "b", "features": features}).encode()
    early = _filled(b'{"id":"a","label":"b","note":"', b"a", b'"}', size)
    before = b'{"features":{"x":1}}'
    yield WorstRecord("an early label", "labels", "json", early, before=before, plain=True)
    yield WorstRecord("the most separate features", "labels", "json", wide)
    many = _filled(b'{"id":"a","label":"b","note":[1', b",[]", b"]}", size)
    yield WorstRecord("empty arrays", "labels", "json", many, "too-large")
    n = min(ROWS, size // 40)
    block = _stream(
        pa.table({"id": [f"{i:06}" for i in range(n)], "label": [f"c{i}" for i in range(n)]}), size
    )
    yield WorstRecord("early labels in a block", "labels", "arrow", block, before=before)


def _controls(size: int) -> Iterator[WorstRecord]:
    def record(name: str, body: Any, reason: str | None = None, **more: Any) -> WorstRecord:
        value = body if isinstance(body, bytes) else json.dumps(body).encode()
        return WorstRecord(name, "controls", "json", value, reason, **more)

    def create(**schema: Any) -> dict[str, Any]:
        return {"command": "create", "schema": schema}

    def values(n: int, width: int) -> list[str]:
        return [f"{i:06}{'v' * (width - 6)}" for i in range(n)]

    data = np.random.default_rng(1).bytes((size - 200) // 4 * 3)
    part = {"command": "import", "id": "a", "part": 1, "parts": 2, "crc": zlib.crc32(data)}
    yield record("a part of an import", part | {"data": base64.b64encode(data).decode()}, plain=True)
    yield record("a part that is no base64", part | {"data": "!" * (size - 200)}, "bad-control")
    wide = [{"name": f"{'n' * min(1000, size // ATTRIBUTES - 60)}{i:06}"} for i in range(ATTRIBUTES)]
    yield record("a schema of the most attributes", create(attributes=wide))
    attribute = {
        "name": "c",
        "kind": "nominal",
        "values": values(min(size // 110, 1 << 15), 100),
        "open": True,
    }
    yield record("an attribute of the most values", create(attributes=[attribute]))
    attribute = attribute | {"values": values(size // 12, 7)}
    too_many = "bad-control" if size >= 8 << 20 else None  # 4 MiB of values
    yield record("of seven bytes each", create(attributes=[attribute]), too_many)
    classes = values(size // 12, 7)
    yield record("too many classes", create(attributes=[{"name": "x"}], classes=classes), "bad-control")
    spec: dict[str, Any] = {"learner": {"name": "h-tree"}}
    for _ in range(500):
        spec = {"learner": spec}
    yield record("a deep spec", {"command": "create", "spec": spec}, "bad-control")
    many = _filled(b'{"command":"create","note":[1', b",1", b"]}", size)
    yield record("numbers", many, "too-large" if size // 2 > 16 * VALUES else "bad-control")


def _packed(size: int) -> Iterator[WorstRecord]:
    def record(name: str, n: int, reason: str | None = None, **more: Any) -> WorstRecord:
        value = encode_instances(Features.of(None, np.ones((1, n))), format="packed")[0]
        return WorstRecord(name, "instances", "packed", value, reason, 0 if reason else 1, **more)

    yield record("the most features", ATTRIBUTES, plain=True)
    yield record("more than a model has", size // 8 - 4, "too-many-features")
    yield record("of another length", size // 8 - 4, "wrong-schema", before=b'{"features":[1]}')


def _stream(table: pa.Table, size: int, rows: int | None = None) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=rows)
    value = bytes(sink.getvalue().to_pybytes())
    assert len(value) <= size, (len(value), size)
    return value


def _arrow(size: int) -> Iterator[WorstRecord]:
    def record(name: str, table: pa.Table, reason: str | None = None, **more: Any) -> WorstRecord:
        rows = more.pop("rows", None)
        value = _stream(table, size, rows)
        return WorstRecord(name, "instances", "arrow", value, reason, 0 if reason else len(table), **more)

    draw, room = np.random.default_rng(1), size * 9 // 10 // 8

    def numbers(rows: int, columns: int) -> dict[str, Any]:
        return {f"x{i}": draw.random(rows) for i in range(columns)}

    n = min(ROWS, room // 20)
    yield record("rows of numbers", pa.table(numbers(n, room // n)), plain=True)
    labels = pa.array(["a" if is_first else "b" for is_first in draw.random(n) < 0.5]).dictionary_encode()
    yield record("with labels", pa.table(numbers(n, room // n - 1) | {"label": labels}))
    truth = pa.array(np.zeros(min(10**6, size), dtype=np.bool_))
    yield record("a million rows", pa.table({"x": truth}), "too-many-rows")
    messages = min(4090, size // 200)  # 4,096 with schema and end
    yield record("a message for each row", pa.table({"x": draw.random(messages)}), rows=1)
    most = "bad-block" if messages == 4090 else None
    yield record("eight messages more", pa.table({"x": draw.random(messages + 8)}), most, rows=1)
    ids = [f"{i:06}{'i' * min(TEXT - 8, size // ROWS - 20)}" for i in range(n)]
    yield record("long ids", pa.table({"x": draw.random(n), "id": ids}))
    wide = {f"{'n' * min(TEXT - 8, size // 8 // ATTRIBUTES)}{i:06}": [1.5] for i in range(ATTRIBUTES // 2)}
    yield record("long names", pa.table(wide))
    cells = 1 << 20  # the limit for a block of up to 4 MiB
    rows = min(ROWS, size // 8)
    small_ints = {f"x{i}": np.ones(rows, dtype=np.int8) for i in range(min(cells, size * 8 // 10) // rows)}
    yield record("numbers of a byte", pa.table(small_ints))
    bits = {f"x{i}": pa.array(np.ones(rows, dtype=np.bool_)) for i in range(cells // rows)}
    yield record("of a bit", pa.table(bits))


def _arrow_texts(size: int) -> Iterator[WorstRecord]:
    def record(name: str, table: pa.Table, reason: str | None = None, **more: Any) -> WorstRecord:
        return WorstRecord(
            name, "instances", "arrow", _stream(table, size), reason, 0 if reason else len(table), **more
        )

    n = min(ROWS, size // 64)
    columns = max(size * 8 // 10 // n, 1)
    words = pa.array([f"{i:03}{'v' * 500}" for i in range(100)])
    shared = pa.DictionaryArray.from_arrays(pa.array((np.arange(n) % 100).astype(np.int8)), words)
    few = pa.DictionaryArray.from_arrays(pa.array((np.arange(n) % 3).astype(np.int8)), ["a", "b", "c"])
    yield record("dictionaries", pa.table({f"c{i}": few for i in range(min(columns, (1 << 20) // n))}))
    long_words, most = max(size // (2 * (60_000 + n)), 1), max(UNPACKED // (503 * n), 1)
    name = "dictionaries of long words"
    yield record(name, pa.table({f"c{i}": shared for i in range(min(long_words, most))}))
    if long_words > most:
        too_many = pa.table({f"c{i}": shared for i in range(long_words)})
        yield record("that unpack to a hundred times as much", too_many, "too-large")
    long = pa.DictionaryArray.from_arrays(pa.array(np.zeros(n, dtype=np.int8)), ["v" * 5000])
    yield record(
        "a dictionary of one word that is too long", pa.table({"x": np.ones(n), "c": long}), "bad-rows"
    )


def _growing(size: int) -> Iterator[WorstRecord]:
    """Yield blocks in which each row has something new for the model."""

    def record(name: str, table: pa.Table, **more: Any) -> WorstRecord:
        return WorstRecord(name, "instances", "arrow", _stream(table, size), None, len(table), **more)

    before = b'{"features":{"x":1}}'
    n = int((size * 0.8 / 8) ** 0.5)
    x = np.where(np.eye(n, dtype=np.bool_), 1.5, np.nan)
    diagonal = {f"f{i:04}": pa.array(x[:, i]) for i in range(n)} | {"x": np.ones(n)}
    yield record("a new feature in each row", pa.table(diagonal), before=before)
    rows = min(ROWS, size // (8 * ATTRIBUTES))
    columns = max(min(ATTRIBUTES, size * 3 // 4 // (10 * rows + 400)), 1)
    texts = {f"c{i}": [f"{row:06}" for row in range(rows)] for i in range(columns)}
    yield record("new values in each cell", pa.table(texts))
    n = min(ROWS, size // 64)
    values = {f"c{i}": [f"{row:06}" for row in range(n)] for i in range(max(size * 3 // 4 // (12 * n), 1))}
    yield record("more values than an attribute takes in", pa.table(values))
    classes = {"x": np.ones(n), "label": [f"c{row}" for row in range(n)]}
    yield WorstRecord(
        "a new class in each row", "instances", "arrow", _stream(pa.table(classes), size), "bad-rows", 64
    )
