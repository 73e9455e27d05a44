"""One block: the rows of one Arrow record."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import compress

import numpy as np
import pyarrow as pa

from topics.codecs import cells
from topics.codecs.arrow import columns
from topics.codecs.arrow.metadata import inspect
from topics.codecs.flaws import Flaw, Flaws, note
from topics.errors import Reason
from topics.records import Floats, Ints32

INSTANCE_ROLES = frozenset({"id", "label", "weight"})
LABEL_ROLES = INSTANCE_ROLES | {"declined", "annotator"}


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """The good rows of a block: n of them, and what is wrong with the others."""

    row: Ints32  # int32[n]: row within the block
    ids: list[str | None] | None  # None: the block has no column of ids
    label_values: list[str]
    label: Ints32  # int32[n]
    weight: Floats  # float64[n]
    annotators: list[str | None]
    names: tuple[str, ...]  # of the features; () where the block has none
    values: Floats  # float64[n, d]
    strings: dict[int, list[str | None]]
    flaws: Flaws  # by row within the block

    def __len__(self) -> int:
        """Return the number of good rows."""
        return len(self.row)


def read_block(value: bytes, max_rows: int, roles: frozenset[str]) -> Block | Flaw:
    """Return the block that a record carries, or why it cannot be read at all."""
    rows = inspect(value, max_rows)
    if isinstance(rows, Flaw):
        return rows
    try:
        batch = _record_batch(value)
        names = batch.schema.names
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        return Flaw(Reason.BAD_BLOCK, f"the record must be an Arrow IPC stream; {error}")
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        return Flaw(Reason.BAD_BLOCK, f"column {twice!r} must not occur twice")
    if "" in names:
        return Flaw(Reason.WRONG_TYPE, "a feature must have a name; got an empty one")
    try:
        return _block(batch, names, roles)
    except columns.UnreadableColumn as error:
        return error.flaw


def _record_batch(value: bytes) -> pa.RecordBatch:
    """Return all rows as one batch.

    The bytes are a stranger's: offsets, codes and texts are checked before anything is looked up with them.
    """
    with pa.ipc.open_stream(value) as reader:
        batches = list(reader)
        if len(batches) > 1:
            table = pa.Table.from_batches(batches, reader.schema)
            table.validate(full=True)
            batches = table.combine_chunks().to_batches()
    batches[0].validate(full=True)
    return batches[0]


def _block(batch: pa.RecordBatch, names: list[str], roles: frozenset[str]) -> Block | Flaw:
    n = batch.num_rows
    flaws: Flaws = {}
    given = {name: batch.column(place) for place, name in enumerate(names) if name in roles}
    places = [place for place, name in enumerate(names) if name not in roles]
    feature_names = tuple(names[place] for place in places)
    if not places and "annotator" not in roles:
        return Flaw(Reason.MISSING_FIELD, "the block must have at least one column of features")
    values, strings = _features(batch, places, feature_names)
    _judge(values, feature_names, flaws)
    label_values, label = _labels(given.get("label"), n, flaws)
    ids = _texts("id", given.get("id"), flaws)
    weight = _weights(given.get("weight"), n, flaws)
    annotators = _texts("annotator", given.get("annotator"), flaws) or [None] * n
    if "annotator" in roles:
        _judge_labels(ids, label, given.get("declined"), flaws)
    block = Block(
        np.arange(n, dtype=np.int32),
        ids,
        label_values,
        label,
        weight,
        annotators,
        feature_names,
        values,
        strings,
        flaws,
    )
    return _good_rows(block) if flaws else block


def _features(
    batch: pa.RecordBatch, places: list[int], names: tuple[str, ...]
) -> tuple[Floats, dict[int, list[str | None]]]:
    types = batch.schema.types
    if places and {types[place].id for place in places} == {pa.float64().id}:
        tensor = batch.select(places).to_tensor(null_to_nan=True, row_major=True)
        return np.ascontiguousarray(tensor.to_numpy()), {}
    values = np.empty((batch.num_rows, len(places)))
    strings: dict[int, list[str | None]] = {}
    for number, place in enumerate(places):
        column = batch.column(place)
        if columns.is_text(columns.cell_type(column)):
            strings[number] = columns.texts(column)
            values[:, number] = np.nan
        else:
            values[:, number] = columns.numbers(names[number], column)
    return values, strings


def _judge(values: Floats, names: tuple[str, ...], flaws: Flaws) -> None:
    bad = np.isinf(values)
    if bad.any():
        for row, column in zip(*np.nonzero(bad), strict=True):
            note(flaws, [row], Flaw(Reason.NOT_FINITE, f"feature {names[column]!r} is infinite"))


def _labels(column: pa.Array | None, n: int, flaws: Flaws) -> tuple[list[str], Ints32]:
    if column is None:
        return [], np.full(n, -1, dtype=np.int32)
    return columns.labels("label", column, flaws)


def _texts(name: str, column: pa.Array | None, flaws: Flaws) -> list[str | None] | None:
    return None if column is None else cells.texts(name, columns.cells(name, column), flaws)


def _weights(column: pa.Array | None, n: int, flaws: Flaws) -> Floats:
    if column is None:
        return np.ones(n)
    weight = columns.numbers("weight", column).copy()
    weight[columns.plain(column).is_null().to_numpy(zero_copy_only=False)] = 1.0
    cells.judge_weights(weight, flaws)
    return weight


def _judge_labels(
    ids: list[str | None] | None, label: Ints32, declined: pa.Array | None, flaws: Flaws
) -> None:
    n = len(label)
    no = np.zeros(n, dtype=np.bool_) if declined is None else columns.booleans("declined", declined)
    absent = range(n) if ids is None else [row for row, cell in enumerate(ids) if cell is None]
    note(flaws, absent, Flaw(Reason.MISSING_FIELD, "id is missing"))
    both, neither = no & (label >= 0), ~no & (label < 0)
    note(flaws, np.flatnonzero(both), Flaw(Reason.WRONG_TYPE, "a declined label must not carry a label"))
    note(flaws, np.flatnonzero(neither), Flaw(Reason.MISSING_FIELD, "label is missing"))


def _good_rows(block: Block) -> Block:
    """Return the block without its bad rows."""
    mask = np.ones(len(block), dtype=np.bool_)
    mask[list(block.flaws)] = False
    keep: Callable[[list[str | None]], list[str | None]] = lambda column: list(compress(column, mask))  # noqa: E731
    label_values, label = columns.only_used(block.label_values, block.label[mask])
    return Block(
        row=block.row[mask],
        ids=None if block.ids is None else keep(block.ids),
        label_values=label_values,
        label=label,
        weight=block.weight[mask],
        annotators=keep(block.annotators),
        names=block.names,
        values=block.values[mask],
        strings={column: keep(texts) for column, texts in block.strings.items()},
        flaws=block.flaws,
    )
