"""Adaptive naive Bayes: majority class or naive Bayes, by the hits of each at this leaf so far."""

from __future__ import annotations

from dataclasses import dataclass

from core.kernels.jit import kernel
from core.leaf_models import mc, nb
from core.leaf_models.base import LeafModel
from core.tree import layout as at
from core.tree import quirks
from core.tree.byoffset.routing import leaf_at
from core.tree.byoffset.statistics import is_active


@dataclass(frozen=True, slots=True)
class Plugin(LeafModel):
    """Naive Bayes, unless the majority class has hits of more weight: ``"leaf_model": "nba"``.

    ALGORITHMS section 2.8. Both are scored on each record before the leaf learns it (Holmes, Kirkby,
    Pfahringer 2005).
    """


@kernel
def votes(plan, params, ints, floats, t: int, node: int, x, xs, scratch, out) -> tuple[int, int]:
    """Write the votes of the better model; the hint is naive Bayes' class if it is the better one."""
    if is_active(ints, node):
        leaf = leaf_at(ints, t, ints[node + at.NODE_SLOT])
        if floats[leaf + at.LEAF_MAJORITY_RIGHT] <= floats[leaf + at.LEAF_BAYES_RIGHT]:
            best, _ = nb.votes(plan, params, ints, floats, t, node, x, xs, scratch, out)
            return best, best
    return mc.votes(plan, params, ints, floats, t, node, x, xs, scratch, out)


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
    """Count the weight of the hits of both models."""
    leaf = leaf_at(ints, t, ints[node + at.NODE_SLOT])
    if plan[at.PLAN_QUIRKS] & quirks.EMPTY_VOTES != 0 and ints[node + at.NODE_REACH] == 0:
        # MOA: an empty distribution has no majority, but the first maximum of no votes is class 0.
        floats[leaf + at.LEAF_BAYES_RIGHT] += weight if label == 0 else 0.0
        return
    bayes = leaf_hint
    if bayes < 0:
        bayes = nb.prediction(plan, params, ints, floats, t, node, x, xs, scratch, vote_buffer)
    if mc.majority(plan, ints, floats, t, node) == label:
        floats[leaf + at.LEAF_MAJORITY_RIGHT] += weight
    if bayes == label:
        floats[leaf + at.LEAF_BAYES_RIGHT] += weight
