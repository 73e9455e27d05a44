"""Majority class: a leaf predicts its heaviest class."""

from __future__ import annotations

from dataclasses import dataclass

from core.kernels.jit import kernel
from core.leaf_models.base import LeafModel
from core.tree import layout as at
from core.tree.byoffset.statistics import all_weight, voting_masses


@dataclass(frozen=True, slots=True)
class Plugin(LeafModel):
    """The class with the largest weight at the leaf: ``"leaf_model": "mc"``.

    The first class of equal weights; in C-Tree the second of two [D9] (ALGORITHMS section 2.8; Domingos and
    Hulten 2000).
    """


@kernel
def majority(plan, ints, floats, t: int, node: int) -> int:
    """Return the class with the largest weight, -1 while no class is known."""
    return heaviest(plan, ints, floats, voting_masses(plan, ints, floats, t, node))


@kernel
def heaviest(plan, ints, floats, masses: int) -> int:
    """Return the class with the largest mass (from word ``masses`` on), -1 while no class is known."""
    best = 0 if ints[at.MODEL_CLASSES] > 0 else -1
    for c in range(1, ints[at.MODEL_CLASSES]):
        if floats[masses + c] > floats[masses + best]:
            best = c
    if plan[at.PLAN_LAST_OF_TWO] != 0 and ints[at.MODEL_CLASSES] == 2 and floats[masses] > 0.0:
        return 1 if floats[masses + 1] == floats[masses] else best
    return best


@kernel
def votes(plan, params, ints, floats, t: int, node: int, x, xs, scratch, out) -> tuple[int, int]:
    masses = node + at.NODE_FIELDS
    total = all_weight(ints, floats, node)
    if not total > 0.0:
        masses = voting_masses(plan, ints, floats, t, node)
        total = all_weight(ints, floats, masses - at.NODE_FIELDS)
    if total > 0.0:
        for c in range(ints[at.MODEL_CLASSES]):
            out[c] = floats[masses + c] / total
    return heaviest(plan, ints, floats, masses), -1


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
