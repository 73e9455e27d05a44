"""Columns of instances and labels, and commands, to JSON."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import repeat
from typing import Any

import orjson

from topics.records import Command, Features, Floats

Cell = dict[str, Any] | list[Any]


def feature_cells(features: Features) -> list[Cell]:
    """Return the features of each row as JSON has them: by name, or by position where they have no names."""
    rows: list[Any] = features.values.tolist()
    for column, cells in features.strings.items():
        for row, cell in zip(rows, cells, strict=True):
            if cell is not None:
                row[column] = cell
    if features.names is None:
        return rows
    return [dict(zip(features.names, row, strict=True)) for row in rows]


def scattered_cells(features: Sequence[Features], n: int) -> list[Cell | None]:
    """Return the features of n rows; None for a row in none of the groups."""
    if len(features) == 1 and len(features[0]) == n:
        return list(feature_cells(features[0]))
    cells: list[Cell | None] = [None] * n
    for group in features:
        for row, cell in zip(group.rows.tolist(), feature_cells(group), strict=True):
            cells[row] = cell
    return cells


def write_instances(
    features: Features,
    ids: Sequence[str] | None,
    labels: Sequence[str | None] | None,
    weights: Floats | None,
) -> list[bytes]:
    """Return one object for each row."""
    members: dict[str, Iterable[Any]] = {}
    if ids is not None:
        members["id"] = ids
    members["features"] = feature_cells(features)
    if labels is not None:
        members["label"] = labels
    if weights is not None:
        members["weight"] = weights.tolist()
    return _objects(members)


def write_labels(
    ids: Sequence[str],
    labels: Sequence[str | None],
    weights: Floats | None,
    annotators: Sequence[str | None] | None,
    features: Features | None,
) -> list[bytes]:
    """Return one object for each row; a null label means declined."""
    members: dict[str, Iterable[Any]] = {"id": ids, "label": labels}
    if None in labels:
        members["declined"] = [True if label is None else None for label in labels]
    if weights is not None:
        members["weight"] = weights.tolist()
    if annotators is not None:
        members["annotator"] = annotators
    if features is not None:
        members["features"] = feature_cells(features)
    return _objects(members)


def write_controls(controls: Iterable[tuple[Command, Mapping[str, Any]]]) -> list[bytes]:
    """Return one object for each command."""
    return [orjson.dumps({"command": command, **body}) for command, body in controls]


def _objects(members: dict[str, Iterable[Any]]) -> list[bytes]:
    names = tuple(members)
    dumps = orjson.dumps
    return [
        dumps(dict(zip(keys, row, strict=True)))
        for keys, row in zip(repeat(names), zip(*members.values(), strict=True), strict=False)
    ]
