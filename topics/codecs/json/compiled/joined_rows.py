"""Joining: parts of one format that several readers have decoded, in the order of their records."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from topics.codecs.batch import Batch
from topics.columns.records import Features, Instances, Ints32, Ints64, Labels
from topics.columns.spans import Spans, Texts

Parts = Sequence[Instances | Labels]


def record_order(parts: Parts) -> Ints64:
    """Return the permutation that sorts all rows by record."""
    return np.argsort(np.concatenate([part.record for part in parts]))


def joined_columns(parts: Parts, batch: Batch, order: Ints64) -> dict[str, Any]:
    """Return the columns that instances and labels share; `order` is the permutation of all rows."""
    label_values, label = _classes(parts, order)
    return {
        "record": np.concatenate([part.record for part in parts])[order],
        "row": np.zeros(len(order), dtype=np.int32),
        "keys": batch.keys,
        "key": np.concatenate([part.key for part in parts])[order],
        "ids": _ids(parts, order),
        "label_values": label_values,
        "label": label,
        "weight": np.concatenate([part.weight for part in parts])[order],
        "features": _features(parts, order),
        "malformed": [outcome for part in parts for outcome in part.malformed],
    }


def _ids(parts: Parts, order: Ints64) -> Sequence[str]:
    """Return the ids of all rows in their order."""
    texts = [part.ids for part in parts]
    columns = [column.spans for column in texts if isinstance(column, Texts)]
    if len(columns) == len(texts):
        return Texts(Spans.joined(columns).where(order))
    ids = [text for column in texts for text in column]
    return [ids[row] for row in order.tolist()]


def _classes(parts: Parts, order: Ints64) -> tuple[list[str], Ints32]:
    """Return the class names in order of appearance, and int32[n] into them (-1: no label)."""
    names: dict[str, int] = {}
    columns = []
    for part in parts:
        # The last element stands for -1: no label.
        numbers = [names.setdefault(name, len(names)) for name in part.label_values]
        columns.append(np.array([*numbers, -1], dtype=np.int32)[part.label])
    label: Ints32 = np.concatenate(columns)[order]
    seen, first = np.unique(label, return_index=True)
    appearing = seen[np.argsort(first)]
    appearing = appearing[appearing >= 0]
    rank = np.full(len(names) + 1, -1, dtype=np.int32)
    rank[appearing] = np.arange(len(appearing))
    every = list(names)
    return [every[code] for code in appearing.tolist()], rank[label]


def _features(parts: Parts, order: Ints64) -> list[Features]:
    """Return one group for each list of names, or number of unnamed values, in order of appearance."""
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    starts = np.cumsum([0, *map(len, parts)])[:-1].tolist()
    groups = [
        (place[start + features.rows], features)
        for start, part in zip(starts, parts, strict=True)
        for features in part.features
    ]
    alike: dict[tuple[str, ...] | int, list[tuple[Ints64, Features]]] = {}
    for rows, features in sorted(groups, key=lambda group: int(group[0][0])):
        names = features.values.shape[1] if features.names is None else features.names
        alike.setdefault(names, []).append((rows, features))
    return [_group(same) for same in alike.values()]


def _group(same: list[tuple[Ints64, Features]]) -> Features:
    if len(same) == 1:
        rows, only = same[0]
        return Features(only.names, rows, only.values, only.strings)
    rows = np.concatenate([group[0] for group in same])
    order = np.argsort(rows)
    strings: dict[int, list[str | None]] = {}
    for column in sorted({column for _, features in same for column in features.strings}):
        cells: list[str | None] = []
        for _, features in same:
            cells += features.strings.get(column) or [None] * len(features)
        strings[column] = [cells[row] for row in order.tolist()]
    values = np.concatenate([features.values for _, features in same])[order]
    return Features(same[0][1].names, rows[order], values, strings)
