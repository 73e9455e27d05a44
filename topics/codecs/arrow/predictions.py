"""Predictions to one block, and one block to predictions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from topics.codecs.arrow.ids import Ids
from topics.codecs.arrow.metadata import inspect
from topics.codecs.flaws import Flaw
from topics.codecs.prediction_row import DEAD, NO_MEMBERS, PredictionRow
from topics.columns.members import Block, Member, given, members
from topics.columns.records import Predictions

END_OF_STREAM: Final = b"\xff\xff\xff\xff\x00\x00\x00\x00"
MAX_KEPT_CLASSES: Final = 256  # the header of a stream with more classes is not worth caching

Mask = npt.NDArray[np.bool_] | None


def write_predictions(predictions: Predictions) -> list[bytes]:
    """Return all rows as one block in the same order; a dead-lettered row is null in every column."""
    dead: Mask = predictions.version == DEAD
    if not np.any(dead):
        dead = None
    classes = predictions.classes
    optional = [(member, cells) for member, cells in given(predictions) if is_written(member, classes)]
    kinds = tuple((member.name, member.block) for member, _ in optional)
    beginning = (_kept if len(classes) <= MAX_KEPT_CLASSES else _beginning)(classes, kinds)
    columns = [
        _ids(predictions.ids, dead),
        pa.DictionaryArray.from_arrays(_codes(predictions, dead), beginning.classes),
        pa.array(predictions.version, mask=dead),
    ]
    if classes:
        children = [pa.array(predictions.probability[:, code]) for code in range(len(classes))]
        mask = None if dead is None else pa.array(dead)
        columns.append(pa.StructArray.from_arrays(children, names=list(classes), mask=mask))
    for member, cells in optional:
        values = [None if cell is None else _block_cell(member, cell) for cell in cells]
        columns.append(pa.array(values, _type(member.block, classes), mask=dead))
    batch = pa.RecordBatch.from_arrays(columns, schema=beginning.schema)
    return [b"".join((beginning.text, batch.serialize(), END_OF_STREAM))]


def is_written(member: Member, classes: tuple[str, ...]) -> bool:
    """Return whether blocks have a column of a member; a struct has at least one class."""
    return member.block is not None and (member.block != "shares" or bool(classes))


def _block_cell(member: Member, cell: Any) -> Any:
    """Return a cell as blocks have it: numbers by class with all digits."""
    return cell if member.block == "shares" else member.to_json(cell)


def _type(block: Block | None, classes: tuple[str, ...]) -> pa.DataType:
    """Return the type of the column of a member."""
    if block == "shares":
        return pa.struct([(name, pa.float64()) for name in classes])
    return pa.list_(pa.string()) if block == "strings" else pa.string()


def _ids(ids: Sequence[str], dead: Mask) -> pa.Array:
    if isinstance(ids, Ids) and dead is None:
        return ids.column
    return pa.array(list(ids), pa.string(), mask=dead)


def _codes(predictions: Predictions, dead: Mask) -> pa.Array:
    none = predictions.prediction < 0
    if dead is not None:
        none |= dead
    return pa.array(predictions.prediction, pa.int32(), mask=none if none.any() else None)


class _Beginning(NamedTuple):
    """The part that all blocks with the same classes share."""

    schema: pa.Schema
    classes: pa.Array
    text: bytes  # the messages before the rows: schema and dictionary of the classes


def _beginning(classes: tuple[str, ...], optional: tuple[tuple[str, Block | None], ...]) -> _Beginning:
    """Return the beginning of blocks with these classes and optional columns (name, form)."""
    names = pa.array(classes, pa.string())
    fields: list[Any] = [
        ("id", pa.string()),
        ("label", pa.dictionary(pa.int32(), pa.string())),
        ("version", pa.int64()),
    ]
    if classes:
        fields.append(("probabilities", pa.struct([(name, pa.float64()) for name in classes])))
    fields += [(name, _type(block, classes)) for name, block in optional]
    schema = pa.schema(fields)
    labels = pa.DictionaryArray.from_arrays(pa.nulls(1, pa.int32()), names)
    columns = [labels if name == "label" else pa.nulls(1, kind) for name, kind in fields]
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema) as writer:
        writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=schema))
    text: bytes = sink.getvalue().to_pybytes()
    outline = inspect(text, max_rows=1)
    assert not isinstance(outline, Flaw)
    return _Beginning(schema, names, text[: outline.batches[0]])


_kept = lru_cache(maxsize=256)(_beginning)


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
    columns = {
        column: [None if cell is None else member.from_json(cell) for cell in table[member.name].to_pylist()]
        for column, member in members(Predictions).items()
        if member.block is not None and member.name in names
    }
    optional: list[Mapping[str, Any]] = [
        dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)
    ]
    versions = [DEAD if version is None else version for version in table["version"].to_pylist()]
    cells = (table["id"].to_pylist(), table["label"].to_pylist(), [shares or {} for shares in probabilities])
    rest = optional or [NO_MEMBERS] * outline.rows
    return [PredictionRow(*row) for row in zip(*cells, versions, rest, strict=True)]
