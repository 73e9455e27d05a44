"""Predictions to one block, and back."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from topics.codecs.arrow.metadata import inspect
from topics.codecs.arrow.writer import stream
from topics.codecs.flaws import Flaw
from topics.codecs.prediction_row import DEAD, PredictionRow
from topics.records import Predictions

Row = tuple[
    str | None, str | None, dict[str, float], int, str | None
]  # id, label, probabilities, version, explanation


def write_predictions(predictions: Predictions) -> list[bytes]:
    """Return all rows as one block in the same order; a dead-lettered row is null in every column."""
    dead = predictions.version == DEAD
    ids: list[str | None] = [*predictions.ids]
    for row in np.flatnonzero(dead).tolist():
        ids[row] = None
    classes = predictions.classes
    codes = pa.array(predictions.prediction, mask=dead | (predictions.prediction < 0))
    columns = {
        "id": pa.array(ids, pa.string()),
        "label": pa.DictionaryArray.from_arrays(codes, pa.array(classes, pa.string())),
        "version": pa.array(predictions.version, mask=dead),
    }
    if classes:
        children = [pa.array(predictions.probability[:, code]) for code in range(len(classes))]
        columns["probabilities"] = pa.StructArray.from_arrays(
            children, names=list(classes), mask=pa.array(dead)
        )
    if predictions.explanation is not None:
        columns["explanation"] = pa.array(predictions.explanation, pa.string(), mask=dead)
    return [stream(columns)]


def read_predictions(value: bytes) -> list[PredictionRow]:
    """Return the rows of one block; ValueError or KeyError if it does not hold predictions."""
    outline = inspect(value, max_rows=2**31)
    if isinstance(outline, Flaw):
        raise ValueError(outline.detail)
    with pa.ipc.open_stream(value) as reader:
        table = reader.read_all()
    table.validate(full=True)
    empty = [None] * outline.rows
    names = table.schema.names
    probabilities = table["probabilities"].to_pylist() if "probabilities" in names else empty
    explanations = table["explanation"].to_pylist() if "explanation" in names else empty
    versions = [DEAD if version is None else version for version in table["version"].to_pylist()]
    cells = (table["id"].to_pylist(), table["label"].to_pylist(), [each or {} for each in probabilities])
    return [PredictionRow(*row) for row in zip(*cells, versions, explanations, strict=True)]
