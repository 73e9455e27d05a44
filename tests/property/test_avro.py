"""Avro records have the columns of the JSON objects of the same names, whatever the schema and the bytes."""

import json
import random
from io import BytesIO
from typing import Any

import fastavro
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.naive.avro import NotAValue, Reader, Types, json_of, write
from tests.tiers import examples
from tests.unit.topics.codecs.compiled.same import assert_same
from topics.codecs import Limits
from topics.codecs.avro.avro_schema import AvroSchema
from topics.codecs.avro.reader import AvroReader
from topics.codecs.batch import Batch
from topics.codecs.json.reader import read_instances, read_labels
from topics.columns.records import Instances, Labels
from topics.columns.spans import Spans

LIMITS = Limits(text_max_bytes=64)
TEXTS = ("", "a", "red", "blü", 'a"b', "back\\slash", "\\u0041", "tab\t", "😀", "l" * 65, "é" * 33, "1", "-7")
NUMBERS = (0.0, -0.0, 1.0, 0.5, -2.5, 1e9, 1e300, 5e-324, float("nan"), 0.1)
WHOLE = (0, 1, -1, 63, -64, 64, 2**31 - 1, -(2**31), 7, 1000)
LONG = (*WHOLE, 2**53 + 1, 2**63 - 1, -(2**63))
BLOBS = (b"", b"abc", b"\xff", b"\\", bytes(range(128)))
DECIMALS = (b"", b"\x00", b"\xff", b"\x04\xe2", b"\x80" + bytes(7), b"\x7f" + bytes(11), bytes(9))
SIMPLE = ("boolean", "int", "long", "float", "double", "string", "bytes", "enum", "fixed", "decimal", "date")
USUAL = ("int", "long", "double", "float", "string", "enum")
MEMBERS = {"id": ("string", "long", "int", "enum"), "label": ("string", "int", "enum", "boolean", "double")}


class Producer:
    """Makes one schema, and values of it."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._names = 0
        fields = [
            {"name": name, "type": self._optional(self._type(rng.choice(kinds)))}
            for name, kinds in MEMBERS.items()
            if rng.random() < 0.8
        ]
        if rng.random() < 0.4:
            fields.append({"name": "weight", "type": self._optional(rng.choice(["double", "int", "float"]))})
        if rng.random() < 0.3:
            fields.append({"name": "annotator", "type": self._optional(rng.choice(["string", "int"]))})
        if rng.random() < 0.3:
            fields.append({"name": "declined", "type": self._optional("boolean")})
        if rng.random() < 0.3:
            fields.append({"name": "more", "type": self._nested(2)})
        if rng.random() < 0.75:
            fields.append({"name": "features", "type": self._features()})
        else:
            fields += self._record(rng.randint(1, 4), 1, "Root")["fields"]
        rng.shuffle(fields)
        self.schema = {"type": "record", "name": "Root", "fields": fields}
        self.types = Types(self.schema)

    def _features(self) -> Any:
        rng = self._rng
        if rng.random() < 0.1:
            return {"type": "map", "values": self._optional(rng.choice(["double", "string"]))}
        if rng.random() < 0.1:
            return {"type": "array", "items": ["null", "double"]}
        record = self._record(rng.randint(0, 5), 2)
        return ["null", record] if rng.random() < 0.2 else record

    def _record(self, n: int, depth: int, name: str = "") -> dict[str, Any]:
        self._names += 1
        name = name or f"R{self._names}"
        fields = [{"name": f"f{name}x{number}", "type": self._feature(depth)} for number in range(n)]
        if self._rng.random() < 0.05:
            fields.append({"name": f"f{name}self", "type": ["null", name]})
        return {"type": "record", "name": name, "fields": fields}

    def _feature(self, depth: int) -> Any:
        rng = self._rng
        odds = rng.random()
        if odds < 0.6:
            return self._optional(self._type(rng.choice(USUAL)))
        if odds < 0.8:
            return self._optional(self._type(rng.choice(SIMPLE)))
        if odds < 0.9 and depth:
            record = self._record(rng.randint(1, 3), depth - 1)
            return rng.choice([record, ["null", record], ["null", record, "string"]])
        if odds < 0.95:
            return ["null", *rng.sample(["boolean", "long", "double", "string"], 2)]
        return self._nested(1)

    def _nested(self, depth: int) -> Any:
        rng = self._rng
        kind = self._nested(depth - 1) if depth and rng.random() < 0.5 else self._type(rng.choice(SIMPLE))
        return {"type": "array", "items": kind} if rng.random() < 0.5 else {"type": "map", "values": kind}

    def _optional(self, kind: Any) -> Any:
        odds = self._rng.random()
        return kind if odds < 0.6 else ["null", kind] if odds < 0.95 else [kind, "null"]

    def _type(self, name: str) -> Any:
        self._names += 1
        named = f"T{self._names}"
        if name == "enum":
            return {"type": "enum", "name": named, "symbols": ["A", "B", "red", f"S{self._names}"]}
        if name == "fixed":
            return {"type": "fixed", "name": named, "size": self._rng.choice([1, 3, 16])}
        if name == "date":
            kind, logical = self._rng.choice(
                [("int", "date"), ("long", "timestamp-micros"), ("long", "timestamp-millis")]
            )
            return {"type": kind, "logicalType": logical}
        if name == "decimal":
            logical_type = {"logicalType": "decimal", "precision": 18, "scale": self._rng.choice([0, 2, 9])}
            if self._rng.random() < 0.5:
                return {"type": "bytes", **logical_type}
            return {"type": "fixed", "name": named, "size": 8, **logical_type}
        return name

    def value(self, node: Any, depth: int = 0) -> Any:
        """Return a value for `write`."""
        rng, kind, name = self._rng, self.types.of(node), self.types.name(node)
        if name == "union":
            branch = 0 if depth > 4 else rng.randrange(len(kind))
            return branch, self.value(kind[branch], depth + 1)
        if name == "record":
            return {field["name"]: self.value(field["type"], depth + 1) for field in kind["fields"]}
        if name == "array":
            return [self.value(kind["items"], depth + 1) for _ in range(rng.choice([0, 1, 3]))]
        if name == "map":
            return {
                rng.choice(TEXTS): self.value(kind["values"], depth + 1) for _ in range(rng.choice([0, 2]))
            }
        if name == "bytes" and isinstance(kind, dict):
            return rng.choice(DECIMALS)
        if name == "fixed":
            return rng.choice([rng.randbytes(kind["size"]), b"a" * kind["size"], bytes(kind["size"])])
        choices: dict[str, tuple[Any, ...]] = {
            "null": (None,),
            "boolean": (True, False),
            "int": WHOLE,
            "long": LONG,
            "string": TEXTS,
            "bytes": BLOBS,
            "float": (0.5, float("nan"), -0.0, 0.1, 3.0),
            "double": NUMBERS,
        }
        return rng.choice(kind["symbols"] if name == "enum" else choices[name])

    def record(self, oddness: float) -> bytes:
        content = bytearray(write(self.types, self.schema, self.value(self.schema)))
        if self._rng.random() < oddness and content:
            at = self._rng.randrange(len(content))
            content[at : at + self._rng.randint(0, 2)] = self._rng.randbytes(self._rng.randint(0, 2))
        return bytes(content)


def batch(values: list[bytes]) -> Batch:
    n = len(values)
    zeros = np.zeros(n, dtype=np.int32)
    return Batch(3, np.arange(n, dtype=np.int32), list(range(n)), Spans.of(values), ["m"], zeros)  # type: ignore[arg-type]


def the_same(ours: Instances | Labels, theirs: Instances | Labels, bad: set[int]) -> None:
    """The columns are those of JSON; a record is bad if it is not a value, or if its JSON is bad."""
    reasons = {flawed.record: str(flawed.reason) for flawed in theirs.malformed}
    assert {flawed.record for flawed in ours.malformed} == bad | set(reasons)
    for flawed in ours.malformed:
        if flawed.record in bad:
            assert flawed.reason in ("bad-value", "too-large")
        else:
            assert flawed.reason == reasons[flawed.record], flawed
    ours.malformed.clear()
    theirs.malformed.clear()
    assert_same(ours, theirs)


def compare(producer: Producer, values: list[bytes]) -> tuple[int, int]:
    """Compare our columns with those of JSON; return how many records are no values, and how many are."""
    members, json_values, bad = ("id", "label", "weight", "annotator", "declined"), {}, set()
    for row, value in enumerate(values):
        try:
            read = Reader(producer.types, value).all()
        except NotAValue:
            bad.add(row)
            continue
        json_values[row] = read
    good = [row not in bad for row in range(len(values))]
    reader = AvroReader(AvroSchema.of(json.dumps(producer.schema)))
    for name, known, flat in (("instances", members[:3], True), ("labels", members, False)):
        texts = [
            json_of(producer.types, json_values[row], known, flat).encode() if row in json_values else b""
            for row in range(len(values))
        ]
        rest = batch(texts).where(good)
        if name == "instances":
            the_same(reader.read_instances(batch(values), LIMITS), read_instances(rest, LIMITS), bad)
        else:
            the_same(reader.read_labels(batch(values), LIMITS), read_labels(rest, LIMITS), bad)
    return len(bad), len(json_values)


@settings(max_examples=examples(100))
@given(st.integers(0, 2**63))
def test_avro_has_the_columns_of_json(seed: int) -> None:
    rng = random.Random(seed)
    producer = Producer(rng)
    oddness = rng.choice([0.0, 0.1, 0.9])
    compare(producer, [producer.record(oddness) for _ in range(rng.choice([1, 8, 30]))])


@settings(max_examples=examples(50))
@given(st.integers(0, 2**63))
def test_random_bytes_are_refused_or_read_alike(seed: int) -> None:
    rng = random.Random(seed)
    producer = Producer(rng)
    compare(producer, [rng.randbytes(rng.randint(0, 12)) for _ in range(40)])


def test_mutated_records_are_both_refused_and_read() -> None:
    bad = good = 0
    for seed in range(40):
        producer = Producer(random.Random(seed))
        refused, read = compare(producer, [producer.record(0.5) for _ in range(10)])
        bad, good = bad + refused, good + read
    assert bad > 20
    assert good > 100


@settings(max_examples=examples(50))
@given(st.integers(0, 2**63))
def test_the_naive_reader_and_fastavro_agree(seed: int) -> None:
    producer = Producer(random.Random(seed))
    schema = json.loads(json.dumps(producer.schema).replace('"logicalType"', '"unknown"'))
    value = producer.record(0)
    theirs = fastavro.schemaless_reader(BytesIO(value), schema, None)
    assert repr(_plain(theirs)) == repr(_plain(Reader(Types(schema), value).all()))


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(part) for name, part in value.items()}
    if isinstance(value, list):
        return [_plain(part) for part in value]
    return value.decode("latin-1") if isinstance(value, bytes) else value
