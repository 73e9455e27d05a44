"""Waiting times of a leaf: before its first evaluation, and after an evaluation that did not split it."""

from __future__ import annotations

import math
from typing import Final

from core.kernels.jit import kernel
from core.learners.ufft.layout import PairForestParameters, PairNode
from core.numeric.special import LN2, log2

SHORTEST: Final = 100.0
"""Least weight from one evaluation of a leaf to the next, and before the first one [D53]."""
LONGEST: Final = 2000.0
"""Largest weight from one evaluation to the next."""
SLIDE_STEP: Final = 265.0
"""Weight before each evaluation with ``nmin="slide"``: 1/(2·0.01)·ln(2/0.01), rounded up."""


@kernel
def first_due(p: PairForestParameters, replayed: float) -> float:
    """Return the weight at which a leaf is first evaluated, after it has replayed the weight ``replayed``.

    The records of the memory were evaluated above the leaf. If they counted here again, the leaf might be
    split with the next record.
    """
    return replayed + (SLIDE_STEP if p.slide != 0.0 else SHORTEST)


@kernel
def begin_waiting(p: PairForestParameters, node: PairNode) -> None:
    """Let a leaf that has replayed its memory wait for its first evaluation."""
    node.due = first_due(p, node.weight)


@kernel
def next_due(p: PairForestParameters, n: float, gap: float) -> float:
    """Return the weight at which a leaf of weight n is evaluated next [D53]."""
    if p.slide != 0.0:
        return n + SLIDE_STEP
    needed = LN2 * (1.0 - log2(p.delta))
    wait = LONGEST
    if 2.0 * gap * gap * (LONGEST + n) > needed:
        wait = max(math.ceil(needed / (2.0 * gap * gap)) - n, SHORTEST)
    return n + min(wait, LONGEST)
