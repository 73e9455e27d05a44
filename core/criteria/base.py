"""Split criteria: one column function, from which gains follow, and what theorems say of its estimate.

Kernels of a module (all weights are labelled weight):

``impurity(masses, k, n, out, total)``
    writes, for each of n columns of ``masses`` (float64[class, column]), mass times impurity to ``out`` and
    mass to ``total``. The conditional impurity of a split is the sum of that over its branches, divided by
    its mass; the merit of a split is the impurity before it minus that (ALGORITHMS section 2.3)
``reach(k) -> float``: the range R of the merit with k classes

``impurity_roughly(masses, k, n, out, total)`` (not every criterion)
    the same with an error of at most 1e-6 of the mass for each class
    (core/learners/hoeffding/quick_reject.py)
``moment(n, squares)``, ``increment(n, cell, moment, weight) -> (added, moment)``, ``steepest(n, ratio)``
    (not every criterion) for those who follow a test record by record; without them a branch is measured
    anew. What is worth keeping of a branch of mass n (``squares``: the sum of its squared class masses); what
    a record of a class with mass ``cell`` adds to mass times impurity, and the moment with it; the most that
    a unit of weight can add while the mass is at most n, and at most ``ratio`` times that of any class (it
    never takes anything away)

and, where a theorem or a practice of the literature covers it, in the unit of the merit:

``deviation(n, log_delta, k) -> float``: how far, but for probability δ (given by its logarithm), the
    conditional impurity of one split estimated from weight n may be from the true one (CDT, theorems 1 to 3)
``growth(n) -> float``: the factor of CDT's equation (7)
``sensitivity(n, k, printed) -> float``: C of McDiarmid's inequality, ``ε = C·sqrt(ln(1/δ)/2n)``; ``printed``:
    as the seed prints it (ALGORITHMS section 7)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from core import registry
from core.plugin import Parameters, number


@dataclass(frozen=True, slots=True)
class Criterion(Parameters):
    """How impure a distribution of class masses is; its kernels are described above."""

    family: ClassVar[str] = "criteria"

    min_branch_frac: float = number(0.0, at_least=0.0, at_most=0.5)
    """At least two branches must hold more than this share of the weight; 0: no such rule."""

    null_merit_is_gain: ClassVar[bool] = True
    """Whether MOA measures "no split" on the scale of its merits (else it is minus infinity there)."""
    sorts_branches: ClassVar[bool] = False
    """Its published code leaves the class masses of branches sorted, and new leaves begin with them so."""
    max_classes: ClassVar[int | None] = None
    """Classes it is defined for, None: any number."""
    deviation_classes: ClassVar[int | None] = None
    """Classes its ``deviation`` is proved for, None: any number [D11]."""

    @property
    def is_incremental(self) -> bool:
        """Whether the module has ``increment``."""
        return hasattr(registry.module("criteria", self.name), "increment")

    def merit_range(self, classes: int) -> float:
        """Return the range R of the merit for the confidence bound."""
        raise NotImplementedError


_COLUMNS = "void(float64[:, ::1], int64, int64, float64[::1], float64[::1])"


def dispatcher() -> Any:
    """Return ``impurity(kind, …)`` over all criteria."""
    return registry.dispatch("criteria", "impurity", "masses, k, n, out, total", signature=_COLUMNS)


def rough_dispatcher() -> Any:
    """Return ``impurity_roughly(kind, …)`` over the criteria that have it."""
    return registry.dispatch("criteria", "impurity_roughly", "masses, k, n, out, total", signature=_COLUMNS)


def range_dispatcher() -> Any:
    """Return ``reach(kind, k)`` over all criteria: the range of the merit with k classes, compiled."""
    return registry.dispatch("criteria", "reach", "k")


def increment_dispatcher() -> tuple[Any, Any]:
    """Return ``moment(kind, …)`` and ``increment(kind, …)`` over the criteria that have them."""
    return (
        registry.dispatch("criteria", "moment", "n, squares"),
        registry.dispatch("criteria", "increment", "n, cell, moment, weight"),
    )


def steepness_dispatcher() -> Any:
    """Return ``steepest(kind, n, ratio)`` over the criteria that have ``increment``."""
    return registry.dispatch("criteria", "steepest", "n, ratio")
