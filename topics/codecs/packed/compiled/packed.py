"""Packed records: a kernel that reads instances or labels of one form from a buffer.

A form is the part of the header that records share.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from core.kernels.jit import bits, from_bits, kernel, row_of, start_of
from topics.codecs.packed.layout import (
    DECLINED,
    HAS_ANNOTATOR,
    HAS_LABEL,
    HAS_WEIGHT,
    HEADER,
    INSTANCE_FLAGS,
    LABEL_AT,
    MAGIC,
    TEXT,
    VERSION,
)
from topics.codecs.packed.layout import LABEL as LABEL_KIND
from topics.columns.records import MAX_WEIGHT
from topics.columns.utf8 import is_text
from topics.columns.words import half_word, single, word

ID, ID_BYTES, LABEL, LABEL_BYTES, WEIGHT, ANNOTATOR, ANNOTATOR_BYTES, PARTS = range(8)
"""Columns for the fields beside the values: start and bytes of the id; the label, or start and bytes of its
name; the bits of the weight; start and bytes of the annotator (0 bytes: none).
"""
FLAGS, COUNT, VALUE_BYTES = range(3)
"""Fields of a form; without value bytes it is not set yet."""

_HEADER_BYTES: Final = HEADER.size
_LABEL_FLAGS: Final = INSTANCE_FLAGS | DECLINED | HAS_ANNOTATOR
_FIRST, _SECOND = MAGIC
_FLOAT64, _FLOAT32 = 8, 4
_EXPONENT: Final = 0x7FF << 52
_MANTISSA: Final = (1 << 52) - 1
_ONE_BITS: Final = int(np.float64(1.0).view(np.int64))


@kernel(
    "int64(Array(uint8, 1, 'C', readonly=True), int64[::1], int64[::1], int64, int64, int64[::1], "
    "int64[::1], int64[:, ::1], int64[:, ::1], int64[::1])"
)
def read_records(text, starts, lengths, kind, longest, rows, form, values, parts, others) -> int:
    """Read the records that have a form; return how many.

    `text` is uint8 and holds the records; `starts` and `lengths` are int64[n], and nothing else of the text
    is read. `kind` is INSTANCE or LABEL. `longest` bounds the bytes of an id, a label's name or an annotator.
    `rows` is int64[m], ascending, the records to read; on return its first cells are the records that were
    read. `form` is int64[3]; without value bytes it is set to the form of the first good record. `values` is
    int64[m, count] and gets the bits of float64. `parts` is int64[m, PARTS]; if it has no rows, the kernel
    ends when it has found the form. `others` is int64[m + 1] and gets the good records of other forms, and
    their number in its last cell.
    """
    bytes_ = start_of(text)
    n, m, n_others = 0, len(rows), 0
    wanted = len(parts) > 0
    for place in range(m):
        row = rows[place]
        at, size = starts[row], lengths[row]
        if not _is_good(bytes_, at, size, kind):
            continue
        flags, count, width = np.int64(bytes_[at + 5]), _count(bytes_, at), np.int64(bytes_[at + 4])
        if form[VALUE_BYTES] == 0:
            form[FLAGS], form[COUNT], form[VALUE_BYTES] = flags, count, width
        if not wanted:
            return 0
        if flags != form[FLAGS] or count != form[COUNT] or width != form[VALUE_BYTES]:
            others[n_others] = row
            n_others += 1
        elif _read(bytes_, at, size, flags, count, width, longest, row_of(values, n), row_of(parts, n)):
            rows[n] = row
            n += 1
    others[m] = n_others
    return n


@kernel
def _count(text, at: int) -> Any:
    return np.int64(half_word(text, at + 8))


@kernel
def _label(text, at: int) -> Any:
    """Return the label of a record, a signed number of 32 bits."""
    number = np.int64(half_word(text, at + LABEL_AT))
    return number - (1 << 32) if number >= 1 << 31 else number


@kernel
def _is_good(text, at: int, size: int, kind: int) -> bool:
    """Whether a record has a valid header, and the length that the header implies."""
    if size < _HEADER_BYTES or np.int64(text[at]) != _FIRST or np.int64(text[at + 1]) != _SECOND:
        return False
    if np.int64(text[at + 2]) != VERSION or np.int64(text[at + 3]) != kind:
        return False
    width, flags, label = np.int64(text[at + 4]), np.int64(text[at + 5]), _label(text, at)
    known = _LABEL_FLAGS if kind == LABEL_KIND else INSTANCE_FLAGS
    if (width != _FLOAT64 and width != _FLOAT32) or (flags & ~known) != 0:
        return False
    if (flags & TEXT) != 0 and (label < 1 or (flags & HAS_LABEL) == 0):
        return False
    count = _count(text, at)
    name = label if flags & TEXT else 0
    fixed = _HEADER_BYTES + (8 if flags & HAS_WEIGHT else 0)
    id_bytes = _id_bytes(text, at)
    if kind == LABEL_KIND:
        if id_bytes == 0 or ((flags & HAS_LABEL) != 0) == ((flags & DECLINED) != 0):
            return False
    elif count == 0:
        return False
    rest = size - (fixed + count * width + name + id_bytes)
    return rest == 0 or (rest > 0 and (flags & HAS_ANNOTATOR) != 0)


@kernel
def _id_bytes(text, at: int) -> Any:
    return np.int64(text[at + 6]) | np.int64(text[at + 7]) << 8


@kernel
def _read(text, at: int, size: int, flags, count, width, longest: int, values, parts) -> bool:
    """Read a record with a valid header; return whether its content is valid."""
    end = at + size
    label = _label(text, at)
    name = label if flags & TEXT else 0
    id_bytes = _id_bytes(text, at)
    here = at + _HEADER_BYTES
    parts[WEIGHT] = _ONE_BITS
    if flags & HAS_WEIGHT:
        parts[WEIGHT] = np.int64(word(text, here))
        weight = from_bits(parts[WEIGHT])
        if not (weight > 0.0 and weight <= MAX_WEIGHT):
            return False
        here += 8
    infinite = False
    if width == _FLOAT64:
        for number in range(count):
            value = np.int64(word(text, here + 8 * number))
            values[number] = value
            infinite |= (value & _EXPONENT) == _EXPONENT and (value & _MANTISSA) == 0
    else:
        for number in range(count):
            value = bits(single(half_word(text, here + 4 * number)))
            values[number] = value
            infinite |= (value & _EXPONENT) == _EXPONENT and (value & _MANTISSA) == 0
    here += count * width
    parts[LABEL] = here if flags & TEXT else label
    parts[LABEL_BYTES] = name
    parts[ID] = here + name
    parts[ID_BYTES] = id_bytes
    annotator = here + name + id_bytes
    parts[ANNOTATOR] = annotator
    parts[ANNOTATOR_BYTES] = end - annotator
    if infinite or name > longest or id_bytes > longest or end - annotator > longest:
        return False
    if not is_text(text, here, here + name) or not is_text(text, here + name, annotator):
        return False
    return is_text(text, annotator, end)
