"""Resampling: how often a member learns a record, and which attributes a leaf or a member sees.

Both are pure functions of the seed, the member, and the record or the leaf: the random numbers of a member do
not depend on other members.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from core.kernels.jit import kernel, part
from core.layout.model import ModelHeader
from core.layout.plan import PlanRecord
from core.learners.forest.layout import APART, forest_plan, mean_repeats
from core.numeric import rng
from core.numeric.special import in_vectors
from core.numeric.subsets import FEW, choose, choose_apart
from core.tree.columns import gather

MOST: Final = rng.MOST_EVENTS
"""Maximum of times that a member learns a record."""

NODE_BITS: Final = 24
"""Number of nodes of a tree with separate random numbers, as a power of two."""
DRAW_BITS: Final = 16
"""Random numbers for each of these nodes, as a power of two."""


@kernel
def chances_of(mean: float, chances) -> None:
    """Write the probabilities that a Poisson variate is at most 0, 1, …, MOST; chances: float64[MOST + 1].

    They are the numbers that ``rng.poisson`` compares with, to the bit.
    """
    share = math.exp(-mean)
    chances[0] = share
    for k in range(1, MOST + 1):
        share *= mean / k
        chances[k] = chances[k - 1] + share


@kernel
def times_by(chances, plan: PlanRecord, model: ModelHeader, member: int) -> int:
    """Return the result of ``times`` from the probabilities of its mean."""
    if mean_repeats(plan) == 0.0:
        return 1
    u = rng.uniform(plan.bagging_key, (model.labels << rng.DRAW_BITS) + member)
    k = 0
    while u >= chances[k] and k < MOST:
        k += 1
    return k


@kernel
def times(plan: PlanRecord, model: ModelHeader, member: int) -> int:
    """Return how often a member, by its number, learns the record that the model learns now."""
    mean = mean_repeats(plan)
    if mean == 0.0:
        return 1
    return rng.poisson(plan.bagging_key, (model.labels << rng.DRAW_BITS) + member, mean)


@kernel
def seen_by(plan: PlanRecord, serial: int, node: int, x, spare) -> tuple[Any, Any]:
    """Return a record without the attributes that a leaf does not see, and its numeric attributes.

    serial: the tree's; node: number of the leaf, 0 for all leaves of a tree; spare: float64[3·d].
    """
    draw_subset(plan, serial, node, spare)
    d = plan.attributes
    return masked(plan, x, spare, part(spare, d, 2 * d))


@kernel
def draw_subset(plan: PlanRecord, serial: int, node: int, chosen) -> None:
    """Sample the attributes that a leaf sees, or all leaves of a tree (node 0); chosen: float64[d]."""
    forests, d = forest_plan(plan), plan.attributes
    first = ((serial << NODE_BITS) + node) << DRAW_BITS
    if d <= FEW and forests.subspaces == APART and serial < forests.members:
        choose_apart(plan.subspace_key, serial, d, forests.attributes, chosen)
    else:
        choose(plan.subspace_key, first, d, forests.attributes, chosen)


@kernel
def masked(plan: PlanRecord, x, chosen, spare) -> tuple[Any, Any]:
    """Return a record without the attributes that are not chosen (float64[d]: 0.0); spare: float64[2·d]."""
    d = plan.attributes
    seen = part(spare, 0, d)
    for a in range(in_vectors(d)):
        if a < d:
            seen[a] = x[a] if chosen[a] != 0.0 else np.nan
    return seen, gather(plan, seen, part(spare, d, d))
