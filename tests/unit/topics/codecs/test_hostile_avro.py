"""Hostile schemas of Avro: each is refused, or read in bounded time and within the bytes of a record."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from tests.unit.topics.codecs.samples import run_of
from topics.codecs import decode_controls, decode_feature_values, decode_instances, decode_labels
from topics.codecs.by_schema.schema_readers import prepare
from topics.codecs.frames.wire_format import framed
from topics.columns.records import Malformed
from topics.registry.registered_schema import RegisteredSchema

DECODERS = (decode_instances, decode_labels, decode_feature_values, decode_controls)


def record(*fields: tuple[Any, Any], name: str = "R", **more: Any) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": [{"name": n, "type": t} | more for n, t in fields]}


def outcomes(schema: Any, value: bytes, decoders: Sequence[Any] = DECODERS) -> list[Malformed]:
    """Return the outcomes of a record on each topic."""
    registered = RegisteredSchema(7, "AVRO", json.dumps(schema))
    prepare(registered)
    raw = run_of([framed(7, value)]).read_by({7: registered})
    return [outcome for decode in decoders for outcome in decode(raw).malformed]


@pytest.mark.parametrize("size", [-1, 10**30, 1 << 31, "12", "x", 3.5, True, None])
def test_the_size_of_a_fixed_must_be_a_length(size: Any) -> None:
    fixed = {"type": "fixed", "name": "F", "size": size}
    schema = record(("id", "string"), ("x", {"type": "array", "items": fixed}))
    refused = outcomes(schema, b"\x02a\x08\x08\x00")
    assert len(refused) == len(DECODERS)
    assert all("must be a whole number from 0 to" in outcome.detail for outcome in refused)


@pytest.mark.parametrize("name", [5, None, ["a"], {"a": 1}])
def test_names_must_be_strings(name: Any) -> None:
    assert len(outcomes(record(("id", "string"), (name, "int")), b"\x02a\x02")) == len(DECODERS)
    own_name = record(("id", "string"), **{"streamgrove.name": name})
    assert "must be a string" in outcomes(own_name, b"\x02a")[0].detail


@pytest.mark.parametrize("symbols", [None, "ab", {"a": 1}, [1]])
def test_symbols_must_be_a_list_of_names(symbols: Any) -> None:
    schema = record(("id", "string"), ("x", {"type": "enum", "name": "E", "symbols": symbols}))
    assert len(outcomes(schema, b"\x02a\x00")) == len(DECODERS)


def test_records_without_fields_that_double_at_each_level() -> None:
    inner: Any = record(name="R0")
    for level in range(1, 40):
        inner = record(("a", inner), ("b", f"R{level - 1}"), name=f"R{level}")
    schema = record(("id", "string"), ("features", inner))
    first = outcomes(schema, b"\x02a", [decode_instances])[0]
    assert "more than 16,384 features" in first.detail


def test_a_program_that_would_be_too_long() -> None:
    symbols = [f"s{number}" for number in range(6000)]
    first = ("e0", {"type": "enum", "name": "E", "symbols": symbols})
    schema = record(("id", "string"), first, *[(f"e{number}", "E") for number in range(1, 100)])
    refused = outcomes(schema, b"\x02a" + bytes(100))
    assert len(refused) == len(DECODERS)
    assert all("too many types" in outcome.detail for outcome in refused)


def test_types_within_each_other() -> None:
    arrays: Any = "int"
    for _ in range(250):
        arrays = {"type": "array", "items": arrays}
    assert "within each other" in outcomes(record(("id", "string"), ("x", arrays)), b"\x02a\x00")[0].detail
    chain = [
        "int",
        *[record(("a", f"N{level - 1}" if level else "int"), name=f"N{level}") for level in range(150)],
    ]
    schema = record(("id", "string"), ("u", ["null", *chain[1:]]), ("features", "N149"))
    assert "within each other" in outcomes(schema, b"\x02a\x00\x02")[0].detail


@pytest.mark.parametrize("member", ["id", "label", "weight", "features", "command", "spec"])
def test_values_within_each_other(member: str) -> None:
    node = record(("next", ["null", "Node"]), name="Node")
    schema = record((member, node), ("x", "double"))
    for depth in (250, 1000, 2000):
        refused = outcomes(schema, b"\x02" * depth + bytes(9))
        assert all(outcome.detail for outcome in refused)
