"""Gold file: records with a settled class, one JSON object a line, with the members of label requests."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import orjson

from streamapp.errors import UsageError
from streamapp.web.queue.cards import CELLS_MAX, RULES_MAX, TEXT_MAX, Cell

RECORDS_MAX: Final = 10_000
LINE_MAX: Final = 8 << 20  # bytes, as a record may have


@dataclass(frozen=True, slots=True)
class GoldRecord:
    """A record with a settled class. A member that is None is that of the request whose place it takes."""

    key: str  # model key
    instance_id: str
    label: str
    features: Mapping[str, Cell]
    prediction: str | None = None
    rules: str | None = None
    shares: Mapping[str, float] = field(default_factory=dict)
    left_out: int = 0  # features beyond CELLS_MAX


def read_gold(path: Path, models: Sequence[str], text_max: int) -> list[GoldRecord]:
    """Return the records of a file; UsageError with the line of the first that is wrong.

    models: keys of `--model`; a line without `key` belongs to the only one. text_max: bytes of a class.
    """
    records: dict[tuple[str, str], GoldRecord] = {}
    for number, line in _lines(path):
        try:
            record = _record(line, models[0] if len(models) == 1 else None, text_max)
        except ValueError as flaw:
            message = f"--gold {path}:{number} {flaw}"
            raise UsageError(message) from None
        place = (record.key, record.instance_id)
        if place in records:
            message = (
                f"--gold {path}:{number} has instance {record.instance_id!r} of model {record.key!r} again; "
                "leave one of the lines out"
            )
            raise UsageError(message)
        records[place] = record
        if len(records) > RECORDS_MAX:
            message = f"--gold {path} must have at most {RECORDS_MAX:,} records; leave some out"
            raise UsageError(message)
    if not records:
        message = f'--gold {path} must have a record, such as {{"key": "shop", "id": "4711", ...}}'
        raise UsageError(message)
    return list(records.values())


def _lines(path: Path) -> Iterator[tuple[int, bytes]]:
    try:
        with path.open("rb") as file:
            number = 0
            while line := file.readline(LINE_MAX + 1):
                number += 1
                if len(line) > LINE_MAX:
                    message = f"--gold {path}:{number} must have at most {LINE_MAX:,} bytes"
                    raise UsageError(message)
                if line.strip():
                    yield number, line
    except OSError as error:
        message = f"--gold {path} cannot be read: {error.strerror}"
        raise UsageError(message) from None


def _record(line: bytes, only_model: str | None, text_max: int) -> GoldRecord:
    """Return the record of a line; ValueError with the rule that it breaks."""
    try:
        document = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        message = f"must be a JSON object: {error}"
        raise ValueError(message) from None
    if not isinstance(document, dict):
        message = "must be a JSON object"
        raise ValueError(message)
    key = _text(document, "key", only_model)
    instance_id = _text(document, "id" if "id" in document else "instance_id", None)
    label = _text(document, "label", None)
    if len(label.encode()) > text_max or not label.isprintable():
        message = f"has the class {label[:100]!r}; a class must have 1 to {text_max:,} bytes, all printable"
        raise ValueError(message)
    features = _object(document, "features")
    if not features:
        message = 'must have features, such as {"amount": 12.5}'
        raise ValueError(message)
    cells = {name: _cell(name, value) for name, value in list(features.items())[:CELLS_MAX]}
    rules = None if document.get("explanation") is None else _text(document, "explanation", None)
    shares = _object(document, "probabilities")
    if not all(isinstance(share, int | float) and 0 <= share <= 1 for share in shares.values()):
        message = 'must have "probabilities" from 0 to 1, by class'
        raise ValueError(message)
    prediction = None if document.get("prediction") is None else _text(document, "prediction", None)
    left_out = max(0, len(features) - CELLS_MAX)
    return GoldRecord(
        key, instance_id, label, cells, prediction, rules and rules[:RULES_MAX], shares, left_out
    )


def _text(document: Mapping[str, Any], name: str, default: str | None) -> str:
    text = document.get(name, default)
    if not isinstance(text, str) or not text:
        shown = "" if text is None else f", not {text!r}"
        message = f'must have "{name}", a text that is not empty{shown}'
        raise ValueError(message)
    return text


def _object(document: Mapping[str, Any], name: str) -> dict[str, Any]:
    members = document.get(name) or {}
    if not isinstance(members, dict):
        message = f'must have an object as "{name}"'
        raise ValueError(message)
    return members


def _cell(name: str, value: Any) -> Cell:
    if isinstance(value, str):
        return value[:TEXT_MAX]
    if value is None:
        return None
    if isinstance(value, int | float):
        return float(value)
    message = (
        f"has feature {name[:100]!r} of the wrong type; it must be a number, a text, true, false or null"
    )
    raise ValueError(message)
