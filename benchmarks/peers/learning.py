"""River's Hoeffding tree on records: decode, predict, learn, encode, as in a hand-written loop."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

import orjson
import pyarrow as pa
from river.tree import HoeffdingTreeClassifier

from benchmarks.rig.stream import N_ATTRIBUTES, NAMES

Row = tuple[str, dict[str, float], str | None]  # id, features by name, label

# The packed layout (docs/records.md), as far as the backlog needs it.
LABEL_AT, LABEL = 12, struct.Struct("<i")
VALUES_AT, VALUES = 16, struct.Struct(f"<{N_ATTRIBUTES}d")


class Models:
    """One River model per model key, all with the options of the worker's H-Tree."""

    def __init__(self, leaf: str) -> None:
        self._leaf = leaf
        self._models: dict[bytes | None, HoeffdingTreeClassifier] = {}

    def answer(self, key: bytes | None, rows: Iterator[Row]) -> list[dict[str, Any]]:
        """Test, then train, row after row; return the content of the prediction record of each row."""
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


def rows(form: str, identity: str, value: Any) -> Iterator[Row]:
    if form == "json":
        record = orjson.loads(value)
        yield record.get("id", identity), record["features"], record.get("label")
    elif form == "packed":
        yield from _packed_rows(identity, value)
    else:
        yield from _arrow_rows(identity, value)


def _packed_rows(identity: str, value: bytes) -> Iterator[Row]:
    (label,) = LABEL.unpack_from(value, LABEL_AT)
    yield identity, dict(zip(NAMES, VALUES.unpack_from(value, VALUES_AT), strict=True)), str(label)


def _arrow_rows(identity: str, value: bytes) -> Iterator[Row]:
    with pa.ipc.open_stream(value) as reader:
        table = reader.read_all()
    labels = table.column("label").to_pylist()
    columns = [table.column(name).to_pylist() for name in NAMES]
    for number, (label, *x) in enumerate(zip(labels, *columns, strict=True)):
        yield f"{identity}-{number}", dict(zip(NAMES, x, strict=True)), label
