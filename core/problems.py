"""Problems of a foreign buffer as one number, so that compiled code can return them.

From the lowest bits on: the number of a sentence (from 1 on; 0: sound); the word of the plan with the kind of
the plug-in that owns the sentence (0: header and evaluation of the model); the place in a block plus one
(0: none); the block.
"""

from __future__ import annotations

import math
from typing import Any, Final, NamedTuple

from core.kernels.jit import kernel
from core.kernels.records import Limit, Record, Word

SOUND: Final = 0
MOST: Final = 1 << 53
"""Largest counter: above it floats and sums of counters are no longer exact."""

NUMBER_BITS: Final = 8
PLUGIN_BITS: Final = 8
PLACE_BITS: Final = 32
PLUGIN: Final = ((1 << PLUGIN_BITS) - 1) << NUMBER_BITS
"""The bits that identify the plug-in."""
PLACE: Final = 1 << (NUMBER_BITS + PLUGIN_BITS)
BLOCK: Final = PLACE << PLACE_BITS


class Problem(NamedTuple):
    """The parts of a problem's number."""

    sentence: int
    plugin: int
    place: int
    """-1: none."""
    block: int
    """0: the block that answers, or none."""


def read(problem: int) -> Problem:
    """Split the number of a problem that compiled code returned into its parts."""
    return Problem(
        sentence=problem % (1 << NUMBER_BITS),
        plugin=problem % PLACE >> NUMBER_BITS,
        place=problem % BLOCK // PLACE - 1,
        block=problem // BLOCK,
    )


@kernel
def of_plugin(word: int, number: int) -> int:
    """Return the problem of the plug-in whose kind is in a word of the plan, SOUND if ``number`` is 0."""
    return SOUND if number == SOUND else number + (word << NUMBER_BITS)


@kernel
def at_place(place: int, problem: int) -> int:
    """Add a node (by its number) or another place of a block to a problem; SOUND stays SOUND."""
    return SOUND if problem == SOUND else problem + PLACE * (place + 1)


@kernel
def in_block(block: int, problem: int) -> int:
    """Add a block, by its number, to a problem; SOUND stays SOUND."""
    return SOUND if problem == SOUND else problem + BLOCK * block


def range_rules(record: type[Record]) -> tuple[str, ...]:
    """Return a sentence for each word of a record that has a range, in the order of the words."""
    return tuple(
        f"{name} must be {_rule(field)} ({field.meaning})" for name, field in _ranged(record).items()
    )


def range_problem(record: type[Record], before: int = 0) -> Any:
    """Return a kernel that checks the ranges of the words of a record in a foreign buffer.

    The kernel gets the record. It returns SOUND, or the number of the first sentence of ``range_rules`` that
    the record breaks: 1 for the first sentence, plus ``before``, the number of sentences of the module that
    come before these. A float with a range must be finite.
    """
    lines = ["def ranges(record):"]
    for number, (name, field) in enumerate(_ranged(record).items(), before + 1):
        lines.append(f"    if not {_condition(name, field)}:")
        lines.append(f"        return {number}")
    lines.append(f"    return {SOUND}")
    scope: dict[str, Any] = {"inf": math.inf}
    exec("\n".join(lines), scope)  # noqa: S102
    return kernel(scope["ranges"])


def _ranged(record: type[Record]) -> dict[str, Word]:
    return {
        name: field
        for name, field in record.FIELDS.items()
        if field.low is not None or field.high is not None
    }


def _condition(name: str, field: Word) -> str:
    """Return the range of a word as an expression of the compiled check."""
    low, high = _operand(field.low), _operand(field.high)
    if field.is_float:
        low, high = low or "-inf", high or "inf"
        return f"{low} {_order(low)} record.{name} {_order(high)} {high}"
    return f"{f'{low} <= ' if low else ''}record.{name}{f' <= {high}' if high else ''}"


def _operand(limit: Limit) -> str:
    if limit is None:
        return ""
    return f"record.{limit}" if isinstance(limit, str) else repr(limit)


def _order(operand: str) -> str:
    return "<" if operand in ("inf", "-inf") else "<="


def _rule(field: Word) -> str:
    """Return the range of a word in words, for an error text."""
    low, high = _in_words(field.low), _in_words(field.high)
    kind = "a number" if field.is_float else ""
    if low and low == high:
        return low
    if low and high:
        return f"{kind} from {low} to {high}".strip()
    if low or high:
        return f"{kind}{' of ' if kind else ''}{f'at least {low}' if low else f'at most {high}'}"
    return kind


def _in_words(limit: Limit) -> str:
    if limit is None or limit in (math.inf, -math.inf):
        return ""
    if isinstance(limit, int) and limit >= 1 << 32 and limit & (limit - 1) == 0:
        return f"2**{limit.bit_length() - 1}"
    return f"{limit:g}" if isinstance(limit, float) else str(limit)
