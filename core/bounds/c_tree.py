"""The bounds of confidence decision trees: CDT's theorems 1 to 4, and their practical form."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from core import registry
from core.bounds.base import GAP, OPEN, TIE, Bound, Case
from core.kernels.jit import kernel
from core.plugin import choice, number

deviation = registry.dispatch("criteria", "deviation", "n, log_delta, k", needed_by=registry.no_plugin)
growth = registry.dispatch("criteria", "growth", "n", needed_by=registry.no_plugin)


@dataclass(frozen=True, slots=True)
class Plugin(Bound):
    """``"bound": "c_tree", "variant": "practical", "c": 0.05`` or ``"variant": "theory", "delta": 0.05``.

    Practical (equation 7): ``ε = c·sqrt(ln(m²·(h+1)²·t·d) / m)``, times ln m for entropy; a lead above ε
    splits [D16]. Theory: the deviation of the criterion at ``δ' = δ / ((h+1)(h+2)(t+1)³·d·m)``, and a lead of
    at least 2ε splits; ``delta`` 0 stands for 1/t (remark 1). m: weight observed at the leaf, h: its depth,
    t: records seen by the model, d: attributes. If an attribute can propose more than m tests, their number
    replaces m in δ'. The guarantee of theorem 4 holds for unit weights and ``tau`` 0 only (De Rosa and
    Cesa-Bianchi 2017, section 5). With c = 0.005, the value CDT finds by tuning, a tree splits at almost
    every attempt [D18].
    """

    variant: str | None = choice("practical", "practical", "theory")
    """The form that is used in practice, or the form of the theorems."""
    c: float = number(0.05, above=0.0, below=2.0)
    """Factor of the practical form: the larger it is, the later a leaf splits."""
    delta: float = number(0.0, at_least=0.0, below=1.0)
    """Largest probability of a wrong split, in the theory; 0 stands for 1/t."""

    NUMBERS: ClassVar[tuple[str, ...]] = ("c", "delta", "is_theory")

    def constants(self) -> tuple[float, ...]:
        """Return c, δ, and 1.0 for the theory, else 0.0."""
        return self.c, self.delta, float(self.variant == "theory")

    @property
    def needs(self) -> str | None:
        """``deviation`` for the theory, ``growth`` for equation (7)."""
        return "deviation" if self.variant == "theory" else "growth"

    @property
    def factor(self) -> float:
        """Return 1, for the theory 2."""
        return 2.0 if self.variant == "theory" else 1.0

    def max_classes(self, criterion: Any) -> int | None:
        """Return 2 for the theorems about two classes [D11]."""
        return criterion.deviation_classes if self.variant == "theory" else None


@kernel
def log_share_of_delta(delta: float, case: Case) -> float:
    """Return ln δ' of theorem 4: δ' is the part of δ for one split of one leaf at one time."""
    h, t, m = case.depth, case.records, case.weight
    log_delta = math.log(delta) if delta > 0.0 else -math.log(t)
    tests = case.attributes * max(m, case.tests)
    # δ' may be smaller than any float.
    return log_delta - math.log((h + 1.0) * (h + 2.0) * (t + 1.0) ** 3 * tests)


@kernel
def epsilon(p, case: Case) -> float:
    m = case.weight
    if m <= 1.0:  # fractions of a record: logarithms below 0, and no evidence
        return math.inf
    if p.is_theory != 0.0:
        return deviation(case.criterion, m, log_share_of_delta(p.delta, case), case.classes)
    h = case.depth + 1.0
    spread = math.log(m * m * h * h * case.records * case.attributes)
    return p.c * math.sqrt(spread / m) * growth(case.criterion, m)


@kernel
def decision(p, lead: float, epsilon: float, tau: float) -> int:
    """Require a lead above ε, in theory of at least 2ε; or an ε of at most τ."""
    if lead >= 2.0 * epsilon if p.is_theory != 0.0 else lead > epsilon:
        return GAP
    return TIE if tau > 0.0 and epsilon <= tau else OPEN
