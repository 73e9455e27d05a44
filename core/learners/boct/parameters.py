"""Parameters of BOCT for compiled code."""

from __future__ import annotations

from core.kernels.jit import kernel
from core.kernels.records import Record, word
from core.layout.plan import PlanRecord


class BoctParameters(Record):
    """The numeric parameters of BOCT, in the order of ``Plugin.constants`` (core/learners/boct/boct.py)."""

    delta: float = word("δ, the probability with which a bound is wrong")
    bound: float = word("kind of the bounds (bound_table.BOUNDS)")
    heterogeneity: float = word("kind of the heterogeneity (core/numeric/credible.py)")
    logarithm: float = word("ln(1/δ)")
    sizes: float = word("kind of the size W (leaf_rows.SIZE_KINDS)")
    capacity: float = word("maximum of rows that a leaf keeps")
    exhaustive: float = word("1: score all cuts at each label")


@kernel
def parameters_of(plan: PlanRecord) -> BoctParameters:
    """Return the parameters of a plan's learner."""
    return BoctParameters(plan.ints, plan.floats, plan.learner_at)
