"""McDiarmid's bound on how far a merit strays from its expectation."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final

from core import registry
from core.bounds.base import CASE_CLASSES, CASE_CRITERION, CASE_WEIGHT, GAP, OPEN, TIE, Bound
from core.jit import kernel
from core.plugin import choice, number

DELTA: Final = 0
PRINTED: Final = 1

sensitivity = registry.dispatch("criteria", "sensitivity", "n, k, printed")


@dataclass(frozen=True, slots=True)
class Plugin(Bound):
    """``ε = C·sqrt(ln(1/δ) / 2n)``: ``"bound": "mcdiarmid", "delta": 1e-7, "mcd_form": "corrected"``.

    C depends on the criterion: 8 for Gini, ``6(K lg(e·n) + lg 2n) + 2 lg K`` for entropy in bits, where
    ``mcd_form="seed"`` takes lg e for lg(e·n) (ALGORITHMS section 7 [D15]; Rutkowski and others 2013). For
    entropy it says nothing before some 10⁵ records.
    """

    delta: float = number(1e-7, above=0.0, below=1.0)
    """How likely the true merit may be farther away than ε."""
    mcd_form: str | None = choice("corrected", "corrected", "seed")
    """The constant for entropy as its paper proves it, or as CDT prints it."""

    def constants(self) -> tuple[float, ...]:
        """Return δ, and whether the seed's form is meant."""
        return self.delta, float(self.mcd_form == "seed")

    @property
    def needs(self) -> str | None:
        """C."""
        return "sensitivity"


@kernel
def epsilon(knobs: Any, at: int, case: Any) -> float:
    """Return ε."""
    n = case[CASE_WEIGHT]
    k = max(int(case[CASE_CLASSES]), 2)
    c = sensitivity(int(case[CASE_CRITERION]), n, k, knobs[at + PRINTED] != 0.0)
    return c * math.sqrt(-math.log(knobs[at + DELTA]) / (2.0 * n))


@kernel
def verdict(knobs: Any, at: int, lead: float, epsilon: float, tau: float) -> int:
    """Ask for a lead above ε, or an ε below τ."""
    if lead > epsilon:
        return GAP
    return TIE if epsilon < tau else OPEN
