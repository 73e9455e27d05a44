"""Hoeffding's bound, as VFDT uses it."""

from __future__ import annotations

import math
from dataclasses import dataclass

from core.bounds.base import GAP, OPEN, TIE, Bound, Case
from core.kernels.jit import kernel
from core.plugin import number


@dataclass(frozen=True, slots=True)
class Plugin(Bound):
    """``ε = R·sqrt(ln(1/δ) / 2n)``: ``"bound": "hoeffding", "delta": 1e-7, "bound_factor": 1``.

    VFDT compares a gap with ε; two intervals of half-width ε are separate from 2ε on, hence ``bound_factor``
    (Domingos and Hulten 2000).
    """

    delta: float = number(1e-7, above=0.0, at_most=1.0)
    """Probability that the true gap differs by more than ε; 1: any lead is enough."""
    bound_factor: float = number(1.0, at_least=1.0, at_most=2.0)
    """Multiple of ε that the lead must exceed: 1 in VFDT, 2 for separate intervals."""

    @property
    def constant(self) -> float | None:
        return -math.log(self.delta) / 2.0

    @property
    def factor(self) -> float:
        return self.bound_factor


@kernel
def epsilon(p, case: Case) -> float:
    square = case.merit_range * case.merit_range
    # -ln δ: the reciprocal of a δ below 5.6e-309 would be infinite.
    return math.sqrt(square * -math.log(p.delta) / (2.0 * case.weight))


@kernel
def decision(p, lead: float, epsilon: float, tau: float) -> int:
    """Require a lead above the factor times ε, or an ε below τ."""
    if lead > p.bound_factor * epsilon:
        return GAP
    return TIE if epsilon < tau else OPEN
