"""Writes records of all topics as this release writes them: ``python -m tests.golden.wire``.

``wire-<release>.json`` has some records of each topic in each of its formats: the value as it lies in the
topic (hexadecimal), and what must be read from it. Files of releases stay, and stay readable: producers and
consumers of an older release go on beside workers of a newer one. Avro records are read by the schema that
the release had registered (``topics/schemas``). From 0.2.0 on, a file has records of each kind and with each
member (`wire_kinds`); those of 0.1.0 are in ``wire-kinds-0-1-0.json``. The file of a release that is not
tagged yet may be written again.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import json
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from streamapp.worker.outputs.encoder import Encoder
from tests.golden import wire_kinds
from tests.golden.versions import ascending, versions
from tests.topology.partition import NAMES, NOW, Partition, Record, config
from topics import codecs
from topics.codecs.avro.output_reader import OutputReader
from topics.codecs.avro.output_schemas import OUTPUTS, Output, released
from topics.codecs.content_types import wire_of_value
from topics.columns.records import AuditEntry, Features, RawRecords
from topics.registry.registered_schema import RegisteredSchema, SchemaId

HERE = Path(__file__).parent
FORMATS: Final = ("json", "packed", "arrow")
SPEC: Final[dict[str, Any]] = {
    "query": "always",
    "budget": {"name": "count", "limit": 1.0},
    "evaluation": {"every": 20},
    "drift": "ddm",
    "explain": True,
}
BUYS: Final[dict[str, Any]] = {"acquire": {"name": "random", "share": 1.0}}
IDS: Final = {output: number for number, output in enumerate(OUTPUTS, 1)}
Records = dict[str, list[bytes]]


def files() -> list[Path]:
    return ascending(HERE.glob("wire-*.json"))


def inputs() -> Records:
    """Return values that producers send, by topic and format."""
    x = np.array([[1.5, np.nan], [-2.0, 3.25]])
    by_position, by_name = Features.of(None, x), Features.of(("a", "größe"), x, {1: ["rot", None]})
    records: Records = {}
    ids, labels = ["i1", "i2"], ["yes", None]
    weights = np.array([1.0, 2.5])
    for form in FORMATS:
        features = by_position if form == "packed" else by_name
        given: dict[str, Any] = {"format": form, "ids": ids, "labels": labels}
        records[f"instances/{form}"] = codecs.encode_instances(features, **given, weights=weights)
        labelled = codecs.encode_labels(ids, labels, format=form, weights=weights, annotators=["ann", None])
        records[f"labels/{form}"] = labelled
    records["labels/json"] += codecs.encode_corrections(["i3"], ["no"], ["ann"], [1.0], [{}])
    records["feature-values/json"] = codecs.encode_feature_values(
        ids, [{"a": 1.5}, {}], unavailable=[{}, {"größe": "broken"}], finish=[False, True]
    )
    records["controls/json"] = codecs.encode_controls(
        [("create", {"spec": {"learner": "h-tree"}}), ("freeze", {"frozen": True})]
    )
    records["audit/json"] = codecs.encode_audit([AuditEntry("e1", "ann", "label", NOW, key="m", label="yes")])
    return records


def outputs() -> Records:
    """Return values that a worker sends, by topic and format."""
    records: Records = {}
    for form in ("json", "packed", "arrow", "avro"):
        partition = played(form)
        for topic, sent in partition.sent.items():
            values = [record.value for record in sent if record.value is not None]
            is_of_form = form in ("json", "avro") or topic == "predictions"
            if values and is_of_form and topic != "dead-letters":
                records[f"{topic}/{form}"] = list(dict.fromkeys((values[0], values[-1])))
    return {name: values for name, values in records.items() if not name.endswith("/avro") or is_avro(values)}


def is_avro(values: Sequence[bytes]) -> bool:
    return values[0][:1] == b"\0"


def played(form: str) -> Partition:
    """Return a partition that has answered in a format, with a drift and a purchase."""
    encoder = Encoder(NAMES, schema_ids=IDS if form == "avro" else None)
    partition = Partition(config(SPEC), encoder=encoder)
    for n in range(120):
        turned = n >= 60
        document: dict[str, Any] = {"id": f"i{n}", "features": {"x": n % 7, "colour": "red"}}
        partition.instances(document)
        partition.labels({"id": f"i{n}", "label": "ab"[(n % 7 > 3) != turned]})
    partition.control("create", key="buys", spec=BUYS, schema={"attributes": [{"name": "x"}, {"name": "y"}]})
    partition.instances({"id": "bought", "features": {"x": 1}}, key="buys")
    if form in ("packed", "arrow"):
        features = Features.of(None if form == "packed" else ("x",), np.array([[3.0], [4.0]]))
        given: dict[str, Any] = {"format": form, "ids": ["p1", "p2"], "labels": ["a", "b"]}
        values = 2 * codecs.encode_instances(features, **given)
        partition.sent.clear()
        for value in values:
            partition.feed(Record("instances", form.encode(), value))
    return partition


def kinds(stories: Sequence[wire_kinds.Story] = wire_kinds.STORIES) -> Records:
    """Return values of every kind and with every member, by topic and format."""
    found: Records = wire_kinds.inputs()
    for ids in (None, IDS):
        for story in stories:
            here = story(functools.partial(begun, ids))
            for topic, sent in here.sent.items():
                values = [record.value for record in sent if record.value is not None and topic in READERS]
                for value in values:
                    wire = wire_of_value(value)
                    form = "avro" if wire == "framed" else wire
                    if ids is None or form == "avro":
                        found.setdefault(f"{topic}/{form}", []).append(value)
    return {name: chosen(name, values) for name, values in found.items()}


def begun(ids: Mapping[Output, int] | None, spec: Mapping[str, Any], **settings: Any) -> Partition:
    """Return a partition with the spec of a story; ids: those of schemas, for outputs in Avro."""
    return Partition(config(dict(spec), **settings), encoder=Encoder(NAMES, schema_ids=ids))


def chosen(name: str, values: Sequence[bytes]) -> list[bytes]:
    """Return a few of the values that together have each kind and each member, those with most first."""
    marked = [(marks(says(name, [value], NEWEST)), value) for value in values]
    seen: set[str] = set()
    kept = []
    for found, value in sorted(marked, key=lambda each: -len(each[0])):
        if not found <= seen:
            kept.append(value)
            seen |= found
    return kept


KINDS: Final = (
    "event",
    "level",
    "command",
    "action",
    "reason",
    "reasons",
    "decision",
    "by",
    "stop",
    "advice",
)
"""Members whose words are kinds of a record."""


def marks(content: Any, where: str = "") -> set[str]:
    """Return the members that content has, by their path, and the words of those that are kinds.

    Probabilities by class and other figures with names of the data count as one member.
    """
    if where.rpartition(".")[2] in NAMED_BY_DATA and content:
        return {where}
    if isinstance(content, dict):
        where += f".{content['event']}" if "event" in content else ""
        return {mark for name, value in content.items() for mark in marks(value, f"{where}.{name}")}
    if isinstance(content, list):
        return {mark for value in content for mark in marks(value, where)}
    if content is None or content in ("nan", ""):
        return set()
    return {f"{where}={content}" if where.rpartition(".")[2] in KINDS else where}


NAMED_BY_DATA: Final = (
    "probabilities",
    "raw_probabilities",
    "per_class",
    "classes",
    "counts",
    "ranges",
    "strings",
)
"""Members with an object whose names are classes or features."""
NEWEST: Final = (sys.maxsize,)
"""A release after all others."""


def schemas_of(release: tuple[int, ...]) -> Callable[[SchemaId], RegisteredSchema]:
    """Return the schema by id that a release registers: the first of an output is that of 0.1.0."""

    def schema_of(schema_id: SchemaId) -> RegisteredSchema:
        (output,) = (name for name, number in IDS.items() if number == schema_id)
        texts = released(output)
        text = texts[min(texts) if release == (0, 1, 0) else max(texts)]
        return RegisteredSchema(schema_id, "AVRO", text)

    return schema_of


def raw(values: Sequence[bytes]) -> RawRecords:
    n = len(values)
    return RawRecords("t", 3, list(range(n)), [NOW] * n, [b"m"] * n, list(values), [()] * n)


READERS: Final[Mapping[str, Callable[[list[bytes]], Any]]] = {
    "instances": lambda values: codecs.decode_instances(raw(values)),
    "labels": lambda values: codecs.decode_labels(raw(values)),
    "feature-values": lambda values: codecs.decode_feature_values(raw(values)),
    "controls": lambda values: codecs.decode_controls(raw(values)),
    "predictions": codecs.decode_predictions,
    "label-requests": codecs.decode_label_requests,
    "feature-requests": codecs.decode_feature_requests,
    "drift-alerts": codecs.decode_drift_alerts,
    "evaluations": codecs.decode_evaluations,
    "model-events": codecs.decode_model_events,
    "audit": codecs.decode_audit,
}


def says(name: str, values: Sequence[bytes], release: tuple[int, ...]) -> Any:
    """Return what the values of a topic and format hold, which a release wrote, as JSON."""
    topic, _, form = name.partition("/")
    texts = OutputReader(schemas_of(release)).texts(values) if form == "avro" else list(values)
    return plain(READERS[topic](texts))


def plain(content: Any) -> Any:
    """Return columns and records as JSON."""
    match content:
        case enum.Enum():
            return content.value
        case np.ndarray() | np.generic():
            return plain(content.tolist())
        case float() if not math.isfinite(content):
            return str(content)
        case float():
            return round(content, 9)
        case bytes():
            return content.hex()
        case dict():
            return {str(name): plain(value) for name, value in content.items()}
        case None | str() | bool() | int():
            return content
    if dataclasses.is_dataclass(content):
        return {field.name: plain(getattr(content, field.name)) for field in dataclasses.fields(content)}
    return [plain(value) for value in content]


def together(*parts: Records) -> Records:
    """Return the values of several parts, each value once, by topic and format."""
    names = sorted({name for part in parts for name in part})
    return {
        name: list(dict.fromkeys(value for part in parts for value in part.get(name, []))) for name in names
    }


def write(path: Path, records: Records, release: tuple[int, ...]) -> None:
    """Write the file of a release."""
    body = {
        name: {"values": [value.hex() for value in values], "says": says(name, values, release)}
        for name, values in records.items()
    }
    text = json.dumps(body, indent=1, ensure_ascii=False, sort_keys=True)
    path.write_text(text + "\n", encoding="utf-8")


def main() -> None:
    """Write the file of a release, which the first argument names as ``0-2-0``."""
    path = HERE / f"wire-{sys.argv[1]}.json"
    write(path, together(inputs(), outputs(), kinds()), versions(path))


if __name__ == "__main__":
    main()
