"""Coverage: how often conformal sets held the label, over all records."""

from __future__ import annotations

import math
from typing import Final, NamedTuple

from core.layout.measures import LABELS
from core.layout.model import Ints
from core.layout.plan import PlanRecord
from core.layout.published import CONFORMAL_WORDS, ConformalState
from core.measures.estimate import UNKNOWN, Estimate
from core.numeric.proportions import wilson

SET_FIGURES: Final = ("coverage", "coverage_low", "coverage_high", "set_size")
"""Names of the figures of sets in evaluations and reports."""


class Coverage(NamedTuple):
    """How often sets held the label, and how large they are."""

    measured: str
    """``records``: labels are weighted so that they represent all records; ``labels``: each counts once."""
    labels: int
    """Judged labels."""
    coverage: Estimate
    """Share of labels in their sets, with Wilson's interval of 95 %."""
    size: float
    """Mean number of classes in a set, over all answers; NaN: none had a set."""
    single: float
    """Share of the sets of one class."""
    threshold: float

    def to_dict(self) -> dict[str, float]:
        """Return the figures by name; NaN: unknown."""
        return dict(zip(SET_FIGURES, (*self.coverage, self.size), strict=True))


def read(plan: PlanRecord, ints: Ints) -> Coverage | None:
    """Return the coverage of the sets of a model (int64, its words); None: it has no sets."""
    start = int(plan.conformal)
    if not plan.conformal_words:
        return None
    state = ConformalState.read(ints[start : start + CONFORMAL_WORDS])
    coverage = UNKNOWN
    if state.weight > 0.0:
        n = state.weight * state.weight / state.squares
        share = min(state.covered / state.weight, 1.0)
        coverage = Estimate(share, *wilson(share * n, n))
    sets = state.sets
    size, single = (state.classes / sets, state.single / sets) if sets else (math.nan, math.nan)
    measured = "labels" if state.basis == LABELS else "records"
    return Coverage(measured, state.labels, coverage, size, single, state.threshold)
