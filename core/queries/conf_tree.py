"""Ask until the leaf's majority is beyond doubt, then seldom (ConfTree)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from core import rng
from core.jit import kernel
from core.plugin import number
from core.queries.base import NO, YES, Query
from core.tree import layout
from core.tree.statistics import known_classes, two_largest


@dataclass(frozen=True, slots=True)
class Plugin(Query):
    """Ask at every leaf that is not δ-consistent; at the others with (B + ε) / (B + ε + gap/2).

    ``{"name": "conf_tree", "delta": 0}`` (De Rosa and Cesa-Bianchi 2017, Algorithm 2 and equation 6;
    ALGORITHMS section 9.2). A leaf with m labels is δ-consistent iff the two largest class shares among them
    lie more than 2ε apart, ε = sqrt(ln(K·t/δ) / 2m); for two classes that is equation 6, for K it keeps
    Theorem 5: a consistent leaf predicts another class than the best one with a probability of at most δ
    [D11]. ``delta`` 0 stands for δ = 1/t, the paper's choice. Shares and m are those of labels the leaf has
    seen, without what it inherited [D23]: after a split its children are in doubt again.
    """

    delta: float = number(0.0, at_least=0.0, below=1.0)
    """How likely a leaf that is not in doubt may predict the wrong class; 0 stands for 1/t."""


@kernel
def epsilon(m: float, t: int, classes: float, delta: float) -> float:
    """Return ε of a leaf that has seen m > 0 labels, at record t."""
    if delta > 0.0:  # K·t/δ itself may be beyond all floats
        return math.sqrt((math.log(classes * t) - math.log(delta)) / (2.0 * m))
    return math.sqrt(math.log(classes * t * t) / (2.0 * m))


@kernel
def probability(limit: float, width: float, gap: float) -> float:
    """Return how likely a record of a consistent leaf is asked for; width is ε."""
    return (limit + width) / (limit + width + 0.5 * gap)


@kernel
def chance_at(knobs: Any, at: int, ints: Any, floats: Any, limit: float, leaf: int, t: int) -> float:
    """Return how likely a record that ended at a leaf (-1: at an inner node) is asked for."""
    if leaf < 0:
        return 1.0
    m = floats[leaf + layout.LEAF_OBSERVED]
    if m <= 0.0:
        return 1.0
    largest, second = two_largest(ints, floats, leaf + layout.LEAF_FIELDS)
    gap = (largest - second) / m
    width = epsilon(m, t, known_classes(ints), knobs[at])
    return 1.0 if gap <= 2.0 * width else probability(limit, width, gap)


@kernel
def draw(plan: Any, chance: float, t: int) -> int:
    """Return YES with this chance, for record t."""
    # A draw is below 1: one that is not needed costs less than a branch to guess.
    return YES if rng.uniform(plan[layout.PLAN_QUERY_KEY], t << rng.DRAW_BITS) < chance else NO


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
    """Judge the leaf, then draw for record t."""
    chance = chance_at(knobs, at, ints, floats, limit, leaf, t)
    return draw(plan, chance, t), chance
