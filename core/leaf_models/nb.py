"""Naive Bayes on the leaf's observers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from core.jit import kernel
from core.leaf_models import mc
from core.leaf_models.base import LeafModel
from core.observers import base as observers
from core.special import LN2, exp, log2
from core.tree import layout as at
from core.tree.routing import leaf_at

log_densities_numeric, densities_numeric = observers.numeric_dispatcher()[-2:]
log_densities_nominal, densities_nominal = observers.nominal_dispatcher()[-2:]


@dataclass(frozen=True, slots=True)
class Plugin(LeafModel):
    """``ln π_c + Σ ln f(x_a | c)``: ``"leaf_model": "nb"`` (ALGORITHMS section 2.8; Gama, Rocha, Medas 2003).

    π are the class masses of the leaf, inherited ones too. A leaf that has observed nothing votes like
    ``mc``.
    """


@kernel
def votes(
    plan: Any,
    knobs: Any,
    ints: Any,
    floats: Any,
    t: int,
    node: int,
    x: Any,
    xs: Any,
    scratch: Any,
    out: Any,
) -> tuple[int, int]:
    """Write the posterior class probabilities."""
    prediction, memo = mc.votes(plan, knobs, ints, floats, t, node, x, xs, scratch, out)
    if ints[node + at.NODE_KIND] != at.LEAF:
        return prediction, memo
    leaf = leaf_at(ints, t, ints[node + at.NODE_SLOT])
    if floats[leaf + at.LEAF_OBSERVED] == 0.0:
        return prediction, memo
    k = ints[at.MODEL_CLASSES]
    if plan[at.PLAN_MOA] != 0:
        _multiply(plan, knobs, ints, floats, t, leaf, k, x, xs, out)
        best = _first_maximum(out, k)
        _normalise(out, k)
        return best, memo
    for c in range(k):
        out[c] = LN2 * log2(out[c]) if out[c] > 0.0 else -math.inf
    statistics = leaf + at.LEAF_FIELDS + plan[at.PLAN_CLASSES]
    if plan[at.PLAN_NUMERIC] > 0:
        kind = plan[at.PLAN_NUMERIC_OBSERVER]
        log_densities_numeric(kind, plan, knobs, floats, statistics, k, xs, scratch, out)
    if plan[at.PLAN_NOMINAL] > 0:
        statistics = leaf + ints[t + at.TREE_NOMINAL_AT]
        kind = plan[at.PLAN_NOMINAL_OBSERVER]
        log_densities_nominal(kind, plan, knobs, ints, floats, statistics, k, x, scratch, out)
    best = _first_maximum(out, k)
    top = out[best]
    for c in range(k):
        out[c] = exp(out[c] - top)
    _normalise(out, k)
    return best, memo


@kernel
def _multiply(
    plan: Any,
    knobs: Any,
    ints: Any,
    floats: Any,
    t: int,
    leaf: int,
    k: int,
    x: Any,
    xs: Any,
    out: Any,
) -> None:
    """Multiply the class shares with the densities (MOA)."""
    statistics = leaf + at.LEAF_FIELDS + plan[at.PLAN_CLASSES]
    if plan[at.PLAN_NUMERIC] > 0:
        densities_numeric(plan[at.PLAN_NUMERIC_OBSERVER], plan, knobs, floats, statistics, k, xs, out)
    if plan[at.PLAN_NOMINAL] > 0:
        statistics = leaf + ints[t + at.TREE_NOMINAL_AT]
        kind = plan[at.PLAN_NOMINAL_OBSERVER]
        densities_nominal(kind, plan, knobs, ints, floats, statistics, k, x, out)


@kernel
def _first_maximum(values: Any, k: int) -> int:
    """Return the position of the first largest value of k >= 1."""
    best = 0
    for c in range(1, k):
        if values[c] > values[best]:
            best = c
    return best


@kernel
def _normalise(values: Any, k: int) -> None:
    """Divide by the sum, unless that is 0."""
    total = 0.0
    for c in range(k):
        total += values[c]
    if total > 0.0:
        for c in range(k):
            values[c] /= total


@kernel
def account(
    plan: Any,
    knobs: Any,
    ints: Any,
    floats: Any,
    t: int,
    node: int,
    x: Any,
    xs: Any,
    label: int,
    weight: float,
    memo: int,
    scratch: Any,
    opinions: Any,
) -> None:
    """Keep no score."""


@kernel
def prediction(
    plan: Any,
    knobs: Any,
    ints: Any,
    floats: Any,
    t: int,
    node: int,
    x: Any,
    xs: Any,
    scratch: Any,
    opinions: Any,
) -> int:
    """Return the class alone; scratch (as in ``votes``) and opinions, float64[class], are overwritten."""
    k = ints[at.MODEL_CLASSES]
    for c in range(k):
        opinions[c] = 0.0
    best, _ = votes(plan, knobs, ints, floats, t, node, x, xs, scratch, opinions)
    return best
