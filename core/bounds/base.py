"""Confidence bounds: the half-width ε of a merit's confidence interval, and when a lead is enough.

The input of a bound is a *case*, made at every attempt (``core/learners/hoeffding/split_decision.py``).
Kernels of a module (``p``: the bound's numeric parameters by name):

``epsilon(p, case) -> float``: ε, in the unit of the criterion's merit
``decision(p, lead, epsilon, tau) -> int``
    decides from the lead of the best test over the second best: OPEN, GAP (the lead is enough), TIE (ε is so
    small that the two are equally good; tau = 0: never)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Final, NamedTuple

from core import registry
from core.plugin import Parameters

# Decisions
OPEN: Final = 0
GAP: Final = 1
TIE: Final = 2


class Case(NamedTuple):
    """A leaf at which a bound has to decide."""

    weight: float
    """Labelled weight that the leaf has seen: n, CDT's m."""
    merit_range: float
    """R, the range of the merit."""
    classes: int
    """K."""
    criterion: int
    """Kind of the criterion."""
    depth: int
    """Depth of the leaf, 0 at the root: h of CDT's theorem 4."""
    records: float
    """Records that the model has seen, this one among them: t."""
    attributes: int
    """Number of attributes: d."""
    tests: int
    """Tests that one attribute can propose, for any weight."""


@dataclass(frozen=True, slots=True)
class Bound(Parameters):
    """Half-width of a confidence interval of a merit, and the lead that a split needs."""

    family: ClassVar[str] = "bounds"

    @property
    def needs(self) -> str | None:
        """Name of a kernel that the criterion must have for this bound, None: no requirement."""
        return None

    @property
    def constant(self) -> float | None:
        """Return c if ``ε² = c·R²/n``, None for any other form: schedules that look ahead solve it for n."""
        return None

    @property
    def factor(self) -> float:
        """Multiple of ε that a lead has to exceed."""
        return 1.0

    def max_classes(self, criterion: Any) -> int | None:
        """Return the largest number of classes for which the bound is proved with a criterion, None: any."""
        return None

    def epsilon(
        self,
        merit_range: float,
        weight: float,
        *,
        classes: int = 2,
        criterion: str = "gini",
        depth: int = 0,
        records: float = 1.0,
        attributes: int = 1,
        tests: int = 0,
    ) -> float:
        """Return ε for a merit of this range, at a leaf with this weight of labelled records."""
        kind = registry.kind("criteria", criterion)
        case = Case(
            float(weight), float(merit_range), classes, kind, depth, float(records), attributes, tests
        )
        kernels = registry.module(self.family, self.name)
        return float(kernels.epsilon(self.numbers(), case))


def dispatcher() -> tuple[Any, Any]:
    """Return ``epsilon(kind, …)`` and ``decision(kind, …)`` over all bounds."""
    return (
        registry.dispatch("bounds", "epsilon", "p, case"),
        registry.dispatch("bounds", "decision", "p, lead, epsilon, tau"),
    )
