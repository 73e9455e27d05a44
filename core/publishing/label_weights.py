"""Label weights: how much a label counts for calibration and coverage, so that labels represent all records.

They are the weights of the measures (core/measures/sums.py): the inverse of the chance with which the label
was requested, 1 for a label that came with its record, and with a reserved share that sample alone.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from core.kernels.jit import kernel
from core.layout.plan import PlanRecord
from core.measures.sums import basis_of, weigh

MOST_RELATIVE: Final = 10.0
"""Largest weight of a label in a learning step, relative to the mean: one label must not decide alone."""


class Draw(NamedTuple):
    """The way in which a label was drawn."""

    sampled: int
    """Whether and for what its record was sampled (core/active/label_account.py)."""
    importance: float
    """Inverse of the chance of its request, 0: unknown."""
    came_along: bool
    """It came with its record."""


@kernel
def following_basis(plan: PlanRecord, basis: int, draw: Draw) -> int:
    """Return the basis with the next label, after the labels before it had ``basis``."""
    is_slice = plan.slice != 0
    return basis if draw.came_along and not is_slice else basis_of(is_slice, basis, draw.importance)


@kernel
def label_weight(plan: PlanRecord, basis: int, draw: Draw) -> float:
    """Return the weight of a label, 0: it does not count; basis: with this label."""
    is_slice = plan.slice != 0
    if draw.came_along and not is_slice:
        return 1.0
    return weigh(is_slice, basis, draw.sampled, draw.importance)


@kernel
def relative_weight(weight: float, labels: int, total: float) -> float:
    """Return a weight in units of the mean weight of ``labels`` labels whose sum is ``total``."""
    return min(weight * labels / total, MOST_RELATIVE)
