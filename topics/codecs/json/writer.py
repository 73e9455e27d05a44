"""Columns of instances and labels, and commands, to JSON."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import repeat
from typing import Any

from topics.codecs.json.lines import chunks, objects, write_documents
from topics.columns.records import Command, Features, Floats

Cell = dict[str, Any] | list[Any]

EVERY = slice(None)


def feature_cells(features: Features, rows: slice = EVERY) -> list[Cell]:
    """Return the features of rows as JSON cells: by name, or by position for features without names."""
    lists: list[Any] = features.values[rows].tolist()
    for column, cells in features.strings.items():
        for row, cell in zip(lists, cells[rows], strict=True):
            if cell is not None:
                row[column] = cell
    if features.names is None:
        return lists
    return list(map(dict, map(zip, repeat(features.names), lists)))


def scattered_cells(features: Sequence[Features], n: int) -> list[Cell | None]:
    """Return the features of n rows; None for a row in none of the groups."""
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
    texts: list[bytes] = []
    for rows in chunks(len(features)):
        members: dict[str, Iterable[Any]] = {}
        if ids is not None:
            members["id"] = ids[rows]
        members["features"] = feature_cells(features, rows)
        if labels is not None:
            members["label"] = labels[rows]
        if weights is not None:
            members["weight"] = weights[rows].tolist()
        texts += write_documents(objects(members))
    return texts


def write_labels(
    ids: Sequence[str],
    labels: Sequence[str | None],
    weights: Floats | None,
    annotators: Sequence[str | None] | None,
    features: Features | None,
) -> list[bytes]:
    """Return one object for each row; a null label means declined."""
    texts: list[bytes] = []
    for rows in chunks(len(ids)):
        members: dict[str, Iterable[Any]] = {"id": ids[rows], "label": labels[rows]}
        if None in labels[rows]:
            members["declined"] = [True if label is None else None for label in labels[rows]]
        if weights is not None:
            members["weight"] = weights[rows].tolist()
        if annotators is not None:
            members["annotator"] = annotators[rows]
        if features is not None:
            members["features"] = feature_cells(features, rows)
        texts += write_documents(objects(members))
    return texts


def write_controls(controls: Iterable[tuple[Command, Mapping[str, Any]]]) -> list[bytes]:
    """Return one object for each command."""
    return write_documents([{"command": command, **body} for command, body in controls])
