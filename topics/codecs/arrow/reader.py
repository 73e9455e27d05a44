"""Arrow records to columns of instances and labels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from topics.codecs.arrow import ids
from topics.codecs.arrow.block import DecodedBlock, read_block
from topics.codecs.arrow.layout import INSTANCE_ROLES, LABEL_ROLES
from topics.codecs.batch import Batch
from topics.codecs.flaws import Flaw, malformed
from topics.codecs.limits import Limits
from topics.columns.records import Features, Instances, Ints32, Labels, Malformed
from topics.errors import Reason

ROWS_IN_DETAIL = 3


def read_instances(batch: Batch, limits: Limits) -> Instances:
    """Return the instances of the batch: the good rows of its blocks."""
    blocks, places, bad = _blocks(batch, limits, INSTANCE_ROLES)
    starts, sizes = _extents(blocks)
    label_values, label = _labels(blocks)
    record = batch.record[places]
    return Instances(
        record=np.repeat(record, sizes),
        row=_join([block.row for block in blocks], np.int32),
        keys=batch.keys,
        key=np.repeat(batch.key[places], sizes),
        ids=ids.joined([_ids(block, batch, place) for block, place in zip(blocks, places, strict=True)]),
        label_values=label_values,
        label=label,
        weight=_join([block.weight for block in blocks], np.float64),
        features=_features(blocks, starts),
        blocks=np.column_stack([record, starts, sizes]).astype(np.int32),
        malformed=bad,
    )


def read_labels(batch: Batch, limits: Limits) -> Labels:
    """Return the labels of the batch: the good rows of its blocks."""
    blocks, places, bad = _blocks(batch, limits, LABEL_ROLES)
    starts, sizes = _extents(blocks)
    label_values, label = _labels(blocks)
    return Labels(
        record=np.repeat(batch.record[places], sizes),
        row=_join([block.row for block in blocks], np.int32),
        keys=batch.keys,
        key=np.repeat(batch.key[places], sizes),
        ids=[name for block in blocks for name in block.ids or () if name is not None],
        label_values=label_values,
        label=label,
        weight=_join([block.weight for block in blocks], np.float64),
        annotators=[name for block in blocks for name in block.annotators or [None] * len(block)],
        features=_features(blocks, starts),
        malformed=bad,
    )


def _blocks(
    batch: Batch, limits: Limits, roles: frozenset[str]
) -> tuple[list[DecodedBlock], list[int], list[Malformed]]:
    """Return the blocks that have good rows, their places in the batch, and the outcomes of the other
    records.
    """
    blocks, places, bad = [], [], []
    for place, value in enumerate(batch.values):
        record = int(batch.record[place])
        block = read_block(value, limits, roles)
        if isinstance(block, Flaw):
            bad.append(malformed(record, block))
            continue
        if block.flaws:
            bad.append(_bad_rows(record, block))
        if len(block):
            blocks.append(block)
            places.append(place)
    return blocks, places, bad


def _bad_rows(record: int, block: DecodedBlock) -> Malformed:
    flaws = sorted(block.flaws.items())
    first = "; ".join(f"row {row}: {flaw.detail}" for row, flaw in flaws[:ROWS_IN_DETAIL])
    detail = f"{len(flaws)} of {len(flaws) + len(block)} rows are bad; {first}"
    outcome = malformed(record, Flaw(Reason.BAD_ROWS, detail))
    return Malformed(record, outcome.reason, outcome.detail, tuple((row, flaw.reason) for row, flaw in flaws))


def _extents(blocks: Sequence[DecodedBlock]) -> tuple[Ints32, Ints32]:
    """Return the first row and the number of rows of each block."""
    sizes = np.array([len(block) for block in blocks], dtype=np.int32)
    return (np.cumsum(sizes) - sizes).astype(np.int32), sizes


def _join(columns: Sequence[Any], dtype: Any) -> Any:
    if len(columns) == 1:
        return columns[0]
    return np.concatenate(columns) if columns else np.empty(0, dtype=dtype)


def _labels(blocks: Sequence[DecodedBlock]) -> tuple[list[str], Ints32]:
    if len(blocks) == 1:
        return blocks[0].label_values, blocks[0].label
    names: dict[str, int] = {}
    columns = []
    for block in blocks:
        # The last element stands for -1: no label.
        number = [names.setdefault(name, len(names)) for name in block.label_values] + [-1]
        columns.append(np.array(number, dtype=np.int32)[block.label])
    return list(names), _join(columns, np.int32)


def _ids(block: DecodedBlock, batch: Batch, place: int) -> Sequence[str]:
    """Return the ids of a block of instances: given by the producer, else "<partition>-<offset>-<row>"."""
    head = f"{batch.partition}-{batch.offsets[place]}"
    if block.ids is None:
        return ids.numbered(head, block.row)
    if isinstance(block.ids, ids.Ids):
        return block.ids
    return [
        f"{head}-{row}" if cell is None else cell
        for cell, row in zip(block.ids, block.row.tolist(), strict=True)
    ]


def _features(blocks: Sequence[DecodedBlock], starts: Ints32) -> list[Features]:
    """Return the features of all blocks, joined where the columns are the same."""
    alike: dict[tuple[tuple[str, ...], tuple[int, ...]], list[int]] = {}
    for number, block in enumerate(blocks):
        if block.names:
            alike.setdefault((block.names, tuple(sorted(block.strings))), []).append(number)
    found = []
    for (names, texts), numbers in alike.items():
        rows = [
            np.arange(starts[number], starts[number] + len(blocks[number]), dtype=np.int64)
            for number in numbers
        ]
        values = [blocks[number].values for number in numbers]
        strings = {
            column: [cell for number in numbers for cell in blocks[number].strings[column]]
            for column in texts
        }
        found.append(Features(names, _join(rows, np.int64), _join(values, np.float64), strings))
    return found
