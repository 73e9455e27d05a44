"""McDiarmid's bound on the difference of a merit from its expectation."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Final

from core import registry
from core.bounds.base import GAP, OPEN, TIE, Bound, Case
from core.kernels.jit import kernel
from core.plugin import choice, number

# Forms
PRINTED: Final = 1.0
CODED: Final = 2.0

sensitivity = registry.dispatch("criteria", "sensitivity", "n, k, printed", needed_by=registry.no_plugin)


@dataclass(frozen=True, slots=True)
class Plugin(Bound):
    """``ε = C·sqrt(ln(1/δ) / 2n)``: ``"bound": "mcdiarmid", "delta": 1e-7, "mcd_form": "corrected"``.

    C depends on the criterion: 8 for Gini, ``6(K lg(e·n) + lg 2n) + 2 lg K`` for entropy in bits, where
    ``mcd_form="seed"`` uses lg e for lg(e·n) [D15] (Rutkowski et al. 2013). For entropy ε is too large to
    decide before some 10⁵ records. ``mcd_form="cdt"`` is the constant for the entropy of two classes, for any
    criterion, with 2.71 for e; CDT's code used it with ``delta`` 1, which makes ε 0.
    """

    delta: float = number(1e-7, above=0.0, at_most=1.0)
    """Probability that the true merit differs by more than ε; 1: any lead is enough."""
    mcd_form: str | None = choice("corrected", "corrected", "seed", "cdt")
    """The constant for entropy as proved in its paper, as printed by CDT, or as in CDT's code."""

    NUMBERS: ClassVar[tuple[str, ...]] = ("delta", "form")

    def constants(self) -> tuple[float, ...]:
        """Return δ, and the number of the form."""
        return self.delta, float(("corrected", "seed", "cdt").index(str(self.mcd_form)))

    @property
    def needs(self) -> str | None:
        return "sensitivity"


@kernel
def epsilon(p, case: Case) -> float:
    n = case.weight
    if p.form == CODED:
        c = 6.0 * (2.0 * math.log(2.71 * n) + math.log(2.0 * n)) / math.log(2.0) + 2.0
    else:
        c = sensitivity(case.criterion, n, max(case.classes, 2), p.form == PRINTED)
    return c * math.sqrt(-math.log(p.delta) / (2.0 * n))


@kernel
def decision(p, lead: float, epsilon: float, tau: float) -> int:
    """Require a lead above ε, or an ε below τ."""
    if lead > epsilon:
        return GAP
    return TIE if epsilon < tau else OPEN
