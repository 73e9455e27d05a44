"""Spans: records over one buffer, and columns of them whose values are made on access.

`RecordSpans` gives the place of each part of a record in the buffer, as arrays. Code that needs no arrays
uses a column as a sequence of integers, bytes or headers, like a list.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, TypeVar, cast, overload

import numpy as np
import numpy.typing as npt

from topics.columns.headers import Headers, read_headers

Ints64 = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]

OFFSET, TIMESTAMP, KEY, KEY_LENGTH, VALUE, VALUE_LENGTH, HEADERS, HEADERS_LENGTH = range(8)
"""Rows of the table of `RecordSpans`."""
ROWS: Final = 8
NULL: Final = -1
"""Length of a key or value that is null; other lengths are 0 or more."""

T = TypeVar("T")


class Column(Sequence[T], Generic[T]):
    """A sequence that equals every sequence with the same values."""

    __slots__ = ()
    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and len(other) == len(self) and list(self) == list(other)

    @abstractmethod
    def __iter__(self) -> Iterator[T]: ...

    def __repr__(self) -> str:
        return repr(list(self))


class Numbers(Column[int]):
    """Integers in an array."""

    __slots__ = ("array",)

    def __init__(self, array: Ints64) -> None:
        """array: int64[n]."""
        self.array = array

    def __len__(self) -> int:
        return len(self.array)

    def __iter__(self) -> Iterator[int]:
        return iter(self.array.tolist())

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        return np.array(self.array, dtype=dtype, copy=copy)

    @overload
    def __getitem__(self, at: int) -> int: ...
    @overload
    def __getitem__(self, at: slice) -> Numbers: ...
    def __getitem__(self, at: int | slice) -> int | Numbers:
        return Numbers(self.array[at]) if isinstance(at, slice) else int(self.array[at])


class Spans(Column[bytes | None]):
    """Keys or values: parts of a buffer."""

    __slots__ = ("_all", "_first", "buffer", "coded", "lengths", "starts")

    def __init__(self, buffer: bytes, starts: Ints64, lengths: Ints64) -> None:
        """`starts` and `lengths` are int64[n]; the length NULL means null, with any start."""
        self.buffer = buffer
        self.starts = starts
        self.lengths = lengths
        self.coded: CodedKeys | None = None
        """The distinct values, once they have been computed."""
        self._all: list[bytes | None] | None = None
        self._first: set[int] | None = None

    @classmethod
    def of(cls, values: Sequence[bytes | None]) -> Spans:
        """Return spans over one new buffer that holds the values."""
        if isinstance(values, Spans):
            return values
        listed = list(values)
        buffer = b"".join(filter(None, listed))
        spans = cls(buffer, *_laid_out(listed, 0))
        spans._all = listed
        return spans

    @classmethod
    def adjacent(cls, buffer: bytes, starts: Ints64) -> Spans:
        """Return values that lie directly after each other; `starts` is int64[n + 1], with the end last."""
        return cls(buffer, starts[:-1], starts[1:] - starts[:-1])

    @classmethod
    def joined(cls, parts: Sequence[Spans]) -> Spans:
        """Return the values of all parts (at least one), concatenated."""
        lengths = np.concatenate([part.lengths for part in parts])
        if all(part.buffer is parts[0].buffer for part in parts):
            return cls(parts[0].buffer, np.concatenate([part.starts for part in parts]), lengths)
        ends = np.cumsum([0, *(len(part.buffer) for part in parts)]).tolist()
        starts = [part.starts + end for part, end in zip(parts, ends, strict=False)]
        return cls(b"".join([part.buffer for part in parts]), np.concatenate(starts), lengths)

    def __len__(self) -> int:
        return len(self.starts)

    def __iter__(self) -> Iterator[bytes | None]:
        if self._all is None:
            self._all = self._made()
        return iter(self._all)

    def _made(self) -> list[bytes | None]:
        if self.coded is not None:
            return list(map(self.coded.distinct.__getitem__, self.coded.codes.tolist()))
        buffer, lengths = self.buffer, self.lengths
        spans = zip(self.starts.tolist(), (self.starts + lengths).tolist(), strict=True)
        if (lengths >= 0).all():
            return [buffer[start:end] for start, end in spans]
        return [buffer[start:end] if end >= start else None for start, end in spans]

    @overload
    def __getitem__(self, at: int) -> bytes | None: ...
    @overload
    def __getitem__(self, at: slice) -> Spans: ...
    def __getitem__(self, at: int | slice) -> bytes | Spans | None:
        if isinstance(at, slice):
            return Spans(self.buffer, self.starts[at], self.lengths[at])
        start, length = int(self.starts[at]), int(self.lengths[at])
        return None if length < 0 else self.buffer[start : start + length]

    def coded_one_by_one(self) -> CodedKeys:
        """Return the distinct values in order of first occurrence, without a kernel."""
        number = {value: code for code, value in enumerate(dict.fromkeys(self))}
        return CodedKeys([*number], np.fromiter(map(number.__getitem__, self), np.int32, len(self)))

    def where(self, chosen: npt.NDArray[Any]) -> Spans:
        """Return the values that a mask or an array of indices selects."""
        return Spans(self.buffer, self.starts[chosen], self.lengths[chosen])

    def first_bytes(self) -> set[int] | None:
        """Return the set of first bytes; None if a value is null or empty."""
        if self._first is None:  # readers and encoders of these values both need it
            if np.count_nonzero(self.lengths <= 0):
                return None
            self._first = set(self.bytes[self.starts].tobytes())
        return self._first

    @property
    def total(self) -> int:
        """Bytes of all values."""
        return int(np.maximum(self.lengths, 0).sum())

    @property
    def any_null(self) -> bool:
        """Whether a value is null."""
        return bool(np.count_nonzero(self.lengths < 0))

    @property
    def longest(self) -> int:
        """Bytes of the longest value."""
        return int(self.lengths.max(initial=0))

    @property
    def bytes(self) -> Bytes:
        """The buffer as an array, uint8[...], read only."""
        return np.frombuffer(self.buffer, dtype=np.uint8)


class Texts(Column[str]):
    """Texts in a buffer; a string is made on access."""

    __slots__ = ("spans",)

    def __init__(self, spans: Spans) -> None:
        """`spans` are UTF-8, none of them null."""
        self.spans = spans

    def __len__(self) -> int:
        return len(self.spans)

    def __iter__(self) -> Iterator[str]:
        buffer, starts = self.spans.buffer, self.spans.starts
        ends = (starts + self.spans.lengths).tolist()
        return iter([_text(buffer[at:end]) for at, end in zip(starts.tolist(), ends, strict=True)])

    @overload
    def __getitem__(self, at: int) -> str: ...
    @overload
    def __getitem__(self, at: slice) -> Texts: ...
    def __getitem__(self, at: int | slice) -> str | Texts:
        return Texts(self.spans[at]) if isinstance(at, slice) else _text(self.spans[at] or b"")

    @property
    def most_bytes(self) -> int:
        """Bytes of the longest text."""
        return self.spans.longest

    def taken(self, rows: Ints64) -> Texts:
        """Return the texts of these rows (int64[m])."""
        return Texts(self.spans.where(rows))


def _text(encoded: bytes) -> str:
    return encoded.decode("utf-8", "surrogatepass")


class CodedKeys(NamedTuple):
    """Keys of n records as numbers."""

    distinct: list[bytes | None]
    codes: npt.NDArray[np.int32]
    """int32[n] into `distinct`."""


class AlikeHeaders(NamedTuple):
    """Headers of n records, in which equal headers are read once."""

    distinct: list[Headers]
    codes: npt.NDArray[np.int32]
    """int32[n] into `distinct`."""


class HeaderSpans(Column[Headers]):
    """Headers as Kafka writes them into a buffer: their number, then names and values with their lengths."""

    __slots__ = ("_alike", "written")

    def __init__(self, buffer: bytes, starts: Ints64, lengths: Ints64) -> None:
        """`starts` and `lengths` are int64[n]; a length of 0 means no headers."""
        self.written = Spans(buffer, starts, lengths)
        self._alike: AlikeHeaders | None = None

    def __len__(self) -> int:
        return len(self.written)

    def __iter__(self) -> Iterator[Headers]:
        if self.are_none:
            return iter([()] * len(self))
        alike = self.alike
        return map(alike.distinct.__getitem__, alike.codes.tolist())

    @property
    def are_none(self) -> bool:
        """Whether no record has headers."""
        return not np.count_nonzero(self.written.lengths)

    @property
    def alike(self) -> AlikeHeaders:
        """The distinct headers: most producers give all of their records the same headers."""
        if self._alike is None:
            coded = self.written.coded or self.written.coded_one_by_one()
            self._alike = AlikeHeaders([self._read(raw or b"") for raw in coded.distinct], coded.codes)
        return self._alike

    @property
    def counts(self) -> Ints64:
        """int64[n], the number of headers of each record, for which no header is read."""
        written = self.written
        counts = np.zeros(len(self), dtype=np.int64)
        records = np.flatnonzero(written.lengths)
        at, shift = written.starts[records], 0
        while len(records):  # one byte of each number a turn
            byte = written.bytes[at].astype(np.int64)
            counts[records] |= (byte & 0x7F) << shift
            goes_on = byte >= 0x80
            records, at, shift = records[goes_on], at[goes_on] + 1, shift + 7
        return counts >> 1  # zigzag, and never negative

    @overload
    def __getitem__(self, at: int) -> Headers: ...
    @overload
    def __getitem__(self, at: slice) -> HeaderSpans: ...
    def __getitem__(self, at: int | slice) -> Headers | HeaderSpans:
        written = self.written
        if isinstance(at, slice):
            return HeaderSpans(written.buffer, written.starts[at], written.lengths[at])
        return self._read(written[at] or b"")

    @staticmethod
    def _read(written: bytes) -> Headers:
        return read_headers(_pairs(written, 0)) if written else ()


def between(ends: Ints64) -> Ints64:
    """Return int64[n - 1]: the differences of neighbours; `np.diff` takes five times as long for a few."""
    return ends[1:] - ends[:-1]


def distinct_headers(headers: Sequence[Headers]) -> Sequence[Headers]:
    """Return a list of headers that contains the headers of every record."""
    if not isinstance(headers, HeaderSpans):
        return headers
    return [()] if headers.are_none else headers.alike.distinct


class RecordSpans:
    """n records over one buffer, with the place of each part of each record; nothing changes them."""

    __slots__ = ("buffer", "content_bytes", "header_bytes", "table", "value_bytes")

    value_bytes: int  # of all values
    header_bytes: int  # of all headers, 0: no record has any
    content_bytes: int  # both together

    def __init__(self, buffer: bytes, table: Ints64, value_bytes: int = -1, header_bytes: int = -1) -> None:
        """`table` is int64[8, n] with the rows OFFSET, TIMESTAMP and so on; lengths of keys and values may be
        NULL. `value_bytes`, `header_bytes`: of all records, -1: not known.
        """
        self.buffer = buffer
        self.table = table
        if value_bytes >= 0:
            self.value_bytes, self.header_bytes = value_bytes, header_bytes
            self.content_bytes = value_bytes + header_bytes

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> int:
            """Return a sum that is not computed yet: several stages of a worker need it."""
            if name == "content_bytes":
                size = self.value_bytes + self.header_bytes
            elif name in ("value_bytes", "header_bytes"):
                row = VALUE_LENGTH if name == "value_bytes" else HEADERS_LENGTH
                size = int(np.add.reduce(np.maximum(self.table[row], 0)))
            else:
                raise AttributeError(name)
            setattr(self, name, size)
            return size

    @classmethod
    def none(cls) -> RecordSpans:
        """Return an empty instance."""
        return cls(b"", np.empty((ROWS, 0), dtype=np.int64))

    @classmethod
    def of(
        cls,
        offsets: Sequence[int],
        timestamps: Sequence[int],
        keys: Sequence[bytes | None],
        values: Sequence[bytes | None],
        headers: Sequence[Headers],
    ) -> RecordSpans:
        """Return records that are given as columns."""
        table = np.empty((ROWS, len(offsets)), dtype=np.int64)
        table[OFFSET], table[TIMESTAMP] = offsets, timestamps
        written = [_written(pairs) if pairs else b"" for pairs in headers]
        end = 0
        for row, column in ((KEY, keys), (VALUE, values), (HEADERS, written)):
            table[row], table[row + 1] = _laid_out(column, end)
            end += int(np.maximum(table[row + 1], 0).sum())
        return cls(b"".join([*filter(None, keys), *filter(None, values), *written]), table)

    @classmethod
    def joined(cls, parts: Sequence[RecordSpans]) -> RecordSpans:
        """Return the records of all parts, concatenated."""
        if len(parts) == 1:
            return parts[0]
        if not parts:
            return cls.none()
        if all(part.buffer is parts[0].buffer for part in parts):
            return cls(parts[0].buffer, np.concatenate([part.table for part in parts], axis=1))
        buffers, tables, end = [], [], 0
        for part in parts:
            first, last = part.bounds()
            table = part.table.copy()
            for row in (KEY, VALUE, HEADERS):
                table[row] += end - first
            buffers.append(part.buffer[first:last])
            tables.append(table)
            end += last - first
        return cls(b"".join(buffers), np.concatenate(tables, axis=1))

    def __len__(self) -> int:
        return int(self.table.shape[1])

    def part(self, start: int, stop: int) -> RecordSpans:
        """Return records `start` to before `stop`, over the same buffer."""
        if start == 0 and stop == self.table.shape[1]:
            return self
        return RecordSpans(self.buffer, self.table[:, start:stop])

    def bounds(self) -> tuple[int, int]:
        """Return the start and the end, in the buffer, of the parts of these records."""
        starts, lengths = self.table[[KEY, VALUE, HEADERS]], self.table[[KEY + 1, VALUE + 1, HEADERS + 1]]
        is_there = lengths > 0
        if not is_there.any():
            return 0, 0
        return int(starts[is_there].min()), int((starts + lengths)[is_there].max())

    def apart(self) -> RecordSpans:
        """Return a copy of the records, which keeps no bytes of other records in memory."""
        first, last = self.bounds()
        table = self.table.copy()
        table[[KEY, VALUE, HEADERS]] -= first
        return RecordSpans(self.buffer[first:last], table, self.value_bytes, self.header_bytes)

    @property
    def offsets(self) -> Numbers:
        """Offset of each record."""
        return Numbers(self.table[OFFSET])

    @property
    def timestamps(self) -> Numbers:
        """Milliseconds since the epoch, for each record."""
        return Numbers(self.table[TIMESTAMP])

    @property
    def keys(self) -> Spans:
        """Key of each record."""
        return Spans(self.buffer, self.table[KEY], self.table[KEY_LENGTH])

    @property
    def values(self) -> Spans:
        """Value of each record."""
        return Spans(self.buffer, self.table[VALUE], self.table[VALUE_LENGTH])

    @property
    def headers(self) -> HeaderSpans:
        """Headers of each record."""
        return HeaderSpans(self.buffer, self.table[HEADERS], self.table[HEADERS_LENGTH])


def any_headers(headers: Sequence[Headers]) -> bool:
    """Whether a record has headers."""
    return not headers.are_none if isinstance(headers, HeaderSpans) else any(headers)


def header_counts(headers: Sequence[Headers]) -> Ints64:
    """Return int64[n], the number of headers of each record."""
    if isinstance(headers, HeaderSpans):
        return headers.counts
    return np.fromiter(map(len, headers), np.int64, len(headers))


def _laid_out(values: Sequence[bytes | None], at: int) -> tuple[Ints64, Ints64]:
    """Return the start of each value, and its length, if they lie directly after each other from `at` on."""
    n = len(values)
    try:
        lengths = np.fromiter(map(len, cast("Sequence[bytes]", values)), np.int64, n)
    except TypeError:  # some are null
        lengths = np.fromiter((NULL if value is None else len(value) for value in values), np.int64, n)
    starts = np.full(n, at, dtype=np.int64)
    np.cumsum(np.maximum(lengths[:-1], 0), out=starts[1:])
    starts[1:] += at
    return starts, lengths


def _pairs(buffer: bytes, at: int) -> Iterator[tuple[bytes, bytes | None]]:
    """Yield names and values of the headers that begin at `at`, which must be well formed."""
    count, at = _varint(buffer, at)
    for _ in range(count):
        length, at = _varint(buffer, at)
        name, at = buffer[at : at + length], at + length
        length, at = _varint(buffer, at)
        yield name, None if length < 0 else buffer[at : at + length]
        at += max(length, 0)


def _varint(buffer: bytes, at: int) -> tuple[int, int]:
    """Return the number that begins at `at` (zigzag, seven bits a byte), and its end."""
    number, shift = 0, 0
    while True:
        byte = buffer[at]
        at += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (number >> 1) ^ -(number & 1), at
        shift += 7


def _written(headers: Headers) -> bytes:
    """Return headers as Kafka writes them."""
    text = bytearray()
    write = text.extend
    _write_varint(write, len(headers))
    for name, value in headers:
        encoded = name.encode()
        _write_varint(write, len(encoded))
        write(encoded)
        _write_varint(write, NULL if value is None else len(value))
        write(value or b"")
    return bytes(text)


def _write_varint(write: Callable[[Iterable[int]], None], number: int) -> None:
    number = number << 1 if number >= 0 else (-number << 1) - 1
    while number >= 0x80:
        write([number & 0x7F | 0x80])
        number >>= 7
    write([number])
