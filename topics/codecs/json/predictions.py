"""Predictions to JSON, and JSON to predictions."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any

import numpy as np
import orjson

from topics.codecs.json.probabilities import STEPS, TEXTS
from topics.codecs.prediction_row import PredictionRow
from topics.columns.members import Member, given, members
from topics.columns.records import Ints32, Predictions

UNTRAINED = b',"untrained":true'
"""Follows version 0: the answer of a model that has learned no label."""

KEPT_BYTES = 12  # bytes of a text and its key, per class


class _Middles:
    """The part of an answer between id and version, for models with these classes.

    A tree gives few different answers (one per leaf, and its distribution moves slowly), so the text is
    cached.
    """

    MOST = 50_000  # texts in the cache; with many classes and Bayes leaves a text rarely comes twice
    MOST_BYTES = 16 << 20  # bytes of these texts: each has every class name

    def __init__(self, classes: tuple[str, ...]) -> None:
        self._classes = [_json(name) for name in classes]
        members = ",".join(f"{name.replace('%', '%%')}:%s" for name in self._classes)
        self._template = f'","label":%s,"probabilities":{{{members}}},"version":'
        self._kept: dict[bytes, str] = {}
        size = len(self._template) + KEPT_BYTES * (len(classes) + 2)
        self._most = min(self.MOST, self.MOST_BYTES // size)

    def of(self, prediction: Ints32, steps: Ints32) -> list[str]:
        """Return n texts; steps: int32[n, K], probabilities in steps of 0.0001."""
        table = np.column_stack([prediction, steps]).astype(np.int32)
        keys: list[bytes] = table.view(f"V{4 * table.shape[1]}").ravel().tolist()
        kept = self._kept
        new = set(keys).difference(kept)
        if len(kept) + len(new) > self._most:
            kept.clear()
            new = set(keys)
        for key in new:
            kept[key] = self._text(np.frombuffer(key, dtype=np.int32).tolist())
        return [kept[key] for key in keys]

    def _text(self, row: list[int]) -> str:
        label = "null" if row[0] < 0 else self._classes[row[0]]
        return self._template % (label, *[TEXTS[step] for step in row[1:]])


_middles = lru_cache(maxsize=256)(_Middles)


def write_predictions(predictions: Predictions) -> list[bytes]:
    """Return one object for each row, probabilities with 4 decimals.

    Objects are assembled from cached texts, with one join, one encode and one split for all of them (a line
    break in a JSON string is always escaped).
    """
    if not len(predictions):
        return []
    count = len(predictions.classes)
    shares = np.clip(np.nan_to_num(predictions.probability[:, :count]), 0.0, 1.0)
    steps = np.rint(shares * STEPS).astype(np.int32)
    middles = _middles(predictions.classes).of(predictions.prediction, steps)
    ids = _escaped(list(predictions.ids))
    untrained = f"0{UNTRAINED.decode()}"
    versions = [str(version) if version else untrained for version in predictions.version.tolist()]
    columns = list(given(predictions))
    if not columns:
        lines = [f'{{"id":"{i}{m}{v}}}' for i, m, v in zip(ids, middles, versions, strict=True)]
    else:
        starts = _starts(columns, len(ids))
        lines = [f'{{{s}"id":"{i}{m}{v}}}' for s, i, m, v in zip(starts, ids, middles, versions, strict=True)]
    return "\n".join(lines).encode().split(b"\n")


def _starts(columns: Iterable[tuple[Member, list[Any]]], n: int) -> list[str]:
    """Return the optional members of n objects, with a comma after each; a row may lack any of them."""
    starts = [""] * n
    for member, cells in columns:
        values = [None if cell is None else member.to_json(cell) for cell in cells]
        starts = [
            start if value is None else f'{start}"{member.name}":{_json(value)},'
            for start, value in zip(starts, values, strict=True)
        ]
    return starts


def _escaped(ids: list[str]) -> list[str]:
    text = orjson.dumps(ids)
    if b"\\" in text:
        return [_json(name)[1:-1] for name in ids]
    return ids


def _json(cell: Any) -> str:
    return orjson.dumps(cell).decode()


def read_predictions(value: bytes) -> list[PredictionRow]:
    """Return the row of one object; KeyError, TypeError or ValueError if it is not a prediction."""
    document: dict[str, Any] = orjson.loads(value)
    probabilities = document["probabilities"]
    row = PredictionRow(
        document["id"],
        document["label"],
        probabilities,
        document["version"],
        {
            column: member.from_json(document[member.name])
            for column, member in members(Predictions).items()
            if document.get(member.name) is not None
        },
    )
    if not (isinstance(row[0], str) and isinstance(probabilities, dict) and isinstance(row[3], int)):
        message = "id must be a string, probabilities an object, version a whole number"
        raise TypeError(message)
    return [row]
