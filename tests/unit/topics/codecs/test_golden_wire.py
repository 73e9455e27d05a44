"""Records that a release wrote can be read for ever, whatever members have come since."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.golden import wire as golden
from topics.definitions import CATALOGUE

INTERNAL = {"journal", "snapshots", "dead-letters"}
"""The journal and the table have files of their own; a dead letter is the record that it was made of."""


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
        assert missing(body["says"], golden.says(name, values), name) == []
        assert "bad-" not in str(body["says"]) and "wrong-" not in str(body["says"]), f"{name} is malformed"


def test_the_newest_file_has_all_topics_and_formats() -> None:
    """A topic or format that came needs a file with its records."""
    names = set(content(golden.files()[-1]))
    assert {name.partition("/")[0] for name in names} == {topic.name for topic in CATALOGUE} - INTERNAL
    assert names == set(golden.inputs() | golden.outputs())
