"""FixedUn: request labels where the leaf is new, or its largest class share is below a fixed threshold."""

from __future__ import annotations

from dataclasses import dataclass

from core.active.queries.base import NO, UNKNOWN, YES, Query
from core.kernels.jit import kernel
from core.plugin import number
from core.tree import layout


@dataclass(frozen=True, slots=True)
class Plugin(Query):
    """Request iff a leaf has seen few labels or its largest class share is below a fixed threshold.

    ``{"name": "fixed_uncertainty", "threshold": 0.9, "cold_start": 30}`` (ALGORITHMS section 9.2, FixedUn;
    Žliobaitė et al. 2014). With ``threshold`` 0 the threshold is 1/K + B·(1 - 1/K) from classes and budget,
    as in scikit-activeml. A leaf that has seen one label is pure, and no threshold would request more there:
    therefore the cold start. A tree that becomes sure requests less and less: under drift use a strategy with
    a threshold that moves.
    """

    threshold: float = number(0.9, at_least=0.0, at_most=1.0)
    """Largest class share below which a label is requested; 0: from classes and budget."""
    cold_start: float = number(30.0, at_least=0.0)
    """Labelled weight below which a leaf requests labels for any class shares; 0: none."""

    @property
    def columns(self) -> int:
        """Return SHARE and WEIGHT: the largest share, and the weight of labels."""
        return layout.SHARE | layout.WEIGHT


@kernel
def decide(
    plan,
    params,
    at: int,
    ints,
    floats,
    state: int,
    limit: float,
    share: float,
    lead: float,
    weight: float,
    classes: float,
    t: int,
) -> tuple[int, float]:
    """Check whether the leaf is new, else compare the share with the threshold."""
    if 0.0 <= weight < params[at + 1]:
        return YES, UNKNOWN
    threshold = params[at]
    if threshold == 0.0:
        chance = 1.0 / classes
        threshold = chance + limit * (1.0 - chance)
    return YES if share < threshold else NO, UNKNOWN


@kernel
def score(share: float, lead: float, weight: float, classes: float, t: int) -> float:
    return 1.0 - share
