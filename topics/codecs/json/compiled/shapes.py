"""Shapes of a topic: a small cache, learned from records that the codec reads.

When it is full, the least recently used shape is dropped.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from topics.codecs.crowding import SMALL
from topics.codecs.json.compiled.rows import NO_SHAPE, scan
from topics.codecs.json.compiled.shape import TEXTS, Members, Shape, shape_of
from topics.codecs.json.compiled.shaped_rows import ShapedRows
from topics.codecs.limits import Limits
from topics.columns.records import Ints64
from topics.columns.spans import Spans

MAX_SHAPES: Final = 8


@dataclass(frozen=True, slots=True, eq=False)
class _Known:
    """Known shapes, and the arrays of them that the kernel reads."""

    shapes: tuple[Shape, ...]
    tables: tuple[Any, Any, Any, Any]
    width: int

    @classmethod
    def of(cls, shapes: tuple[Shape, ...]) -> _Known:
        texts = [text for shape in shapes for text in shape.texts]
        starts = np.cumsum([0, *map(len, texts)], dtype=np.int64)
        first = np.cumsum([0, *(len(shape.roles) for shape in shapes)], dtype=np.int64)
        roles = np.array([role for shape in shapes for role in shape.roles], dtype=np.uint8)
        is_text = np.isin(roles, TEXTS).astype(np.uint8)
        tables = (np.frombuffer(bytearray().join(texts), dtype=np.uint8), starts, first, is_text)
        return cls(shapes, tables, max((len(shape.roles) for shape in shapes), default=0))


class Shapes:
    """The recent shapes of a topic's records, shared by all of its partitions.

    Partitions may be read in several threads: the state is replaced as a whole, and a shape that is lost
    because two threads learn at once is learned again.
    """

    def __init__(self, members: Members) -> None:
        self._members = members
        self._known = _Known.of(())
        self._used: dict[Shape, int] = {}
        """The last run with a record of a shape."""
        self._run = 0

    def __len__(self) -> int:
        return len(self._known.shapes)

    def scan(self, values: Sequence[bytes], limits: Limits) -> list[tuple[Ints64, ShapedRows]]:
        """Return the simple records by shape: int64[m], ascending, and their values."""
        self._run += 1
        known = self._known
        if not known.shapes:
            return []
        n, spans = len(values), Spans.of(values)
        lengths = spans.lengths
        shapes = np.empty(n, dtype=np.int16)
        cells = np.empty((n, known.width), dtype=np.int64)
        kinds = np.empty((n, known.width), dtype=np.uint8)
        scan(spans.bytes, spans.starts, lengths, *known.tables, shapes, cells, kinds)
        shapes[lengths > SMALL] = NO_SHAPE  # the codec counts their values first
        found = []
        for number, shape in enumerate(known.shapes):
            rows = (shapes == number).nonzero()[0]
            if not len(rows):
                continue
            self._used[shape] = self._run
            every = len(rows) == n
            shaped = ShapedRows(
                shape, spans.buffer, cells if every else cells[rows], kinds if every else kinds[rows]
            )
            good = shaped.are_simple(self._members, limits)
            if np.count_nonzero(good) < len(good):
                rows, shaped = rows[good], shaped.where(good)
            if len(rows):
                found.append((rows, shaped))
        return found

    def learn(self, record: bytes, limits: Limits) -> None:
        """Add the shape of a record that the codec has read, if the record has a new shape."""
        shape, known = shape_of(record, self._members, limits), self._known.shapes
        if shape is None or shape in known:
            return
        if len(known) == MAX_SHAPES:
            oldest = min(known, key=lambda each: self._used.get(each, 0))
            known = tuple(each for each in known if each != oldest)
            self._used.pop(oldest, None)
        self._used[shape] = self._run
        self._known = _Known.of((*known, shape))
