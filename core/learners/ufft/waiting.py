"""Waiting times of a leaf: before its first evaluation, and after an evaluation that did not split it."""

from __future__ import annotations

import math
from typing import Final

from core.kernels.jit import kernel
from core.learners.ufft import layout as of
from core.numeric.special import LN2, log2

SHORTEST: Final = 100.0
"""Least weight from one evaluation of a leaf to the next, and before the first one [D53]."""
LONGEST: Final = 2000.0
"""Largest weight from one evaluation to the next."""
SLIDE_STEP: Final = 265.0
"""Weight before each evaluation with ``nmin="slide"``: 1/(2·0.01)·ln(2/0.01), rounded up."""


@kernel
def first_due(plan, params, replayed: float) -> float:
    """Return the weight at which a leaf is first evaluated, after it has replayed the weight ``replayed``.

    The records of the memory were evaluated above the leaf. If they counted here again, the leaf might be
    split with the next record.
    """
    return replayed + (SLIDE_STEP if of.parameter(plan, params, of.SLIDE) != 0.0 else SHORTEST)


@kernel
def begin_waiting(plan, params, floats, node: int) -> None:
    """Let a leaf that has replayed its memory wait for its first evaluation (node: its first word)."""
    replayed = floats[node + of.NODE_WEIGHT] + floats[node + of.NODE_WEIGHT + 1]
    floats[node + of.NODE_DUE] = first_due(plan, params, replayed)


@kernel
def next_due(plan, params, n: float, gap: float) -> float:
    """Return the weight at which a leaf of weight n is evaluated next [D53]."""
    if of.parameter(plan, params, of.SLIDE) != 0.0:
        return n + SLIDE_STEP
    needed = LN2 * (1.0 - log2(of.parameter(plan, params, of.DELTA)))
    wait = LONGEST
    if 2.0 * gap * gap * (LONGEST + n) > needed:
        wait = max(math.ceil(needed / (2.0 * gap * gap)) - n, SHORTEST)
    return n + min(wait, LONGEST)
