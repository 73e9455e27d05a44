"""What nodes and leaves count, whatever the observers."""

from __future__ import annotations

from typing import Any, Final

from core.jit import kernel
from core.tree import layout as at
from core.tree.routing import node_at

SLACK: Final = 1e-6
"""MOA's sum of masses is rounded: a leaf may be due a hair before the weight its schedule names."""


@kernel
def voting_masses(plan: Any, ints: Any, floats: Any, t: int, node: int) -> int:
    """Return where the class masses lie that a node votes with: its own, or its parent's while it has none.

    A parent always has weight. MOA lets a branch without weight vote nothing, but has its parent answer for a
    branch that does not exist yet.
    """
    parent = ints[node + at.NODE_PARENT]
    if parent >= 0:
        lender = node_at(ints, t, parent) + at.NODE_FIELDS
        if ints[node + at.NODE_KIND] == at.ABSENT:
            return lender
        if plan[at.PLAN_MOA] == 0:
            masses = node + at.NODE_FIELDS
            for c in range(ints[at.MODEL_CLASSES]):
                if floats[masses + c] > 0.0:
                    return masses
            return lender
    return node + at.NODE_FIELDS


@kernel
def largest_share(ints: Any, floats: Any, node: int) -> float:
    """Return the largest class share at a node, ½ for an empty one (ALGORITHMS section 9.2) [D22]."""
    total = 0.0
    largest = 0.0
    for c in range(ints[at.MODEL_CLASSES]):
        mass = floats[node + at.NODE_FIELDS + c]
        total += mass
        largest = max(largest, mass)
    return largest / total if total > 0.0 else 0.5


@kernel
def two_largest(ints: Any, floats: Any, counts: int) -> tuple[float, float]:
    """Return the two largest of the class counts that lie at word ``counts``."""
    largest = 0.0
    second = 0.0
    for c in range(ints[at.MODEL_CLASSES]):
        count = floats[counts + c]
        second = max(second, min(count, largest))
        largest = max(largest, count)
    return largest, second


@kernel
def known_classes(ints: Any) -> float:
    """Return the number of known classes, at least 2: a second class is always possible."""
    return float(max(ints[at.MODEL_CLASSES], 2))


@kernel
def count_label(ints: Any, floats: Any, node: int, leaf: int, label: int, weight: float) -> None:
    """Count a label at a leaf: class masses of the node, and what the leaf itself has seen."""
    floats[node + at.NODE_FIELDS + label] += weight
    if ints[node + at.NODE_REACH] <= label:
        ints[node + at.NODE_REACH] = label + 1
    floats[leaf + at.LEAF_FIELDS + label] += weight
    floats[leaf + at.LEAF_OBSERVED] += weight


@kernel
def evidence(plan: Any, ints: Any, floats: Any, node: int, leaf: int) -> float:
    """Return the weight behind a leaf's statistics, that bounds speak of: less what observers left out."""
    return reckoned_weight(plan, ints, floats, node, leaf) - floats[leaf + at.LEAF_LEFT_OUT]


@kernel
def reckoned_weight(plan: Any, ints: Any, floats: Any, node: int, leaf: int) -> float:
    """Return the weight by which schedules count: for MOA with what was inherited [D8]."""
    if plan[at.PLAN_MOA] == 0:
        return floats[leaf + at.LEAF_OBSERVED]
    total = 0.0
    for c in range(ints[at.MODEL_CLASSES]):
        total += floats[node + at.NODE_FIELDS + c]
    return total
