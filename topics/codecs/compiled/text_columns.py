"""Text columns: texts as spans over one buffer; a kernel writes numbered texts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from topics.codecs.offset_ids import OffsetIds
from topics.columns.records import Ints64
from topics.columns.spans import Spans, Texts
from topics.columns.texts import NUMBER_BYTES, write_numbered


def numbered(head: bytes, numbers: Ints64) -> Spans:
    """Return n texts, each the head and a number (int64[n])."""
    n = len(numbers)
    if n == 0 or int(numbers.min()) < 0:
        return Spans.of([b"%s%d" % (head, number) for number in numbers.tolist()])
    out = np.empty(n * (len(head) + NUMBER_BYTES), dtype=np.uint8)
    starts = np.empty(n + 1, dtype=np.int64)
    write_numbered(np.frombuffer(bytearray(head), dtype=np.uint8), np.ascontiguousarray(numbers), out, starts)
    return Spans.adjacent(out[: starts[n]].tobytes(), starts)


def text_spans(texts: Sequence[str]) -> Spans:
    """Return n texts in UTF-8."""
    if isinstance(texts, Texts):
        return texts.spans
    if isinstance(texts, OffsetIds):
        return numbered(texts.head.encode(), texts.offsets)
    given = list(texts)
    text = "".join(given)
    if not text.isascii():
        return Spans.of([each.encode() for each in given])
    starts = np.zeros(len(given) + 1, dtype=np.int64)
    np.cumsum(np.fromiter(map(len, given), dtype=np.int64, count=len(given)), out=starts[1:])
    return Spans.adjacent(text.encode(), starts)


def repeated(values: Sequence[bytes], codes: Ints64) -> Spans:
    """Return n values, with each distinct value stored once; `codes` is int64[n], indices into `values`."""
    return Spans.of(values).where(codes)
