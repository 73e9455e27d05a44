"""No change: predicts the last label; the baseline of kappa temporal, strong where labels come in runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Final

import numpy as np

from core.kernels.jit import kernel
from core.learners.arrays import Array, ArrayLearner, array_at
from core.tree import layout as at
from core.tree.layout import Floats

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
        found, last = np.zeros(classes), int(arrays["last"][0])
        found[last : last + 1] = 1.0 if last >= 0 else 0.0
        return found


@kernel
def answer(
    plan, params, ints, floats, t: int, place: int, x, xs, weight: float, prepared: int, scratch, shares
) -> tuple[int, int, int]:
    """Return the last label, with all of the votes."""
    last = ints[array_at(plan, t, 0)]
    if last >= 0:
        shares[last] = 1.0
    return last, 0, -1


@kernel
def learn(
    plan,
    params,
    ints,
    floats,
    t: int,
    place: int,
    x,
    xs,
    label: int,
    weight: float,
    hint: int,
    scratch,
    vote_buffer,
) -> tuple[int, int]:
    ints[array_at(plan, t, 0)] = label
    return at.LEARNED, 0


@kernel
def uncertainty(
    plan, params, ints, floats, t: int, place: int, shares, scratch, columns: int
) -> tuple[float, float, float]:
    return 0.5, 0.0, 0.0
