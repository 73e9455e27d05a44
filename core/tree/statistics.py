"""Node statistics: the weights that nodes and leaves count, independent of the observers."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from core.kernels.jit import kernel, outlined
from core.layout.model import ModelHeader
from core.layout.plan import PlanRecord
from core.layout.tree import ABSENT, LEAF, Leaf, Node, Tree
from core.numeric import rng
from core.tree import quirks

SLACK: Final = 1e-6
"""MOA's sum of masses is rounded: a leaf may be due slightly before the weight of its schedule."""

LARGE: Final = 2.0**40
"""Ratio of total to weight from which rounding loses more than one part in 2**13 of the weight."""

_ROUNDING_KEY: Final = rng.stream_key(0, rng.ROUNDING)


@kernel
def voting_node(plan: PlanRecord, tree: Tree, node: Node) -> Node:
    """Return the node whose class masses a node votes with: its parent if it is empty.

    A parent always has weight. In MOA an empty branch votes with its own zeros, but a branch that does not
    exist yet votes with the masses of its parent.
    """
    if node.parent >= 0:
        lender = tree.node(node.parent)
        if node.kind == ABSENT:
            return lender
        if not plan.has(quirks.EMPTY_VOTES):
            for c in range(tree.model.classes):
                if node.masses[c] > 0.0:
                    return node
            return lender
    return node


@kernel
def is_active(node: Node) -> bool:
    """Return whether a node is a leaf with a leaf record; a leaf without one counts its classes only."""
    return bool(node.kind == LEAF and node.slot >= 0)


@kernel
def largest_share(masses, classes: int) -> float:
    """Return the largest share of the class masses, ½ without weight."""
    total = 0.0
    largest = 0.0
    for c in range(classes):
        total += masses[c]
        largest = max(largest, masses[c])
    return largest / total if total > 0.0 else 0.5


@kernel
def two_largest(counts, classes: int) -> tuple[float, float]:
    """Return the two largest of the class counts."""
    largest = 0.0
    second = 0.0
    for c in range(classes):
        second = max(second, min(counts[c], largest))
        largest = max(largest, counts[c])
    return largest, second


@kernel
def known_classes(model: ModelHeader) -> float:
    """Return the number of known classes, at least 2: a second class is always possible."""
    return float(max(model.classes, 2))


@kernel
def count_label(node: Node, leaf: Leaf, label: int, weight: float, number: int) -> None:
    """Count a label at a leaf: in the class masses of the node, and in the leaf's counts.

    ``number``: number of the record in its tree.
    """
    masses, seen = node.masses, leaf.seen
    if node.reach <= label:
        node.reach = label + 1
    if max(masses[label], leaf.observed) > LARGE * weight:
        masses[label] = sum_here(masses[label], weight, number)
        seen[label] = sum_here(seen[label], weight, number)
        leaf.observed = sum_here(leaf.observed, weight, number)
        return
    masses[label] += weight
    seen[label] += weight
    leaf.observed += weight


@kernel
def add_weight(totals, c: int, weight: float, number: int) -> None:
    """Add weight to totals[c], for record ``number``: a much larger total grows by the weight on average."""
    if totals[c] > LARGE * weight:
        totals[c] = sum_here(totals[c], weight, number)
    else:
        totals[c] += weight


@kernel("float64(float64, float64, int64)")
def sum_of_large(total: float, weight: float, number: int) -> float:
    """Return total + weight, rounded up or down at random so that the mean is right.

    With rounding to the nearest float a total would not grow once every weight is less than half of its last
    digit. With stochastic rounding (Croci, Fasi, Higham, Mary and Mikaitis 2022) its expected growth is the
    weight. The draw belongs to the record ``number``: a replay draws the same.
    """
    after = total + weight
    rest = weight - (after - total)
    if rest == 0.0 or total < weight:
        return after
    lower = after if rest > 0.0 else np.nextafter(after, 0.0)
    upper = np.nextafter(lower, np.inf)
    share = (weight - (lower - total)) / (upper - lower)
    return upper if rng.uniform(_ROUNDING_KEY, number) < share else lower


sum_here: Any = outlined(sum_of_large)


def weight_after(observed: float, weight: float) -> float:
    """Return observed + weight, at least one float above observed, so that no leaf stays due."""
    return max(observed + weight, np.nextafter(observed, np.inf))


# For kernels only: called from Python it would be compiled once more, in the middle of a stream.
later = kernel(weight_after)


@kernel
def count_attempt(tree: Tree, leaf: Leaf) -> None:
    """Count a split attempt: tests were ranked. A leaf of one class has no tests to rank."""
    tree.attempts += 1
    leaf.attempts += 1


@kernel
def evidence(plan: PlanRecord, node: Node, leaf: Leaf, classes: int) -> float:
    """Return n, the weight that bounds count [D8]: without records that observers left out."""
    if plan.inherited == 0:
        return own_evidence(leaf)
    return all_weight(node, classes) - leaf.left_out


@kernel
def own_evidence(leaf: Leaf) -> float:
    """Return the weight of the records in a leaf's statistics."""
    return leaf.observed - leaf.left_out


@kernel
def reckoned_weight(plan: PlanRecord, node: Node, leaf: Leaf, classes: int) -> float:
    """Return the weight by which schedules count: for MOA with inherited weight."""
    if not plan.has(quirks.INHERITED_COUNTS):
        return leaf.observed
    return all_weight(node, classes)


@kernel
def all_weight(node: Node, classes: int) -> float:
    """Return the weight of a node's class masses, with inherited weight; summed in the order of classes."""
    total = 0.0
    for c in range(classes):
        total += node.masses[c]
    return total
