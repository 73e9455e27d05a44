"""Merging: the results of the codecs for the formats of one run, in the order of its records."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from topics.columns.records import Features, FeatureValues, Instances, Ints32, Ints64, Labels, Malformed


def merge_instances(parts: Sequence[Instances], malformed: list[Malformed]) -> Instances:
    """Return the instances of all parts in record order."""
    bad = _in_order(parts, malformed)
    if len(parts) == 1 and not bad:
        return parts[0]
    order, place = _order(parts)
    label_values, label = _labels(parts, order)
    keys, key = _keys(parts, order)
    return Instances(
        record=_column(parts, "record", order),
        row=_column(parts, "row", order),
        keys=keys,
        key=key,
        ids=_cells(parts, "ids", order),
        label_values=label_values,
        label=label,
        weight=_column(parts, "weight", order),
        features=_features(parts, place),
        blocks=_blocks(parts, place),
        malformed=bad,
    )


def merge_labels(parts: Sequence[Labels], malformed: list[Malformed]) -> Labels:
    """Return the labels of all parts in record order."""
    bad = _in_order(parts, malformed)
    if len(parts) == 1 and not bad:
        return parts[0]
    order, place = _order(parts)
    label_values, label = _labels(parts, order)
    keys, key = _keys(parts, order)
    return Labels(
        record=_column(parts, "record", order),
        row=_column(parts, "row", order),
        keys=keys,
        key=key,
        ids=_cells(parts, "ids", order),
        label_values=label_values,
        label=label,
        weight=_column(parts, "weight", order),
        annotators=_cells(parts, "annotators", order),
        features=_features(parts, place),
        malformed=bad,
    )


def merge_feature_values(parts: Sequence[FeatureValues]) -> FeatureValues:
    """Return the feature values of all parts in record order; the parts are of one run."""
    order = np.argsort(np.concatenate([part.record for part in parts]), kind="stable")
    return FeatureValues(
        record=_column(parts, "record", order),
        row=_column(parts, "row", order),
        keys=parts[0].keys,
        key=_column(parts, "key", order),
        ids=_cells(parts, "ids", order),
        values=_cells(parts, "values", order),
        unavailable=_cells(parts, "unavailable", order),
        finish=_cells(parts, "finish", order),
        malformed=_in_order(parts, []),
    )


Part = Instances | Labels | FeatureValues
Labelled = Instances | Labels


def _in_order(parts: Sequence[Part], malformed: list[Malformed]) -> list[Malformed]:
    bad = [*malformed, *(each for part in parts for each in part.malformed)]
    return sorted(bad, key=lambda each: each.record)


def _order(parts: Sequence[Part]) -> tuple[Ints64, Ints64]:
    """Return the permutation that sorts all rows by record (stable), and the new place of each row."""
    record = np.concatenate([part.record for part in parts]) if parts else np.empty(0, dtype=np.int32)
    order = np.argsort(record, kind="stable")
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    return order, place


def _column(parts: Sequence[Part], name: str, order: Ints64) -> Any:
    columns = [getattr(part, name) for part in parts]
    if not columns:
        return np.empty(0, dtype=np.float64 if name == "weight" else np.int32)
    return np.concatenate(columns)[order]


def _cells(parts: Sequence[Part], name: str, order: Ints64) -> Any:
    cells = [cell for part in parts for cell in getattr(part, name)]
    return [cells[place] for place in order.tolist()]


def _labels(parts: Sequence[Labelled], order: Ints64) -> tuple[list[str], Ints32]:
    """Return the union of the class names and the codes in it."""
    names: dict[str, int] = {}
    columns = [np.empty(0, dtype=np.int32)]
    for part in parts:
        # The last element stands for -1: no label.
        number = [names.setdefault(name, len(names)) for name in part.label_values] + [-1]
        columns.append(np.array(number, dtype=np.int32)[part.label])
    return list(names), np.concatenate(columns)[order]


def _keys(parts: Sequence[Labelled], order: Ints64) -> tuple[list[str], Ints32]:
    """Return the keys that a row has: a malformed record must not create a model."""
    if not parts:
        return [], np.empty(0, dtype=np.int32)
    used, key = np.unique(np.concatenate([part.key for part in parts])[order], return_inverse=True)
    return [parts[0].keys[number] for number in used.tolist()], key.astype(np.int32)


def _starts(parts: Sequence[Part]) -> list[int]:
    starts = [0]
    for part in parts:
        starts.append(starts[-1] + len(part))
    return starts


def _features(parts: Sequence[Labelled], place: Ints64) -> list[Features]:
    return [
        Features(each.names, place[start + each.rows], each.values, each.strings)
        for start, part in zip(_starts(parts), parts, strict=False)
        for each in part.features
    ]


def _blocks(parts: Sequence[Instances], place: Ints64) -> Ints32:
    tables = [np.empty((0, 3), dtype=np.int32)]
    for start, part in zip(_starts(parts), parts, strict=False):
        table = part.blocks.copy()
        if len(table):
            # The rows of a block stay together: they have one record number, and the sort is stable.
            table[:, 1] = place[start + table[:, 1]]
        tables.append(table)
    merged = np.concatenate(tables)
    ordered: Ints32 = merged[np.argsort(merged[:, 0], kind="stable")]
    return ordered
