"""Arrow block: the rows of one Arrow record."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import compress

import numpy as np
import pyarrow as pa

from topics.codecs import cells
from topics.codecs.arrow import columns, ids
from topics.codecs.arrow.layout import LABEL_ROLES, ArrowLayout, layout
from topics.codecs.arrow.metadata import StreamOutline, inspect
from topics.codecs.flaws import Flaw, Flaws, add_flaw, quote
from topics.codecs.lengths import check_cells, check_classes, name_flaw
from topics.codecs.limits import Limits
from topics.columns.records import Floats, Ints32
from topics.errors import Reason

Texts = list[str | None]


@dataclass(frozen=True, slots=True, eq=False)
class DecodedBlock:
    """The good rows of a block, n of them, and the flaws of its bad rows."""

    row: Ints32  # int32[n]: row within the block
    ids: Sequence[str | None] | None  # None: the block has no column of ids
    label_values: list[str]
    label: Ints32  # int32[n]
    weight: Floats  # float64[n]
    annotators: Texts | None  # None: the block has no column of annotators
    names: tuple[str, ...]  # names of the features; () if the block has none
    values: Floats  # float64[n, d]
    strings: dict[int, Texts]
    flaws: Flaws  # by row within the block

    def __len__(self) -> int:
        return len(self.row)


def read_block(value: bytes, limits: Limits, roles: frozenset[str]) -> DecodedBlock | Flaw:
    """Return the block in a record, or the reason why it cannot be read at all."""
    outline = inspect(value, limits.block_max_rows, limits.features_max + len(roles))
    if isinstance(outline, Flaw):
        return outline
    block_layout = layout(value[: outline.schema_stop], roles)
    if isinstance(block_layout, Flaw):
        return block_layout
    flaw = name_flaw(block_layout.names, limits.text_max_bytes, limits.features_max)
    n_features = len(block_layout.names)
    cells, most = outline.rows * n_features, limits.block_max_cells(len(value))
    if flaw is None and cells > most:
        detail = f"{outline.rows:,} rows of {n_features:,} features; {len(value):,} bytes may have {most:,}"
        flaw = Flaw(Reason.TOO_LARGE, f"{detail} values: send fewer rows in a block")
    if flaw is not None:
        return flaw
    try:
        batch = _record_batch(value, outline, block_layout)
    except (pa.ArrowException, OSError) as error:
        return Flaw(Reason.BAD_BLOCK, f"the record must be an Arrow IPC stream; {error}")
    if not columns.text_bytes_within(batch, block_layout.views, len(value)):
        return Flaw(
            Reason.BAD_BLOCK, "the texts of a column must not be longer than the record: views overlap"
        )
    longest, most, size = limits.text_max_bytes, limits.block_max_text(len(value)), 0
    if columns.most_text_bytes(batch, block_layout.shared, longest) > most:
        size = columns.text_bytes(batch, block_layout.shared, longest)
    if size > most:
        detail = (
            f"its dictionaries and views unpack to {size:,} bytes of text; {len(value):,} may have {most:,}"
        )
        return Flaw(Reason.TOO_LARGE, f"{detail}: send fewer rows in a block")
    return _block(batch, block_layout, roles, limits)


def _record_batch(value: bytes, outline: StreamOutline, block_layout: ArrowLayout) -> pa.RecordBatch:
    """Return all rows as one batch.

    The bytes are not trusted: offsets, codes and texts are checked before they are used.
    """
    if block_layout.is_flat and len(outline.batches) == 1:
        batch = pa.ipc.read_record_batch(pa.py_buffer(value).slice(outline.batches[0]), block_layout.schema)
        batch.validate(full=True)
        return batch
    with pa.ipc.open_stream(value) as reader:
        batches = list(reader)
        if len(batches) > 1:
            table = pa.Table.from_batches(batches, reader.schema)
            table.validate(full=True)
            batches = table.combine_chunks().to_batches()
    batches[0].validate(full=True)
    return batches[0]


def _block(
    batch: pa.RecordBatch, block_layout: ArrowLayout, roles: frozenset[str], limits: Limits
) -> DecodedBlock:
    n, longest = batch.num_rows, limits.text_max_bytes
    flaws: Flaws = {}
    given = {name: batch.column(place) for name, place in block_layout.roles.items()}
    values, strings = _features(batch, block_layout)
    _check(values, block_layout.names, flaws)
    label_values, label = _labels(given.get("label"), n, flaws)
    names = _ids(given.get("id"), flaws)
    weight = _weights(given.get("weight"), n, flaws)
    annotators = _texts("annotator", given.get("annotator"), flaws)
    _check_lengths(names, annotators, longest, flaws)
    check_classes(label_values, label, limits, flaws)
    for column, texts in strings.items():
        check_cells(f"the value of feature {quote(block_layout.names[column])}", texts, longest, flaws)
    if roles == LABEL_ROLES:
        _check_labels(names or [], label, given.get("declined"), flaws)
    row = np.arange(n, dtype=np.int32)
    block = DecodedBlock(
        row, names, label_values, label, weight, annotators, block_layout.names, values, strings, flaws
    )
    return _good_rows(block) if flaws else block


def _features(batch: pa.RecordBatch, block_layout: ArrowLayout) -> tuple[Floats, dict[int, Texts]]:
    if block_layout.is_matrix:
        tensor = batch.select(block_layout.places).to_tensor(null_to_nan=True, row_major=True)
        return np.ascontiguousarray(tensor.to_numpy()), {}
    values = np.empty((batch.num_rows, len(block_layout.places)))
    strings: dict[int, Texts] = {}
    for number, place in enumerate(block_layout.places):
        column = batch.column(place)
        if number in block_layout.texts:
            strings[number] = columns.texts(column)
            values[:, number] = np.nan
        else:
            values[:, number] = columns.numbers(column)
    return values, strings


def _check(values: Floats, names: tuple[str, ...], flaws: Flaws) -> None:
    bad = np.isinf(values)
    if bad.any():
        for row, column in zip(*np.nonzero(bad), strict=True):
            add_flaw(flaws, [row], Flaw(Reason.NOT_FINITE, f"feature {quote(names[column])} is infinite"))


def _check_lengths(
    names: Sequence[str | None] | None, annotators: Texts | None, longest: int, flaws: Flaws
) -> None:
    if names is not None and not (isinstance(names, ids.Ids) and names.longest() <= longest):
        check_cells("an id", list(names), longest, flaws)
    if annotators is not None:
        check_cells("an annotator", annotators, longest, flaws)


def _labels(column: pa.Array | None, n: int, flaws: Flaws) -> tuple[list[str], Ints32]:
    if column is None:
        return [], np.full(n, -1, dtype=np.int32)
    return columns.labels(column, flaws)


def _ids(column: pa.Array | None, flaws: Flaws) -> Sequence[str | None] | None:
    return None if column is None else ids.given(column) or _texts("id", column, flaws)


def _texts(name: str, column: pa.Array | None, flaws: Flaws) -> Texts | None:
    return None if column is None else cells.texts(name, columns.cells(column), flaws)


def _weights(column: pa.Array | None, n: int, flaws: Flaws) -> Floats:
    if column is None:
        return np.ones(n)
    weight = columns.numbers(column).copy()
    weight[columns.plain(column).is_null().to_numpy(zero_copy_only=False)] = 1.0
    cells.check_weights(weight, flaws)
    return weight


def _check_labels(names: Sequence[str | None], label: Ints32, column: pa.Array | None, flaws: Flaws) -> None:
    declined = np.array(
        [cell is True for cell in column.to_pylist()] if column is not None else [False] * len(names)
    )
    absent = [row for row, cell in enumerate(names) if cell is None]
    both, neither = declined & (label >= 0), ~declined & (label < 0)
    add_flaw(flaws, absent, Flaw(Reason.MISSING_FIELD, "id is missing"))
    add_flaw(flaws, np.flatnonzero(both), Flaw(Reason.WRONG_TYPE, "a declined label must not carry a label"))
    add_flaw(flaws, np.flatnonzero(neither), Flaw(Reason.MISSING_FIELD, "label is missing"))


def _good_rows(block: DecodedBlock) -> DecodedBlock:
    """Return the block without its bad rows."""
    mask = np.ones(len(block), dtype=np.bool_)
    mask[list(block.flaws)] = False
    label_values, label = columns.only_used(block.label_values, block.label[mask])
    return DecodedBlock(
        row=block.row[mask],
        ids=None if block.ids is None else list(compress(block.ids, mask)),
        label_values=label_values,
        label=label,
        weight=block.weight[mask],
        annotators=None if block.annotators is None else list(compress(block.annotators, mask)),
        names=block.names,
        values=block.values[mask],
        strings={column: list(compress(texts, mask)) for column, texts in block.strings.items()},
        flaws=block.flaws,
    )
