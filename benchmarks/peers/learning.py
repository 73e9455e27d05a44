"""River's Hoeffding tree behind a record: decode, predict, learn, encode, as a hand-written loop does it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson
from river.tree import HoeffdingTreeClassifier

Row = tuple[str, dict[str, float], str | None]  # id, features by name, label

PACKED_HEADER = 16  # bytes before the vector; layout in docs/records.md


class Models:
    """One River model per model key, all with the options of the worker's H-Tree."""

    def __init__(self, leaf: str) -> None:
        self._leaf = leaf
        self._models: dict[bytes | None, HoeffdingTreeClassifier] = {}

    def answer(self, key: bytes | None, rows: Iterator[Row]) -> list[dict[str, Any]]:
        """Test, then train, row after row; return what a prediction record says of each."""
        model = self._models.get(key)
        if model is None:
            model = self._models[key] = HoeffdingTreeClassifier(
                grace_period=200, delta=1e-7, tau=0.05, leaf_prediction=self._leaf
            )
        answers = []
        for identity, features, label in rows:
            probability = model.predict_proba_one(features)
            prediction = max(probability, key=probability.__getitem__) if probability else None
            answers.append({"id": identity, "label": prediction, "probabilities": probability})
            if label is not None:
                model.learn_one(features, label)
        return answers


def rows(format: str, identity: str, value: bytes) -> Iterator[Row]:
    """Yield the rows of one record value."""
    if format == "json":
        record = orjson.loads(value)
        yield record.get("id", identity), record["features"], record.get("label")
    elif format == "packed":
        yield from _packed_rows(identity, value)
    else:
        yield from _arrow_rows(identity, value)


def _packed_rows(identity: str, value: bytes) -> Iterator[Row]:
    raise NotImplementedError


def _arrow_rows(identity: str, value: bytes) -> Iterator[Row]:
    raise NotImplementedError
