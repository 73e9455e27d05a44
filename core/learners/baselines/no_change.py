"""No change: predicts the last label; the baseline of kappa temporal, strong where labels come in runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Final

import numpy as np

from core.kernels.jit import kernel
from core.layout.learning import LEARNED
from core.layout.model import Block, Floats
from core.learners.arrays import Array, ArrayLearner, array_at

LAST: Final = 0
"""Number of the array of one word, the last label."""

NOTHING: Final = -1.0
"""No label was learned yet."""


@dataclass(frozen=True, slots=True)
class Plugin(ArrayLearner):
    """Predicts the last label that was learned: ``"no-change"``; no class before the first label.

    A baseline (MOA's ``functions.NoChange``; Žliobaitė, Bifet, Read, Pfahringer, Holmes 2015): its kappa
    temporal is 0, if labels come in the order of their records. It ignores the features, and gives a strategy
    no information.
    """

    arrays: ClassVar[tuple[Array, ...]] = (
        Array("last", (1,), fill=int(NOTHING), is_integer=True, at_least=NOTHING, below="class"),
    )

    def masses(self, arrays: dict[str, Any], classes: int) -> Floats:
        shares, last = np.zeros(classes), int(arrays["last"][0])
        shares[last : last + 1] = 1.0 if last >= 0 else 0.0
        return shares


@kernel
def answer(plan, block: Block, place: int, row, prepared: int, scratch, shares) -> tuple[int, int, int]:
    """Return the last label, with all of the votes."""
    last = array_at(plan, block, LAST).integers[0]
    if last >= 0:
        shares[last] = 1.0
    return last, 0, -1


@kernel
def learn(plan, block: Block, place: int, row, hint: int, work) -> tuple[int, int]:
    array_at(plan, block, LAST).integers[0] = row.label
    return LEARNED, 0


@kernel
def uncertainty(plan, block: Block, place: int, shares, scratch, columns: int) -> tuple[float, float, float]:
    return 0.5, 0.0, 0.0
