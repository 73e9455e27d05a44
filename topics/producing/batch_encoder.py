"""Batch encoder: columns of records to record batches of format v2, as a Produce request carries them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from struct import Struct
from typing import Final

import numpy as np

from topics.columns.checksum import TABLES, crc32c
from topics.columns.header_columns import HeaderColumns
from topics.columns.spans import NULL, Ints64, Spans
from topics.producing.batch_kernel import (
    ATTRIBUTES,
    BATCH_COLUMNS,
    CHECKED_FROM,
    CONTENT,
    CONTENT_LENGTH,
    COUNTED_FROM,
    CRC_AT,
    END_HEADER,
    EPOCH,
    FIRST_HEADER,
    HEAD_BYTES,
    HEADER_COLUMNS,
    KEY,
    KEY_LENGTH,
    LONGEST_VARINT,
    MOST_BYTES,
    NAME,
    NAME_LENGTH,
    PARAMETERS,
    PLACE,
    PRODUCER,
    RECORD_COLUMNS,
    TIME,
    VALUE,
    VALUE_LENGTH,
    write_batches,
)
from topics.producing.compression import NONE, compress

TRANSACTIONAL: Final = 0x10
"""Bit of the attributes of a batch."""

_LENGTH: Final = Struct(">i")
_LENGTH_AT: Final = 8
_ATTRIBUTES: Final = Struct(">h")
_CHECKSUM: Final = Struct(">I")


@dataclass(frozen=True, slots=True)
class Run:
    """n records of one topic; all columns have the same length."""

    partitions: Ints64  # int64[n]
    values: Spans
    keys: Spans
    timestamps: Ints64  # int64[n], ms since the epoch
    headers: HeaderColumns | None

    def __post_init__(self) -> None:
        """Raise ValueError if the columns do not fit together: the kernel checks no bounds."""
        _check(self)

    @property
    def n_bytes(self) -> int:
        """Bytes of keys and values, and of the values of headers."""
        of_headers = 0 if self.headers is None else self.headers.values.total
        return self.values.total + self.keys.total + of_headers

    def copied(self) -> Run:
        """Return the records in buffers that hold nothing else."""
        headers = self.headers
        if headers is not None:
            own = headers.values[int(headers.first[0]) : int(headers.first[-1])]
            name = headers.name[headers.first[0] : headers.first[-1]]
            headers = HeaderColumns(headers.names, name, _copied(own), headers.first - headers.first[0])
        return Run(self.partitions, _copied(self.values), _copied(self.keys), self.timestamps, headers)

    def where(self, records: Ints64) -> Run:
        """Return the records with these numbers."""
        return Run(
            self.partitions[records],
            self.values.where(records),
            self.keys.where(records),
            self.timestamps[records],
            None if self.headers is None else self.headers.where(records),
        )


def _copied(column: Spans) -> Spans:
    copy = Spans.of([*column])
    return Spans(copy.buffer, copy.starts, copy.lengths)  # without the objects that it was made of


@dataclass(slots=True)
class WrittenBatch:
    """A batch of records of one partition, as it is sent.

    It is never changed; `frozen` would make it three times as expensive.
    """

    topic: str
    partition: int
    count: int  # number of records
    wire: bytes
    deadline: float = float("inf")  # the time until which it must be delivered, by the event loop's clock


@dataclass(frozen=True, slots=True)
class BatchForm:
    """The properties of all batches of a producer."""

    producer: int
    epoch: int
    most_bytes: int  # of a batch with more than one record, before compression
    codec: int = NONE  # its number in the attributes of a batch
    is_transactional: bool = True
    level: int = -1  # of the compression; -1: the usual one of the codec
    deadline: float = float("inf")  # of all batches that are written now


def write_runs(
    topic: str, runs: Sequence[Run], sequences: dict[tuple[str, int], int], form: BatchForm
) -> list[WrittenBatch]:
    """Return the records of runs as batches: ascending partitions, records of a partition in their order.

    `sequences` holds the next sequence number of each (topic, partition), 0 if absent; it is updated.
    """
    records, headers, data = _tables(runs)
    n = len(records)
    if n == 0:
        return []
    partitions, records[:, PLACE] = np.unique(records[:, PLACE], return_inverse=True)
    records = records[np.argsort(records[:, PLACE], kind="stable")]
    places = [(topic, partition) for partition in partitions.tolist()]
    following = np.array([sequences.get(place, 0) for place in places], dtype=np.int64)
    parameters = np.zeros(PARAMETERS, dtype=np.int64)
    parameters[PRODUCER], parameters[EPOCH], parameters[MOST_BYTES] = (
        form.producer,
        form.epoch,
        form.most_bytes,
    )
    parameters[ATTRIBUTES] = TRANSACTIONAL if form.is_transactional else 0
    batches = np.empty((n, BATCH_COLUMNS), dtype=np.int64)
    out = np.empty(_room(records, headers), dtype=np.uint8)
    buffer = np.frombuffer(data, dtype=np.uint8)
    n_batches = write_batches(buffer, records, headers, following, parameters, batches, out, TABLES)
    sequences.update(zip(places, following.tolist(), strict=True))
    written = []
    for at, start, end, count in batches[:n_batches].tolist():
        wire = out[start:end].tobytes()
        if form.codec != NONE:
            wire = compressed(wire, form.codec, form.level)
        written.append(WrittenBatch(topic, places[at][1], count, wire, form.deadline))
    return written


def compressed(wire: bytes, codec: int, level: int = -1) -> bytes:
    """Return a plain batch with its records compressed, or unchanged if that would not make it smaller."""
    records = compress(wire[HEAD_BYTES:], codec, level)
    if len(records) >= len(wire) - HEAD_BYTES:
        return wire
    whole = bytearray(wire[:HEAD_BYTES] + records)
    (attributes,) = _ATTRIBUTES.unpack_from(whole, CHECKED_FROM)
    _ATTRIBUTES.pack_into(whole, CHECKED_FROM, attributes | codec)
    return sealed(whole)


def sealed(whole: bytearray) -> bytes:
    """Return a changed batch, after its length and checksum are written."""
    _LENGTH.pack_into(whole, _LENGTH_AT, len(whole) - COUNTED_FROM)
    checked = np.frombuffer(whole, dtype=np.uint8)
    _CHECKSUM.pack_into(whole, CRC_AT, crc32c(checked, CHECKED_FROM, len(whole), TABLES))
    return bytes(whole)


def _room(records: Ints64, headers: Ints64) -> int:
    """Return bytes that suffice for all batches, if each record has its own."""
    of_records = int(np.maximum(records[:, [VALUE_LENGTH, KEY_LENGTH]], 0).sum())
    counts = records[:, END_HEADER] - records[:, FIRST_HEADER]
    of_headers = int(counts.sum()) * 2 * LONGEST_VARINT
    if len(headers):
        ends = np.zeros(len(headers) + 1, dtype=np.int64)
        np.cumsum(np.maximum(headers[:, [NAME_LENGTH, CONTENT_LENGTH]], 0).sum(axis=1), out=ends[1:])
        of_headers += int((ends[records[:, END_HEADER]] - ends[records[:, FIRST_HEADER]]).sum())
    return of_records + of_headers + len(records) * (HEAD_BYTES + 7 * LONGEST_VARINT)


class _Data:
    """Buffers that are joined into one, each of them once."""

    def __init__(self) -> None:
        self._starts: dict[int, int] = {}  # by the id of a buffer, which `_buffers` keeps alive
        self._buffers: list[bytes] = []
        self._end = 0

    def start_of(self, buffer: bytes) -> int:
        """Return where a buffer begins."""
        if id(buffer) not in self._starts:
            self._starts[id(buffer)] = self._end
            self._buffers.append(buffer)
            self._end += len(buffer)
        return self._starts[id(buffer)]

    def joined(self) -> bytes:
        """Return all buffers, concatenated."""
        return self._buffers[0] if len(self._buffers) == 1 else b"".join(self._buffers)


def _tables(runs: Sequence[Run]) -> tuple[Ints64, Ints64, bytes]:
    """Return the tables of records and headers of `write_batches`, and the data that they point to.

    Column PLACE holds partitions.
    """
    data = _Data()
    records = [np.zeros((0, RECORD_COLUMNS), dtype=np.int64)]
    headers = [np.zeros((0, HEADER_COLUMNS), dtype=np.int64)]
    n_headers = 0
    for run in runs:
        table = np.zeros((len(run.values), RECORD_COLUMNS), dtype=np.int64)
        for at, column in ((VALUE, run.values), (KEY, run.keys)):
            table[:, at] = column.starts + data.start_of(column.buffer)
            table[:, at + 1] = column.lengths
        table[:, TIME], table[:, PLACE] = run.timestamps, run.partitions
        if run.headers is not None:
            table[:, FIRST_HEADER] = run.headers.first[:-1] + n_headers
            table[:, END_HEADER] = run.headers.first[1:] + n_headers
            headers.append(_header_table(run.headers, data))
            n_headers += len(headers[-1])
        records.append(table)
    return np.concatenate(records), np.concatenate(headers), data.joined()


def _header_table(columns: HeaderColumns, data: _Data) -> Ints64:
    names = Spans.of([name.encode() for name in columns.names])
    table = np.empty((len(columns.name), HEADER_COLUMNS), dtype=np.int64)
    table[:, NAME] = (names.starts + data.start_of(names.buffer))[columns.name]
    table[:, NAME_LENGTH] = names.lengths[columns.name]
    table[:, CONTENT] = columns.values.starts + data.start_of(columns.values.buffer)
    table[:, CONTENT_LENGTH] = columns.values.lengths
    return table


def _check(run: Run) -> None:
    """Raise ValueError if the columns of a run do not fit together."""
    n = len(run.values)
    lengths = {"keys": len(run.keys), "timestamps": len(run.timestamps), "partitions": len(run.partitions)}
    columns = {"values": run.values, "keys": run.keys}
    if run.headers is not None:
        first, m = run.headers.first, len(run.headers.name)
        lengths["headers"] = len(run.headers)
        columns["values of headers"] = run.headers.values
        if len(run.headers.values) != m or first[0] < 0 or first[-1] > m or (np.diff(first) < 0).any():
            message = f"headers: first must rise from 0 to at most {m}, the number of names and of values"
            raise ValueError(message)
    for name, length in lengths.items():
        if length != n:
            message = f"{name}={length} must be one for each of the {n} records"
            raise ValueError(message)
    for name, column in columns.items():
        ends = column.starts + np.maximum(column.lengths, 0)
        is_given = column.lengths != NULL
        if is_given.any() and (
            column.starts[is_given].min() < 0
            or column.lengths.min() < NULL
            or ends[is_given].max() > len(column.buffer)
        ):
            message = f"{name}: every value must lie in its buffer of {len(column.buffer)} bytes"
            raise ValueError(message)
    if n and run.partitions.min() < 0:
        message = f"partition={run.partitions.min()} must be 0 or more"
        raise ValueError(message)
