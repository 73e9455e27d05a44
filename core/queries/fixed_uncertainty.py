"""Ask where the leaf is less sure than a fixed threshold (FixedUn)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from core.jit import kernel
from core.plugin import number
from core.queries.base import NO, UNKNOWN, YES, Query
from core.tree.statistics import known_classes, largest_share


@dataclass(frozen=True, slots=True)
class Plugin(Query):
    """Ask iff the largest class share is below a threshold that never moves.

    ``{"name": "fixed_uncertainty", "threshold": 0.9}`` (ALGORITHMS section 9.2, FixedUn; Žliobaitė et al.
    2014). With ``threshold`` 0 it follows from classes and budget, 1/K + B·(1 - 1/K), as scikit-activeml
    has it. A tree that grows sure asks less and less: under drift take a threshold that moves.
    """

    threshold: float = number(0.9, at_least=0.0, at_most=1.0)
    """Largest class share below which a label is asked for; 0: from classes and budget."""


@kernel
def decide(
    plan: Any,
    knobs: Any,
    at: int,
    ints: Any,
    floats: Any,
    state: int,
    limit: float,
    node: int,
    leaf: int,
    t: int,
) -> tuple[int, float]:
    """Compare the share with the threshold."""
    threshold = knobs[at]
    if threshold == 0.0:
        chance = 1.0 / known_classes(ints)
        threshold = chance + limit * (1.0 - chance)
    return YES if largest_share(ints, floats, node) < threshold else NO, UNKNOWN
