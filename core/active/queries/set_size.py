"""Set size: request labels where the conformal set of the answer does not have exactly one class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from core.active.queries.base import AT_RANDOM, NO, YES, Query, Uncertainty
from core.conformal.conformal_sets import state_of
from core.kernels.jit import kernel
from core.layout.model import ModelHeader
from core.layout.plan import PlanRecord
from core.numeric import rng
from core.plugin import number


@dataclass(frozen=True, slots=True)
class Plugin(Query):
    """Request iff the set has several classes, or none: ``{"name": "set_size", "explore": 0.05}``.

    The set is that of the spec's ``conformal`` (core/conformal/conformal_sets.py; sets of one class need no
    label, Hechtlinger, Poczos and Wasserman 2018). A set without a class has no class that is likely enough.
    Of the other records a share ``explore`` is requested at random: all chances are known and above 0, so
    that threshold, calibration and measures can represent all records.
    """

    needs_sets: ClassVar[bool] = True

    explore: float = number(0.05, above=0.0, at_most=1.0)
    """Share of the records with sets of one class whose label is requested."""


@kernel
def decide(
    plan: PlanRecord, p, model: ModelHeader, state, limit: float, uncertainty: Uncertainty
) -> tuple[int, float]:
    """Check the size of the set, else draw at random."""
    if state_of(plan, model).size != 1:
        return YES, 1.0
    is_drawn = rng.uniform(plan.query_key, uncertainty.number << rng.DRAW_BITS) < p.explore
    return AT_RANDOM if is_drawn else NO, p.explore
