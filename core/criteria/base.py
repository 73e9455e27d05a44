"""Split criteria: a column function of class masses, from which gains follow, and bounds of its estimate.

Kernels of a module (all weights are labelled weight):

``impurity(masses, k, n, out, total)``
    writes, for each of n columns of ``masses`` (float64[class, column]), mass times impurity to ``out`` and
    mass to ``total``. The conditional impurity of a split is the sum of ``out`` over its branches, divided
    by its mass; the merit of a split is the impurity before it minus this one (CDT, section 3)
``reach(k) -> float``: the range R of the merit with k classes

``impurity_roughly(masses, k, n, out, total)`` (optional)
    the same with an error of at most 1e-6 of the mass for each class
    (core/learners/hoeffding/quick_reject.py)
``moment(n, squares)``, ``increment(n, cell, moment, weight) -> (added, moment)``, ``steepest(n, ratio)``
    (optional) for schedules that follow a test record by record; without them a branch is computed again.
    ``moment`` returns the value to keep for a branch of mass n (``squares``: the sum of its squared class
    masses). ``increment`` returns the increase of mass times impurity by a record of a class with mass
    ``cell``, and the new moment. ``steepest`` returns the largest increase per unit of weight while the mass
    is at most n, and at most ``ratio`` times the mass of any class (no unit of weight causes a decrease)

and, if a theorem or a practice of the literature covers the criterion, in the unit of the merit:

``deviation(n, log_delta, k) -> float``: the largest difference, except with probability δ (given by its
    logarithm), of the true conditional impurity of one split from its estimate with weight n (CDT, theorems
    1 to 3)
``growth(n) -> float``: the factor of CDT's equation (7)
``sensitivity(n, k, printed) -> float``: C of McDiarmid's inequality, ``ε = C·sqrt(ln(1/δ)/2n)``; ``printed``:
    as in CDT, equation 2, where a factor is missing [D15]
"""

from __future__ import annotations

from dataclasses import dataclass
from types import ModuleType
from typing import Any, ClassVar

from core import registry
from core.kernels.jit import kernel
from core.layout.plan import PlanRecord
from core.plugin import Parameters, number


@dataclass(frozen=True, slots=True)
class Criterion(Parameters):
    """Impurity of a distribution of class masses; the module's docstring describes the kernels."""

    family: ClassVar[str] = "criteria"

    min_branch_frac: float = number(0.0, at_least=0.0, at_most=0.5)
    """At least two branches must hold more than this share of the weight; 0: no such rule."""

    null_merit_is_gain: ClassVar[bool] = True
    """Whether MOA measures "no split" on the scale of its merits (else it is minus infinity there)."""
    sorts_branches: ClassVar[bool] = False
    """Whether branches' class masses are sorted, as in published code; new leaves start with them."""
    max_classes: ClassVar[int | None] = None
    """Largest number of classes that the criterion supports, None: any number."""
    deviation_classes: ClassVar[int | None] = None
    """Largest number of classes for which ``deviation`` is proved, None: any number [D11]."""

    @property
    def is_incremental(self) -> bool:
        """Whether the module has ``increment``."""
        return hasattr(registry.module("criteria", self.name), "increment")

    def merit_range(self, classes: int) -> float:
        """Return the range R of the merit for the confidence bound."""
        raise NotImplementedError


Common: Any = Criterion.record()
"""The parameters of all criteria, which come first among those of each."""


@kernel
def min_branch_frac(plan: PlanRecord) -> float:
    """Return the share of the weight that at least two branches must exceed; 0: no such rule."""
    return Common(plan.ints, plan.floats, plan.criterion_at).min_branch_frac


_COLUMNS = "void(float64[:, ::1], int64, int64, float64[::1], float64[::1])"


def dispatcher() -> Any:
    """Return ``impurity(kind, …)`` over all criteria."""
    return registry.dispatch("criteria", "impurity", "masses, k, n, out, total", signature=_COLUMNS)


def rough_dispatcher() -> Any:
    """Return ``impurity_roughly(kind, …)`` over the criteria that have it."""
    return registry.dispatch(
        "criteria",
        "impurity_roughly",
        "masses, k, n, out, total",
        signature=_COLUMNS,
        needed_by=registry.no_plugin,
    )


def range_dispatcher() -> Any:
    """Return ``reach(kind, k)`` over all criteria: the range of the merit with k classes, compiled."""
    return registry.dispatch("criteria", "reach", "k")


def _is_incremental(criterion: ModuleType) -> bool:
    return any(hasattr(criterion, kernel) for kernel in ("moment", "increment", "steepest"))


def increment_dispatcher() -> tuple[Any, Any]:
    """Return ``moment(kind, …)`` and ``increment(kind, …)`` over the criteria that have them."""
    return (
        registry.dispatch("criteria", "moment", "n, squares", needed_by=_is_incremental),
        registry.dispatch("criteria", "increment", "n, cell, moment, weight", needed_by=_is_incremental),
    )


def steepness_dispatcher() -> Any:
    """Return ``steepest(kind, n, ratio)`` over the criteria that have ``increment``."""
    return registry.dispatch("criteria", "steepest", "n, ratio", needed_by=_is_incremental)
