"""Packed forms: runs of packed instances or labels to columns, with one kernel call per form."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from topics.codecs.batch import Batch
from topics.codecs.json.compiled.rows import LENGTH_BITS, text_codes
from topics.codecs.limits import Limits
from topics.codecs.packed.compiled.packed import (
    ANNOTATOR,
    ANNOTATOR_BYTES,
    COUNT,
    FLAGS,
    ID,
    ID_BYTES,
    LABEL,
    LABEL_BYTES,
    PARTS,
    VALUE_BYTES,
    WEIGHT,
    read_records,
)
from topics.codecs.packed.layout import HAS_ANNOTATOR, HAS_LABEL, INSTANCE, TEXT
from topics.codecs.packed.layout import LABEL as LABEL_KIND
from topics.columns.distinct import distinct
from topics.columns.records import Features, Floats, Instances, Ints32, Ints64, Labels
from topics.columns.spans import Spans, Texts

MAX_FORMS: Final = 4
"""Forms of a run; records of further forms are left to the codec."""
_LONGEST: Final = (1 << LENGTH_BITS) - 1

Flags = npt.NDArray[np.bool_]


def read_instances(batch: Batch, limits: Limits) -> tuple[list[Instances], Flags]:
    """Return a part for each of the first few forms, and a mask of the records that are left to the codec.

    The codec gets all flawed records, and those that the kernel does not support.
    """
    forms, is_rest = _forms(batch, INSTANCE, limits)
    return [form.instances(batch) for form in forms], is_rest


def read_labels(batch: Batch, limits: Limits) -> tuple[list[Labels], Flags]:
    """Return the same for labels."""
    forms, is_rest = _forms(batch, LABEL_KIND, limits)
    return [form.labels(batch) for form in forms], is_rest


def _forms(batch: Batch, kind: int, limits: Limits) -> tuple[list[_Form], Flags]:
    """Return the records of the first few forms, and a mask of the remaining records."""
    spans = Spans.of(batch.values)
    is_rest = np.ones(len(batch), dtype=np.bool_)
    rows, forms = np.arange(len(batch), dtype=np.int64), []
    for _ in range(MAX_FORMS):
        read, others = _read(spans, kind, rows, min(limits.text_max_bytes, limits.class_max_bytes, _LONGEST))
        if read is not None and len(read):
            is_rest[read.rows] = False
            forms.append(read)
        if not len(others):
            break
        rows = others
    return forms, is_rest


class _Form:
    """Records of one form, as the kernel has read them."""

    def __init__(self, spans: Spans, rows: Ints64, flags: int, values: Floats, parts: Ints64) -> None:
        """`rows` is int64[n]; `values` is float64[n, count]; `parts` is int64[n, PARTS]."""
        self.rows = rows
        self._spans = spans
        self._flags = flags
        self._values = values
        self._parts = parts

    def __len__(self) -> int:
        return len(self.rows)

    def instances(self, batch: Batch) -> Instances:
        """Return the records as instances; `batch` holds the records of all forms."""
        blocks = np.empty((0, 3), dtype=np.int32)
        return Instances(**self._common(batch), features=[self._features()], blocks=blocks)

    def labels(self, batch: Batch) -> Labels:
        """Return the records as labels; `batch` holds the records of all forms."""
        features = [self._features()] if self._values.shape[1] else []
        return Labels(**self._common(batch), annotators=self._annotators(), features=features)

    def _features(self) -> Features:
        return Features(None, np.arange(len(self), dtype=np.int64), self._values)

    def _annotators(self) -> list[str | None]:
        if not self._flags & HAS_ANNOTATOR:
            return [None] * len(self)
        starts, lengths = self._parts[:, ANNOTATOR], self._parts[:, ANNOTATOR_BYTES]
        names, codes = self._coded(starts, lengths)
        by_code: list[str | None] = [*names, None]  # the last name is for code -1
        return [by_code[code] for code in codes.tolist()]

    def _common(self, batch: Batch) -> dict[str, Any]:
        """Return the columns that instances and labels share."""
        n = len(self)
        own = batch
        if n < len(batch):
            chosen = np.zeros(len(batch), dtype=np.bool_)
            chosen[self.rows] = True
            own = batch.where(chosen)
        label_values, label = self._labels()
        return {
            "record": own.record,
            "row": np.zeros(n, dtype=np.int32),
            "keys": own.keys,
            "key": own.key,
            "ids": self._ids(own),
            "label_values": label_values,
            "label": label,
            "weight": np.ascontiguousarray(self._parts[:, WEIGHT]).view(np.float64),
            "malformed": [],
        }

    def _labels(self) -> tuple[list[str], Ints32]:
        """Return the class names in order of appearance, and int32[n] into them (-1: no label)."""
        n, labels = len(self), self._parts[:, LABEL]
        if not self._flags & HAS_LABEL:
            return [], np.full(n, -1, dtype=np.int32)
        if not self._flags & TEXT:
            first, code = distinct(labels)
            return [str(number) for number in labels[first].tolist()], code.astype(np.int32)
        return self._coded(labels, self._parts[:, LABEL_BYTES])

    def _coded(self, starts: Ints64, lengths: Ints64) -> tuple[list[str], Ints32]:
        """Return the distinct texts in order of appearance, and int32[n] into them (-1: no bytes)."""
        n = len(self)
        codes, places = np.empty(n, dtype=np.int32), np.empty(n, dtype=np.int64)
        table = np.full(1 << (2 * n).bit_length(), -1, dtype=np.int64)
        named = np.where(lengths > 0, (starts << LENGTH_BITS) | lengths, -1)
        found = text_codes(self._spans.bytes, named, table, codes, places)
        return self._texts(places[:found] >> LENGTH_BITS, places[:found] & _LONGEST), codes

    def _ids(self, batch: Batch) -> Sequence[str]:
        starts, lengths = self._parts[:, ID], self._parts[:, ID_BYTES]
        if lengths.all():
            return Texts(Spans(self._spans.buffer, starts, lengths))
        if not lengths.any():
            return batch.default_ids()
        return [
            text or default
            for text, default in zip(self._texts(starts, lengths), batch.default_ids(), strict=True)
        ]

    def _texts(self, starts: Ints64, lengths: Ints64) -> list[str]:
        buffer = self._spans.buffer
        ends = (starts + lengths).tolist()
        return [buffer[start:end].decode() for start, end in zip(starts.tolist(), ends, strict=True)]


def _read(spans: Spans, kind: int, rows: Ints64, longest: int) -> tuple[_Form | None, Ints64]:
    """Return the records with the form of the first good record (None: there is none), and the records with
    other forms.
    """
    m, form = len(rows), np.zeros(3, dtype=np.int64)
    others, rows = np.empty(m + 1, dtype=np.int64), rows.copy()
    where = (spans.bytes, spans.starts, spans.lengths, kind, longest, rows, form)
    read_records(*where, np.empty((m, 0), dtype=np.int64), np.empty((0, PARTS), dtype=np.int64), others)
    if not form[VALUE_BYTES]:
        return None, rows[:0]
    size = int(form[COUNT] * form[VALUE_BYTES])
    # Each record of this form contains its values, so a large count in one record does not reserve room for
    # all.
    room = min(m, int(spans.lengths[rows].sum()) // size) if size else m
    values = np.empty((room, int(form[COUNT])), dtype=np.int64)
    parts = np.empty((room, PARTS), dtype=np.int64)
    n = read_records(*where, values, parts, others)
    read = _Form(spans, rows[:n], int(form[FLAGS]), values[:n].view(np.float64), parts[:n])
    return read, others[: others[m]].copy()
