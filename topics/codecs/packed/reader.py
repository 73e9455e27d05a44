"""Packed records to columns of instances and labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from topics.codecs.batch import Batch
from topics.codecs.cells import check_weights, label_codes
from topics.codecs.flaws import Flaw, Flaws, add_flaw, outcomes
from topics.codecs.lengths import check_cells, check_classes
from topics.codecs.limits import Limits
from topics.codecs.packed.groups import Group, group
from topics.codecs.packed.layout import (
    DECLINED,
    HAS_ANNOTATOR,
    HAS_LABEL,
    HAS_WEIGHT,
    HEADER,
    INSTANCE,
    LABEL,
    LABEL_AT,
    TEXT,
)
from topics.columns.records import Features, Floats, Instances, Ints32, Labels, Malformed
from topics.errors import Reason


@dataclass(frozen=True, slots=True, eq=False)
class _Columns:
    """The n rows of the columns that instances and labels share."""

    ids: list[str | None] | None  # None: no record has an id
    label_values: list[str]
    label: Ints32
    weight: Floats
    annotators: list[str | None]
    features: list[Features]


def read_instances(batch: Batch, limits: Limits) -> Instances:
    """Return the instances of the batch."""
    good, columns, bad = _read(batch, INSTANCE, limits)
    ids: Sequence[str | None] | None = columns.ids
    if ids is None:
        ids = good.default_ids()
    elif None in ids:
        ids = [
            default if cell is None else cell for cell, default in zip(ids, good.default_ids(), strict=True)
        ]
    return Instances(
        record=good.record,
        row=np.zeros(len(good), dtype=np.int32),
        keys=good.keys,
        key=good.key,
        ids=ids,  # type: ignore[arg-type]
        label_values=columns.label_values,
        label=columns.label,
        weight=columns.weight,
        features=columns.features,
        blocks=np.empty((0, 3), dtype=np.int32),
        malformed=bad,
    )


def read_labels(batch: Batch, limits: Limits) -> Labels:
    """Return the labels of the batch."""
    good, columns, bad = _read(batch, LABEL, limits)
    return Labels(
        record=good.record,
        row=np.zeros(len(good), dtype=np.int32),
        keys=good.keys,
        key=good.key,
        ids=columns.ids or [],  # type: ignore[arg-type]  # a label without id is flawed
        label_values=columns.label_values,
        label=columns.label,
        weight=columns.weight,
        annotators=columns.annotators,
        features=columns.features,
        malformed=bad,
    )


def _read(batch: Batch, kind: int, limits: Limits) -> tuple[Batch, _Columns, list[Malformed]]:
    flaws: Flaws = {}
    columns = _columns(batch, kind, flaws)
    check_cells("an id", columns.ids or (), limits.text_max_bytes, flaws)
    check_cells("an annotator", columns.annotators, limits.text_max_bytes, flaws)
    check_classes(columns.label_values, columns.label, limits, flaws)
    if not flaws:
        return batch, columns, []
    # Flaws are rare. A record is bad by its own content alone, so a second pass finds no further flaws.
    good, _ = batch.without(flaws)
    return good, _columns(good, kind, {}), outcomes(batch.record, flaws)


def _columns(batch: Batch, kind: int, flaws: Flaws) -> _Columns:
    n = len(batch)
    groups = group(batch.values, kind, flaws)
    for each in groups:
        _check(each, flaws)
    weight = np.ones(n)
    for each in groups:
        if each.header.flags & HAS_WEIGHT:
            weight[each.rows] = each.column(HEADER.size, "<f8")[:, 0]
    check_weights(weight, flaws)
    label_values, label = label_codes(_scatter(groups, n, _labels, flaws), flaws)
    return _Columns(
        ids=_scatter(groups, n, _ids, flaws) if any(each.header.id_bytes for each in groups) else None,
        label_values=label_values,
        label=label,
        weight=weight,
        annotators=_scatter(groups, n, _annotators, flaws),
        features=_features(groups, flaws),
    )


def _check(group: Group, flaws: Flaws) -> None:
    """Note the flaw of every record of the group if their common header has one."""
    header = group.header
    if header.kind == INSTANCE:
        if not header.count:
            add_flaw(flaws, group.rows, Flaw(Reason.MISSING_FIELD, "count=0: features must not be empty"))
        return
    declined, labelled = header.flags & DECLINED, header.flags & HAS_LABEL
    if not header.id_bytes:
        add_flaw(
            flaws,
            group.rows,
            Flaw(Reason.MISSING_FIELD, "id is missing: the id of the instance the label is for"),
        )
    if declined and labelled:
        add_flaw(flaws, group.rows, Flaw(Reason.WRONG_TYPE, "a declined label must not carry a label"))
    if not declined and not labelled:
        add_flaw(
            flaws, group.rows, Flaw(Reason.MISSING_FIELD, "label is missing, and the record is not declined")
        )


def _scatter(groups: Sequence[Group], n: int, column: Any, flaws: Flaws) -> list[Any]:
    """Return one cell for each row of the batch, from `column(group, flaws)`, else None."""
    if len(groups) == 1 and len(groups[0].rows) == n:
        only: list[Any] | None = column(groups[0], flaws)
        return [None] * n if only is None else only
    cells: list[Any] = [None] * n
    for each in groups:
        for row, cell in zip(each.rows.tolist(), column(each, flaws) or (), strict=False):
            cells[row] = cell
    return cells


def _labels(group: Group, flaws: Flaws) -> list[Any] | None:
    header = group.header
    if not header.flags & HAS_LABEL:
        return None
    if header.flags & TEXT:
        return group.texts("label", header.texts_at, header.texts_at + header.text_bytes, flaws)
    cells: list[Any] = group.column(LABEL_AT, "<i4")[:, 0].tolist()
    return cells


def _ids(group: Group, flaws: Flaws) -> list[str] | None:
    stop = group.header.known_bytes
    return group.texts("id", stop - group.header.id_bytes, stop, flaws) if group.header.id_bytes else None


def _annotators(group: Group, flaws: Flaws) -> list[str] | None:
    start, stop = group.header.known_bytes, group.table.shape[1]
    if not group.header.flags & HAS_ANNOTATOR or start == stop:
        return None
    return group.texts("annotator", start, stop, flaws)


def _features(groups: Sequence[Group], flaws: Flaws) -> list[Features]:
    """Return the vectors of all groups, one matrix for each count of values."""
    same: dict[int, list[Group]] = {}
    for each in groups:
        if each.header.count:
            same.setdefault(each.header.count, []).append(each)
    found = []
    for alike in same.values():
        rows = np.concatenate([each.rows for each in alike])
        values = np.concatenate([each.values() for each in alike])
        if len(alike) > 1:
            order = np.argsort(rows)
            rows, values = rows[order], values[order]
        bad = np.isinf(values)
        if bad.any():
            for row, column in zip(*np.nonzero(bad), strict=True):
                flaw = Flaw(
                    Reason.NOT_FINITE, f"feature {column} is infinite; NaN stands for a missing value"
                )
                flaws.setdefault(int(rows[row]), flaw)
        found.append(Features(None, rows, values))
    return found
