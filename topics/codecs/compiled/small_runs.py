"""Small runs: plain JSON, or Avro, of several partitions, decoded in one go as if each were decoded alone.

Most of the cost of decoding a run of some tens of records does not depend on their number. So plain JSON of
all small runs is compared with the shapes at once, and the columns are cut into one part per run. A run that
is not all plain is decoded alone; so are all runs if one is not JSON. Avro is joined if all runs are by one
schema.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from itertools import pairwise
from typing import Final

import numpy as np
import numpy.typing as npt

from topics.codecs.batch import Batch
from topics.codecs.by_schema.schema_readers import avro_reader_of
from topics.codecs.compiled.keys import KeyTexts, code_headers, coded
from topics.codecs.content_types import uniform_wire
from topics.codecs.frames.schema_ids import are_before_bodies, bodies, ids_before_bodies
from topics.codecs.json.compiled.rows import code_anew
from topics.codecs.json.compiled.shaped_rows import ShapedRows
from topics.codecs.json.compiled.shapes import Shapes
from topics.codecs.limits import Limits
from topics.codecs.offset_ids import RecordIds
from topics.codecs.screening import fit, may_name_schema
from topics.columns.records import Features, Instances, Ints32, Ints64, RawRecords
from topics.columns.spans import HEADERS, KEY, OFFSET, VALUE, CodedKeys, RecordSpans, Spans, Texts, between

SMALL: Final = 200
"""Most records of a run that is joined with other runs: a larger one costs what its records cost."""

JOINED_BYTES: Final = 256 << 10
"""Most bytes of runs that are joined, including all data fetched with them, because they are copied."""


def joinable(runs: Sequence[RawRecords]) -> list[int]:
    """Return the indices of the runs that are worth joining; none if there are not several of them."""
    small = [number for number, raw in enumerate(runs) if 0 < raw.spans.table.shape[1] <= SMALL]
    if len(small) < 2:
        return []
    buffers = _buffers([runs[number].spans for number in small])
    return small if sum(map(len, buffers)) <= JOINED_BYTES else []


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
    spans, ends = _joined(joined)
    headers, values = spans.headers, spans.values
    code_headers(headers)
    if not fit(values, limits) or uniform_wire(values, headers) != "json":
        return decoded
    keys: _Keys | None = None
    for rows, plain in shapes.scan(values, limits):  # type: ignore[arg-type]
        bounds = np.searchsorted(rows, ends)
        keys = keys or _Keys(spans.keys, ends, limits, key_texts)
        columns = _Columns(plain, bounds)
        lengths = between(bounds).tolist()
        for at, raw in enumerate(joined):
            if lengths[at] == len(raw) and (own_keys := keys.of(at, raw)) is not None:
                record = np.arange(len(raw), dtype=np.int32)
                batch = Batch(raw.partition, record, raw.offsets, raw.values, *own_keys)  # type: ignore[arg-type]
                decoded[numbers[at]] = columns.part(at, batch)
    return decoded


def _buffers(parts: Sequence[RecordSpans]) -> list[bytes]:
    """Return the buffers of all parts; one that follows itself stands once."""
    first = parts[0].buffer
    return [first, *[b.buffer for a, b in pairwise(parts) if b.buffer is not a.buffer]]


def _joined(runs: Sequence[RawRecords]) -> tuple[RecordSpans, Ints64]:
    """Return the records of all runs over one buffer with all their bytes, and int64[runs + 1]: the first
    record of each run, and the end.
    """
    parts = [raw.spans for raw in runs]
    tables = [part.table for part in parts]
    table = np.concatenate(tables, axis=1)
    ends = np.array([0, *[own.shape[1] for own in tables]]).cumsum()
    buffers = _buffers(parts)
    if len(buffers) > 1:
        number = np.cumsum([0, *[b.buffer is not a.buffer for a, b in pairwise(parts)]])
        begins = np.cumsum([0, *map(len, buffers[:-1])])
        table[[KEY, VALUE, HEADERS]] += begins[number].repeat(between(ends))
    sizes = sum([part.value_bytes for part in parts]), sum([part.header_bytes for part in parts])
    return RecordSpans(buffers[0] if len(buffers) == 1 else b"".join(buffers), table, *sizes), ends


class JoinedRuns:
    """Instances of several runs, all of one shape, as columns of n rows; a row is a record.

    The rows are in the order of the runs. A model key of a run is a *pair*: the same key in two runs makes
    two pairs, because partitions have separate models.
    """

    def __init__(self, runs: Sequence[RawRecords], spans: RecordSpans, rows: ShapedRows, keys: _Keys) -> None:
        """`spans` are the records of all runs; `rows` and `keys` were read from them."""
        self.runs, self.spans, self.rows = runs, spans, rows
        self.ends = keys.ends
        """int64[runs + 1]: the first row of each run, and the end."""
        self.texts, self.key_bytes, self.pair, self.pairs = keys.pairs()
        """Model key of each pair, as text and as bytes; int32[n], the pair of each row; int64[runs + 1]: the
        first pair of each run, and the end.
        """
        self.n_pairs = between(self.pairs)
        """int64[runs]: model keys of each run."""
        self.of_runs = np.array([raw.partition for raw in runs])
        """int64[runs]: the partition of each run."""
        names, label = rows.classes()
        self.label_values = sorted(names)
        """Class names, in their order."""
        self.label = label
        """int32[n] into label_values, -1: no label."""
        if self.label_values != names:
            rank = {name: number for number, name in enumerate(self.label_values)}
            self.label = np.array([*map(rank.__getitem__, names), -1], dtype=np.int32)[label]
        self.weight = rows.weights()
        self.features = rows.matrix()
        self.ids = rows.given_ids()
        """The ids that producers gave all rows; None: some have none, or have escapes."""

    def __len__(self) -> int:
        return len(self.label)

    @cached_property
    def partitions(self) -> Ints64:
        """int64[n]: the partition of each row."""
        return self.of_runs.repeat(between(self.ends))

    @cached_property
    def all_ids(self) -> Texts | RecordIds | list[str]:
        """The ids of all rows."""
        if self.ids is not None:
            return self.ids
        if not self.rows.has_ids:
            return RecordIds(self.partitions, self.spans.table[OFFSET])
        return [id_ for number in range(len(self.runs)) for id_ in self.part(number).ids]

    def ids_of(self, rows: Ints64) -> Texts | RecordIds | list[str]:
        """Return the ids of some rows (int64[m])."""
        ids = self.all_ids
        return [ids[row] for row in rows.tolist()] if isinstance(ids, list) else ids.taken(rows)

    def part(self, number: int) -> Instances:
        """Return the instances of a run."""
        raw, cut = self.runs[number], slice(int(self.ends[number]), int(self.ends[number + 1]))
        first, stop = int(self.pairs[number]), int(self.pairs[number + 1])
        keys, key, n = self.texts[first:stop], self.pair[cut] - np.int32(first), cut.stop - cut.start
        record = np.arange(n, dtype=np.int32)
        batch = Batch(raw.partition, record, raw.offsets, raw.values, keys, key)  # type: ignore[arg-type]
        names, label = _by_occurrence(self.label_values, self.label[cut])
        return Instances(
            record=record,
            row=np.zeros(n, dtype=np.int32),
            keys=keys,
            key=key,
            ids=self.rows.part(cut).ids(batch) if self.ids is None else self.ids[cut],
            label_values=names,
            label=label,
            weight=self.weight[cut],
            features=[_features_of(self.features, cut)],
            blocks=np.empty((0, 3), dtype=np.int32),
            malformed=[],
        )


def join_runs(
    runs: Sequence[RawRecords], limits: Limits, shapes: Shapes, key_texts: KeyTexts
) -> tuple[JoinedRuns, list[int]] | None:
    """Return plain JSON of one shape, or Avro of one schema, as columns over several runs, and the indices of
    these runs.

    The other runs, and all if the result is None, have to be decoded otherwise.
    """
    several = joinable(runs)
    numbers = [
        number for number in several if runs[number].schemas is None or not may_name_schema(runs[number])
    ]
    if several and not numbers:
        return _join_avro(runs, several, limits, key_texts)
    while len(numbers) > 1:
        joined = [runs[number] for number in numbers]
        spans, ends = _joined(joined)
        headers, values = spans.headers, spans.values
        code_headers(headers)
        if not fit(values, limits) or uniform_wire(values, headers) != "json":
            return None
        scanned = shapes.scan(values, limits)  # type: ignore[arg-type]
        if not scanned:
            return None
        rows, plain = max(scanned, key=lambda shaped: len(shaped[0]))
        keys = _Keys(spans.keys, ends, limits, key_texts)
        is_whole = keys.are_good & (between(np.searchsorted(rows, ends)) == between(ends))
        if is_whole.all():
            return JoinedRuns(joined, spans, plain, keys), numbers
        numbers = [number for number, whole in zip(numbers, is_whole.tolist(), strict=True) if whole]
    return None


def _join_avro(
    runs: Sequence[RawRecords], numbers: list[int], limits: Limits, key_texts: KeyTexts
) -> tuple[JoinedRuns, list[int]] | None:
    """Return the runs whose records a kernel can read by the first schema of the first run."""
    schema = next(iter((runs[numbers[0]].schemas or {}).values()), None)
    reader = None if schema is None else avro_reader_of(schema)
    if schema is None or reader is None:
        return None
    while len(numbers) > 1:
        joined = [runs[number] for number in numbers]
        spans, ends = _joined(joined)
        code_headers(spans.headers)
        if not fit(spans.values, limits) or not are_before_bodies(spans.headers):
            return None
        has_schema = ids_before_bodies(spans.values) == schema.id
        good = np.logical_and.reduceat(has_schema, ends[:-1])
        if good.all():
            read = reader.simple_instances(bodies(spans.values), limits)
            if read is None:
                return None
            rows, is_simple = read
            keys = _Keys(spans.keys, ends, limits, key_texts)
            good = keys.are_good & np.logical_and.reduceat(is_simple, ends[:-1])
            if good.all():
                return JoinedRuns(joined, spans, rows, keys), numbers
        numbers = [number for number, is_good in zip(numbers, good.tolist(), strict=True) if is_good]
    return None


def _by_occurrence(names: list[str], label: Ints32) -> tuple[list[str], Ints32]:
    """Return the class names that occur, in the order of their first rows, and label as codes of these."""
    order = [code for code in dict.fromkeys(label.tolist()) if code >= 0]
    own = np.full(len(names) + 1, -1, dtype=np.int32)
    own[order] = np.arange(len(order))
    return [names[code] for code in order], own[label]


class _Parts:
    """Codes of all runs, renumbered in each run by first occurrence."""

    def __init__(self, codes: Ints32, many: int, ends: Ints64) -> None:
        """`codes` is int32[n], below `many`, -1: none; `ends` is int64[runs + 1], the start of each run and
        the end.
        """
        self._ends = ends
        self._codes, self._order = np.empty((2, len(codes)), dtype=np.int32)
        self._counts = np.empty(len(ends) - 1, dtype=np.int64)
        code_anew(codes, ends, np.full(many, -1, dtype=np.int32), self._codes, self._order, self._counts)

    def of(self, number: int) -> tuple[list[int], Ints32]:
        """Return the codes that occur in a run, and int32[m], indices into them."""
        start, stop = self._ends[number : number + 2].tolist()
        return self._order[start : start + int(self._counts[number])].tolist(), self._codes[start:stop]

    def pairs(self) -> tuple[list[int], Ints32, Ints64]:
        """Return the code of each pair of run and code, int32[n], the pair of each row, and int64[runs + 1],
        the first pair of each run, and the end; no code is -1.
        """
        ends, lengths, pairs = self._ends, between(self._ends), np.zeros_like(self._ends)
        self._counts.cumsum(out=pairs[1:])
        is_first = np.arange(ends[-1]) < (ends[:-1] + self._counts).repeat(lengths)
        pair = self._codes + pairs[:-1].astype(np.int32).repeat(lengths)
        return self._order[is_first].tolist(), pair, pairs


class _Keys:
    """The model keys of all runs."""

    def __init__(self, keys: Spans, ends: Ints64, limits: Limits, key_texts: KeyTexts) -> None:
        self.ends = ends
        self._texts, self._codes, flaws = key_texts(keys, limits)
        self._bytes = None if flaws else coded(keys).distinct
        self._parts = _Parts(self._codes, len(self._texts), ends)

    @property
    def are_good(self) -> npt.NDArray[np.bool_]:
        """bool[runs]: whether no key of a run is bad."""
        good = np.ones(len(self.ends) - 1, dtype=np.bool_)
        if self._bytes is None:
            bad = np.flatnonzero(self._codes < 0)
            good[np.searchsorted(self.ends, bad, side="right") - 1] = False
        return good

    def pairs(self) -> tuple[list[str], list[bytes | None], Ints32, Ints64]:
        """Return text and bytes of the key of each pair of run and key, the pair of each row, and the first
        pair of each run; all keys are good.
        """
        assert self._bytes is not None
        codes, pair, pairs = self._parts.pairs()
        return [self._texts[code] for code in codes], [self._bytes[code] for code in codes], pair, pairs

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
            features=[_features_of(self._features, cut)],
            blocks=np.empty((0, 3), dtype=np.int32),
            malformed=[],
        )


def _features_of(features: Features, cut: slice) -> Features:
    """Return the features of the rows of a slice."""
    values = features.values[cut]
    parts = {column: cells[cut] for column, cells in features.strings.items()}
    strings = {column: cells for column, cells in parts.items() if cells.count(None) < len(cells)}
    return Features(features.names, np.arange(len(values), dtype=np.int64), values, strings)
