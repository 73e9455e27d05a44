"""Small runs: plain JSON of several partitions, decoded in one go, each with the result of decoding it alone.

Most of the cost of decoding a run of some tens of records does not depend on their number. So plain JSON of
all small runs is compared with the shapes at once, and the columns are cut into one part per run. A run that
is not all plain is decoded alone; so are all runs if one is not JSON.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from topics.codecs.batch import Batch
from topics.codecs.compiled.keys import KeyTexts, code_headers, coded
from topics.codecs.content_types import uniform_wire
from topics.codecs.json.compiled.rows import code_anew
from topics.codecs.json.compiled.shaped_rows import ShapedRows
from topics.codecs.json.compiled.shapes import Shapes
from topics.codecs.limits import Limits
from topics.codecs.screening import fit
from topics.columns.records import Features, Instances, Ints32, Ints64, RawRecords
from topics.columns.spans import HEADERS, KEY, VALUE, CodedKeys, RecordSpans, Spans

SMALL: Final = 200
"""Most records of a run that is joined with other runs: a larger one costs what its records cost."""

JOINED_BYTES: Final = 256 << 10
"""Most bytes of runs that are joined, including all data fetched with them, because they are copied."""


def joinable(runs: Sequence[RawRecords]) -> list[int]:
    """Return the indices of the runs that are worth joining; none if there are not several of them."""
    small = [number for number, raw in enumerate(runs) if 0 < len(raw) <= SMALL]
    if len(small) < 2:
        return []
    size = sum(len(runs[number].spans.buffer) for number in small)
    return small if size <= JOINED_BYTES else []


def small_runs(
    runs: Sequence[RawRecords], limits: Limits, shapes: Shapes, key_texts: KeyTexts
) -> list[Instances | None]:
    """Return the instances of each run; None for a run that has to be decoded alone.

    The results share buffers, so each of them keeps the bytes of all runs in memory.
    """
    decoded: list[Instances | None] = [None] * len(runs)
    numbers = joinable(runs)
    if not numbers:
        return decoded
    joined = [runs[number] for number in numbers]
    spans = _joined([raw.spans for raw in joined])
    headers, values = spans.headers, spans.values
    code_headers(headers)
    if not fit(values, limits) or uniform_wire(values, headers) != "json":
        return decoded
    ends = np.cumsum([0, *map(len, joined)])
    keys: _Keys | None = None
    for rows, plain in shapes.scan(values, limits):  # type: ignore[arg-type]
        bounds = np.searchsorted(rows, ends)
        keys = keys or _Keys(spans.keys, ends, limits, key_texts)
        columns = _Columns(plain, bounds)
        lengths = np.diff(bounds).tolist()
        for at, raw in enumerate(joined):
            if lengths[at] == len(raw) and (own_keys := keys.of(at, raw)) is not None:
                record = np.arange(len(raw), dtype=np.int32)
                batch = Batch(raw.partition, record, raw.offsets, raw.values, *own_keys)  # type: ignore[arg-type]
                decoded[numbers[at]] = columns.part(at, batch)
    return decoded


def _joined(parts: Sequence[RecordSpans]) -> RecordSpans:
    """Return the records of all parts over one buffer with all their bytes."""
    begins = np.cumsum([0, *(len(part.buffer) for part in parts[:-1])])
    table = np.concatenate([part.table for part in parts], axis=1)
    table[[KEY, VALUE, HEADERS]] += np.repeat(begins, [len(part) for part in parts])
    return RecordSpans(b"".join([part.buffer for part in parts]), table)


class _Parts:
    """Codes of all runs, renumbered in each run by first occurrence."""

    def __init__(self, codes: Ints32, many: int, ends: Ints64) -> None:
        """`codes` is int32[n], below `many`, -1: none; `ends` is int64[runs + 1], the start of each run and
        the end.
        """
        self._ends = ends.tolist()
        self._codes = np.empty(len(codes), dtype=np.int32)
        self._order = np.empty(len(codes), dtype=np.int32)
        counts = np.empty(len(ends) - 1, dtype=np.int64)
        code_anew(codes, ends, np.full(many, -1, dtype=np.int32), self._codes, self._order, counts)
        self._counts = counts.tolist()

    def of(self, number: int) -> tuple[list[int], Ints32]:
        """Return the codes that occur in a run, and int32[m], indices into them."""
        start, stop = self._ends[number], self._ends[number + 1]
        return self._order[start : start + self._counts[number]].tolist(), self._codes[start:stop]


class _Keys:
    """The model keys of all runs."""

    def __init__(self, keys: Spans, ends: Ints64, limits: Limits, key_texts: KeyTexts) -> None:
        self._texts, codes, flaws = key_texts(keys, limits)
        self._bytes = None if flaws else coded(keys).distinct
        self._parts = _Parts(codes, len(self._texts), ends)

    def of(self, number: int, raw: RawRecords) -> tuple[list[str], Ints32] | None:
        """Return the distinct keys of a run, and int32[m], indices into them; None if a key is bad."""
        order, codes = self._parts.of(number)
        if self._bytes is None:
            if np.count_nonzero(codes < 0):
                return None
        elif isinstance(raw.keys, Spans):
            raw.keys.coded = CodedKeys([self._bytes[code] for code in order], codes)
        return [self._texts[code] for code in order], codes


class _Columns:
    """The columns of the records of one shape, over all runs."""

    def __init__(self, plain: ShapedRows, ends: Ints64) -> None:
        """`ends` is int64[runs + 1], the start of each run's records and the end."""
        self._plain, self._ends = plain, ends.tolist()
        self._ids = plain.given_ids()
        self._names, label = plain.classes()
        self._classes = _Parts(label, len(self._names), ends)
        self._weight = plain.weights()
        self._features = plain.matrix()

    def part(self, number: int, batch: Batch) -> Instances:
        """Return all records of a run, which are the rows, as instances."""
        cut = slice(self._ends[number], self._ends[number + 1])
        order, label = self._classes.of(number)
        return Instances(
            record=batch.record,
            row=np.zeros(len(batch), dtype=np.int32),
            keys=batch.keys,
            key=batch.key,
            ids=self._plain.part(cut).ids(batch) if self._ids is None else self._ids[cut],
            label_values=[self._names[code] for code in order],
            label=label,
            weight=self._weight[cut],
            features=[self._features_of(cut)],
            blocks=np.empty((0, 3), dtype=np.int32),
            malformed=[],
        )

    def _features_of(self, cut: slice) -> Features:
        values = self._features.values[cut]
        parts = {column: cells[cut] for column, cells in self._features.strings.items()}
        strings = {column: cells for column, cells in parts.items() if cells.count(None) < len(cells)}
        return Features(self._features.names, np.arange(len(values), dtype=np.int64), values, strings)
