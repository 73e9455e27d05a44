"""Naive Bayes at a leaf, on the leaf's observers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from core.kernels.jit import kernel, stay_apart
from core.kernels.records import Words
from core.layout.plan import PlanRecord
from core.leaf_models import mc
from core.leaf_models.base import LeafModel
from core.numeric.special import LN2, exp, in_vectors, log2
from core.observers import base as observers
from core.tree import layout as at
from core.tree import quirks
from core.tree.byoffset.routing import leaf_at
from core.tree.byoffset.statistics import is_active

log_densities_numeric, densities_numeric = observers.numeric_dispatcher()[-2:]
log_densities_nominal, densities_nominal = observers.nominal_dispatcher()[-2:]

# Kinds of scores: shares of classes (of a leaf that has observed nothing), products of densities, or
# logarithms of these
SHARES: Final = 0
PRODUCTS: Final = 1
LOGARITHMS: Final = 2

NO_HINT: Final = -1


@dataclass(frozen=True, slots=True)
class Plugin(LeafModel):
    """``ln π_c + Σ ln f(x_a | c)``: ``"leaf_model": "nb"`` (ALGORITHMS section 2.8).

    π are the class masses of the leaf, with inherited mass (Gama, Rocha, Medas 2003). A leaf that has
    observed nothing votes like ``mc``.
    """


@kernel
def votes(plan, params, ints, floats, t: int, node: int, x, xs, scratch, out) -> tuple[int, int]:
    """Write the posterior class probabilities."""
    best, form = scores(plan, params, ints, floats, t, node, x, xs, scratch, out)
    k = ints[at.MODEL_CLASSES]
    if form == LOGARITHMS:
        top = out[best]
        for c in range(in_vectors(k)):
            if c < k:
                out[c] = exp(out[c] - top)
    if form != SHARES:
        normalise(out, k)
    return best, NO_HINT


@kernel
def scores(plan, params, ints, floats, t: int, node: int, x, xs, scratch, out) -> tuple[int, int]:
    """Write the scores of the classes; return the best class, and LOGARITHMS, PRODUCTS or SHARES."""
    best, _ = mc.votes(plan, params, ints, floats, t, node, x, xs, scratch, out)
    if not is_active(ints, node):
        return best, SHARES
    leaf = leaf_at(ints, t, ints[node + at.NODE_SLOT])
    if floats[leaf + at.LEAF_OBSERVED] == 0.0:
        return best, SHARES
    k = ints[at.MODEL_CLASSES]
    if plan[at.PLAN_QUIRKS] & quirks.MULTIPLIED_DENSITIES != 0:
        _multiply(plan, params, ints, floats, t, leaf, k, x, xs, out)
        return first_maximum(out, k), PRODUCTS
    for c in range(in_vectors(k)):
        if c < k:
            out[c] = LN2 * log2(out[c]) if out[c] > 0.0 else -math.inf
    statistics = leaf + at.LEAF_FIELDS + plan[at.PLAN_CLASSES]
    if plan[at.PLAN_NUMERIC] > 0:
        kind = plan[at.PLAN_NUMERIC_OBSERVER]
        log_densities_numeric(
            kind,
            PlanRecord(plan, params, 0),
            Words(plan, params, plan[at.PLAN_NUMERIC_OBSERVER + 1]),
            Words(ints, floats, statistics),
            k,
            xs,
            scratch,
            out,
        )
    if plan[at.PLAN_NOMINAL] > 0:
        statistics = leaf + ints[t + at.TREE_NOMINAL_AT]
        kind = plan[at.PLAN_NOMINAL_OBSERVER]
        log_densities_nominal(
            kind,
            PlanRecord(plan, params, 0),
            Words(plan, params, plan[at.PLAN_NOMINAL_OBSERVER + 1]),
            Words(ints, floats, statistics),
            k,
            x,
            scratch,
            out,
        )
    return first_maximum(out, k), LOGARITHMS


@kernel
def _multiply(plan, params, ints, floats, t: int, leaf: int, k: int, x, xs, out) -> None:
    """Multiply the class shares by the densities (MOA)."""
    statistics = leaf + at.LEAF_FIELDS + plan[at.PLAN_CLASSES]
    if plan[at.PLAN_NUMERIC] > 0:
        densities_numeric(
            plan[at.PLAN_NUMERIC_OBSERVER],
            PlanRecord(plan, params, 0),
            Words(plan, params, plan[at.PLAN_NUMERIC_OBSERVER + 1]),
            Words(ints, floats, statistics),
            k,
            xs,
            out,
        )
    if plan[at.PLAN_NOMINAL] > 0:
        statistics = leaf + ints[t + at.TREE_NOMINAL_AT]
        kind = plan[at.PLAN_NOMINAL_OBSERVER]
        densities_nominal(
            kind,
            PlanRecord(plan, params, 0),
            Words(plan, params, plan[at.PLAN_NOMINAL_OBSERVER + 1]),
            Words(ints, floats, statistics),
            k,
            x,
            out,
        )


@kernel
def first_maximum(values, k: int) -> int:
    best = 0
    for c in range(1, k):
        if values[c] > values[best]:
            best = c
    return best


@kernel
def normalise(values, k: int) -> None:
    """Divide by the sum, unless the sum is 0."""
    total = 0.0
    for c in range(k):
        total += values[c]
    if total > 0.0:
        for c in range(k):
            values[c] /= total


@kernel
def account(
    plan,
    params,
    ints,
    floats,
    t: int,
    node: int,
    x,
    xs,
    label: int,
    weight: float,
    leaf_hint: int,
    scratch,
    vote_buffer,
) -> None:
    """Nothing to update: the leaf model has no state."""


@kernel
def prediction(plan, params, ints, floats, t: int, node: int, x, xs, scratch, vote_buffer) -> int:
    """Return the class alone; scratch (as in ``votes``) and vote_buffer, float64[class], are overwritten."""
    stay_apart()  # rarely called: most records were answered before they are learned
    k = ints[at.MODEL_CLASSES]
    for c in range(k):
        vote_buffer[c] = 0.0
    best, _ = scores(plan, params, ints, floats, t, node, x, xs, scratch, vote_buffer)
    return best
