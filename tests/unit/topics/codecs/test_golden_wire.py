"""Records that a release wrote can be read for ever, whatever members have come since."""

from __future__ import annotations

import dataclasses
import json
from functools import cache
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest

from tests.golden import wire as golden
from tests.golden.versions import versions
from topics.codecs.avro.output_schemas import OUTPUTS
from topics.columns.members import members
from topics.columns.records import (
    AuditEntry,
    Command,
    DriftAlert,
    EvaluationRecord,
    FeatureRequest,
    LabelRequests,
    ModelEvent,
    Predictions,
)
from topics.definitions import CATALOGUE

INTERNAL = {"journal", "snapshots", "dead-letters"}
"""The journal, the table and dead letters have files of their own."""
REPORTS = {
    "audit": AuditEntry,
    "drift-alerts": DriftAlert,
    "evaluations": EvaluationRecord,
    "feature-requests": FeatureRequest,
    "model-events": ModelEvent,
}
COLUMNS = {"label-requests": LabelRequests, "predictions": Predictions}
IN_AVRO = {f"{output}s" for output in OUTPUTS}


@cache
def content(path: Path) -> dict[str, Any]:
    body: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return body


def missing(then: Any, now: Any, where: str = "") -> list[str]:
    """Return what was read from a record then and is not read now; new members may have come."""
    if isinstance(then, dict) and isinstance(now, dict):
        return [
            flaw
            for name, value in then.items()
            for flaw in (missing(value, now[name], f"{where}.{name}") if name in now else [f"{where}.{name}"])
        ]
    if isinstance(then, list) and isinstance(now, list) and len(then) == len(now):
        pairs = enumerate(zip(then, now, strict=True))
        return [flaw for at, (a, b) in pairs for flaw in missing(a, b, f"{where}[{at}]")]
    return [] if then == now else [f"{where}: {now!r} was {then!r}"]


@pytest.mark.parametrize("path", golden.files(), ids=lambda path: path.stem)
def test_records_of_a_release_hold_what_they_held(path: Path) -> None:
    for name, body in content(path).items():
        values = [bytes.fromhex(value) for value in body["values"]]
        assert missing(body["says"], golden.says(name, values, versions(path)), name) == []
        assert "bad-" not in str(body["says"]) and "wrong-" not in str(body["says"]), f"{name} is malformed"


def test_the_newest_file_has_all_topics_and_formats() -> None:
    """A topic or format that came needs a file with its records."""
    names = set(content(golden.files()[-1]))
    assert {name.partition("/")[0] for name in names} == {topic.name for topic in CATALOGUE} - INTERNAL
    assert names == set(golden.inputs() | golden.outputs())


def found(name: str) -> list[dict[str, Any]]:
    """Return what golden files hold of a topic and format: reports one by one, or columns."""
    says = [content(path)[name]["says"] for path in golden.files() if name in content(path)]
    return [row for each in says for row in (each if isinstance(each, list) else [each])]


def has(row: dict[str, Any], member: str) -> bool:
    """Return whether a report has a member, or some row of columns."""
    value = row.get(member)
    cells = value if isinstance(value, list) else [value]
    return any(cell not in (None, "nan", {}) for cell in cells)


def forms_of(topic: str) -> list[str]:
    return ["json", "avro"] if topic in IN_AVRO else ["json"]


@pytest.mark.parametrize(("topic", "form"), [(topic, form) for topic in REPORTS for form in forms_of(topic)])
def test_every_member_of_a_report_has_a_golden_record(topic: str, form: str) -> None:
    rows = found(f"{topic}/{form}")
    names = [field.name for field in dataclasses.fields(REPORTS[topic])]
    lacking = [name for name in names if not any(has(row, name) for row in rows)]
    assert lacking == [], "add a story to tests/golden/wire_kinds.py, run python -m tests.golden.wire"


@pytest.mark.parametrize("form", ["json", "avro", "packed", "arrow"])
@pytest.mark.parametrize("topic", COLUMNS)
def test_every_optional_member_has_a_golden_record(topic: str, form: str) -> None:
    """In each format that has a place for it."""
    lacking = []
    for column, member in members(COLUMNS[topic]).items():
        is_in_form = {"packed": member.packed, "arrow": member.block is not None}.get(form, True)
        if is_in_form and f"{topic}/{form}" in content(golden.files()[-1]):
            is_there = any(has(row, column) for row in found(f"{topic}/{form}"))
            lacking += [] if is_there else [column]
    assert lacking == [], "add a story to tests/golden/wire_kinds.py, run python -m tests.golden.wire"


def test_every_kind_of_event_alert_and_command_has_a_golden_record() -> None:
    words = {
        "event": (ModelEvent, {row["event"] for row in found("model-events/json")}),
        "level": (DriftAlert, {row["level"] for row in found("drift-alerts/json")}),
    }
    for member, (kind, present) in words.items():
        assert set(get_args(get_type_hints(kind)[member])) == present
    commands = {item["command"] for row in found("controls/json") for item in row["items"]}
    assert commands == set(get_args(Command))


def test_a_member_that_is_not_read_any_more_is_noticed() -> None:
    """The comparison fails where a member is gone or differs, and passes where members came."""
    then = {"label": "a", "rows": [{"x": 1.0}]}
    assert missing(then, {"label": "a", "rows": [{"x": 1.0, "new": 2}], "more": None}) == []
    assert missing(then, {"label": "a", "rows": [{}]}) == [".rows[0].x"]
    assert missing(then, {"label": "b", "rows": [{"x": 1.0}]}) == [".label: 'b' was 'a'"]
