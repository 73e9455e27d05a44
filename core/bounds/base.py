"""Confidence bounds: the half-width ε of a merit's confidence interval, and when a lead is enough.

The input of a bound is a *case*, float64[CASE_WORDS], written at every attempt
(``core/learners/hoeffding/split_decision.py``). Kernels of a module (``params`` from ``at`` on: its
parameters):

``epsilon(params, at, case) -> float``: ε, in the unit of the criterion's merit
``decision(params, at, lead, epsilon, tau) -> int``
    decides from the lead of the best test over the second best: OPEN, GAP (the lead is enough), TIE (ε is so
    small that the two are equally good; tau = 0: never)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Final

import numpy as np

from core import registry
from core.plugin import Parameters

# A case
CASE_WEIGHT: Final = 0  # labelled weight the leaf has seen: n, CDT's m
CASE_RANGE: Final = 1  # R, the range of the merit
CASE_CLASSES: Final = 2  # K
CASE_CRITERION: Final = 3  # kind of the criterion
CASE_DEPTH: Final = 4  # depth of the leaf, 0 at the root: h of CDT's theorem 4
CASE_RECORDS: Final = 5  # records the model has seen, this one among them: t
CASE_ATTRIBUTES: Final = 6  # d
CASE_TESTS: Final = 7  # tests that one attribute can propose, for any weight
CASE_WORDS: Final = 8

# Decisions
OPEN: Final = 0
GAP: Final = 1
TIE: Final = 2


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
        case = np.zeros(CASE_WORDS)
        case[[CASE_WEIGHT, CASE_RANGE, CASE_CLASSES]] = weight, merit_range, classes
        case[[CASE_CRITERION, CASE_DEPTH]] = registry.kind("criteria", criterion), depth
        case[[CASE_RECORDS, CASE_ATTRIBUTES, CASE_TESTS]] = records, attributes, tests
        kernels = registry.module(self.family, self.name)
        return float(kernels.epsilon(np.array([*self.constants(), 0.0]), 0, case))


def dispatcher() -> tuple[Any, Any]:
    """Return ``epsilon(kind, …)`` and ``decision(kind, …)`` over all bounds."""
    return (
        registry.dispatch("bounds", "epsilon", "params, at, case"),
        registry.dispatch("bounds", "decision", "params, at, lead, epsilon, tau"),
    )
