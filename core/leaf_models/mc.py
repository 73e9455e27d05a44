"""Majority class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from core.jit import kernel
from core.leaf_models.base import LeafModel
from core.tree import layout as at
from core.tree.statistics import voting_masses


@dataclass(frozen=True, slots=True)
class Plugin(LeafModel):
    """The class with the largest weight at the leaf: ``"leaf_model": "mc"`` (ALGORITHMS section 2.8)."""


@kernel
def majority(plan: Any, ints: Any, floats: Any, t: int, node: int) -> int:
    """Return the class with the largest weight, the first of equals; -1 while no class is known."""
    masses = voting_masses(plan, ints, floats, t, node)
    best = 0 if ints[at.MODEL_CLASSES] > 0 else -1
    for c in range(1, ints[at.MODEL_CLASSES]):
        if floats[masses + c] > floats[masses + best]:
            best = c
    return best


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
    """Write the class shares."""
    masses = voting_masses(plan, ints, floats, t, node)
    total = 0.0
    best = 0 if ints[at.MODEL_CLASSES] > 0 else -1
    for c in range(ints[at.MODEL_CLASSES]):
        mass = floats[masses + c]
        total += mass
        if mass > floats[masses + best]:
            best = c
    if total > 0.0:
        for c in range(ints[at.MODEL_CLASSES]):
            out[c] = floats[masses + c] / total
    return best, -1


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
