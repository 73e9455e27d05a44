"""Dead letters that a release wrote can be read and sent back for ever."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from streamapp.tools.dead_letters.read import _OURS
from tests.golden import dead_letter_records as golden


def content(path: Path) -> list[dict[str, Any]]:
    body: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))
    return body


@pytest.mark.parametrize("path", golden.files(), ids=lambda path: path.stem)
def test_dead_letters_of_a_release_hold_what_they_held(path: Path) -> None:
    for offset, record in enumerate(content(path)):
        found, then = golden.read(record, offset), record["says"]
        assert {name: found[name] for name in then} == then


def test_what_is_written_has_a_file() -> None:
    """A change of what is written needs a new file, and leaves the old one in its place."""
    written = [
        {name: record[name] for name in record if name != "says"} for record in content(golden.files()[-1])
    ]
    assert written == golden.records(), "write it: python -m tests.golden.dead_letter_records <release>"


def test_every_header_of_ours_is_in_a_golden_record() -> None:
    names = {name for path in golden.files() for record in content(path) for name, _ in record["headers"]}
    assert set(_OURS) <= names
