"""Rows: the records of a schema that the kernel has read, and the flaws of the others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from topics.codecs.avro.compiled.program import Program
from topics.codecs.avro.compiled.program_run import (
    COMPOSITE_KIND,
    CUT_OFF,
    DIGIT_BYTES,
    FRAME,
    GOOD,
    LEFT,
    LONG_NUMBER,
    MAX_DEPTH,
    NEGATIVE,
    NO_BOOLEAN,
    NO_BRANCH,
    NO_SYMBOL,
    NOT_UTF8,
    TOO_DEEP,
    TOO_MANY,
    TRAILING,
    VERDICT_BITS,
    WIDE_INT,
    read,
)
from topics.codecs.flaws import Flaw, Flaws
from topics.codecs.json.compiled.shape import Shape
from topics.codecs.json.compiled.shaped_rows import ShapedRows
from topics.columns.spans import Spans
from topics.errors import Reason

Flags = npt.NDArray[np.bool_]

_RULES: Final = {
    CUT_OFF: "the value ends inside it",
    LONG_NUMBER: "its number has more than 64 bits",
    WIDE_INT: "an int must have at most 32 bits",
    NEGATIVE: "a length must not be negative",
    NO_BOOLEAN: "a boolean must be 0 or 1",
    NO_SYMBOL: "the enum has no symbol of this number",
    NO_BRANCH: "the union has no branch of this number",
    NOT_UTF8: "a string must be UTF-8",
    TOO_DEEP: f"records, arrays and maps must be at most {MAX_DEPTH:,} levels deep",
}


@dataclass(frozen=True, slots=True, eq=False)
class ReadRows:
    """n records after the kernel."""

    rows: ShapedRows
    is_read: Flags
    """bool[n]: the kernel has read all cells."""
    flaws: Flaws
    """Of records that are not values of the schema."""


def read_rows(program: Program, shape: Shape, values: Spans) -> ReadRows:
    """Run a program over records."""
    n = len(values)
    if n and (program.symbols or program.n_digits):
        values = _alone(values)
    cells = np.empty((n, program.n_cells), dtype=np.int64)
    kinds = np.empty((n, program.n_cells), dtype=np.uint8)
    verdicts = np.empty(n, dtype=np.int64)
    digits = np.empty(n * program.n_digits * DIGIT_BYTES, dtype=np.uint8)
    frames = np.empty(MAX_DEPTH * FRAME, dtype=np.int64)
    read(
        values.bytes,
        np.ascontiguousarray(values.starts),
        np.ascontiguousarray(values.lengths),
        program.code,
        cells,
        kinds,
        verdicts,
        digits,
        frames,
    )
    text = values.buffer
    if program.symbols or len(digits):
        text = b"".join((text, program.symbols, digits.tobytes()))
    flaws = {row: flaw_of(program, int(verdicts[row])) for row in np.flatnonzero(verdicts > LEFT).tolist()}
    is_read = verdicts == GOOD
    if np.count_nonzero(kinds == COMPOSITE_KIND):
        is_read &= ~(kinds == COMPOSITE_KIND).any(axis=1)
    return ReadRows(ShapedRows(shape, text, cells, kinds), is_read, flaws)


def _alone(values: Spans) -> Spans:
    """Return values over a buffer of their own: texts are added to it, and a fetch may be much larger."""
    start, end = int(values.starts.min()), int((values.starts + values.lengths).max())
    return Spans(values.buffer[start:end], values.starts - start, values.lengths)


def flaw_of(program: Program, verdict: int) -> Flaw:
    """Return the flaw that a verdict stands for."""
    rule = verdict & ((1 << VERDICT_BITS) - 1)
    if rule == TRAILING:
        return Flaw(Reason.BAD_VALUE, "bytes follow the value; its writer had another Avro schema")
    field = program.fields.get(verdict >> VERDICT_BITS, "the record")
    if rule == TOO_MANY:
        detail = f"field {field}: the arrays, maps and nested records must have fewer items together"
        return Flaw(Reason.TOO_LARGE, detail)
    return Flaw(Reason.BAD_VALUE, f"field {field} does not fit its Avro schema: {_RULES[rule]}")
