"""Node statistics: the weights that nodes and leaves count, independent of the observers."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from core.kernels.jit import kernel, outlined
from core.numeric import rng
from core.tree import layout as at
from core.tree import quirks
from core.tree.byoffset.routing import node_at

SLACK: Final = 1e-6
"""MOA's sum of masses is rounded: a leaf may be due slightly before the weight of its schedule."""

LARGE: Final = 2.0**40
"""Ratio of total to weight from which rounding loses more than one part in 2**13 of the weight."""

_ROUNDING_KEY: Final = rng.stream_key(0, rng.ROUNDING)


@kernel
def voting_masses(plan, ints, floats, t: int, node: int) -> int:
    """Return the first word of the class masses that a node votes with: its parent's if it is empty.

    A parent always has weight. In MOA an empty branch votes with its own zeros, but a branch that does not
    exist yet votes with the masses of its parent.
    """
    parent = ints[node + at.NODE_PARENT]
    if parent >= 0:
        lender = node_at(ints, t, parent) + at.NODE_FIELDS
        if ints[node + at.NODE_KIND] == at.ABSENT:
            return lender
        if plan[at.PLAN_QUIRKS] & quirks.EMPTY_VOTES == 0:
            masses = node + at.NODE_FIELDS
            for c in range(ints[at.MODEL_CLASSES]):
                if floats[masses + c] > 0.0:
                    return masses
            return lender
    return node + at.NODE_FIELDS


@kernel
def is_active(ints, node: int) -> bool:
    """Return whether a node is a leaf with a leaf record; a leaf without one counts its classes only."""
    return bool(ints[node + at.NODE_KIND] == at.LEAF and ints[node + at.NODE_SLOT] >= 0)


@kernel
def largest_share(ints, floats, node: int) -> float:
    """Return the largest class share at a node, ½ for an empty one (ALGORITHMS section 9.2) [D22]."""
    total = 0.0
    largest = 0.0
    for c in range(ints[at.MODEL_CLASSES]):
        mass = floats[node + at.NODE_FIELDS + c]
        total += mass
        largest = max(largest, mass)
    return largest / total if total > 0.0 else 0.5


@kernel
def two_largest(ints, floats, counts: int) -> tuple[float, float]:
    """Return the two largest of the class counts from word ``counts`` on."""
    largest = 0.0
    second = 0.0
    for c in range(ints[at.MODEL_CLASSES]):
        count = floats[counts + c]
        second = max(second, min(count, largest))
        largest = max(largest, count)
    return largest, second


@kernel
def known_classes(ints) -> float:
    """Return the number of known classes, at least 2: a second class is always possible."""
    return float(max(ints[at.MODEL_CLASSES], 2))


@kernel
def count_label(ints, floats, node: int, leaf: int, label: int, weight: float, number: int) -> None:
    """Count a label at a leaf: in the class masses of the node, and in the leaf's counts.

    ``number``: number of the record in its tree.
    """
    mass, seen = node + at.NODE_FIELDS + label, leaf + at.LEAF_FIELDS + label
    if ints[node + at.NODE_REACH] <= label:
        ints[node + at.NODE_REACH] = label + 1
    if max(floats[mass], floats[leaf + at.LEAF_OBSERVED]) > LARGE * weight:
        for word in (mass, seen, leaf + at.LEAF_OBSERVED):
            floats[word] = sum_here(floats[word], weight, number)
        return
    floats[mass] += weight
    floats[seen] += weight
    floats[leaf + at.LEAF_OBSERVED] += weight


@kernel
def add_weight(floats, word: int, weight: float, number: int) -> None:
    """Add weight to a total, for record ``number``: a much larger total grows by the weight on average."""
    if floats[word] > LARGE * weight:
        floats[word] = sum_here(floats[word], weight, number)
    else:
        floats[word] += weight


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
def count_attempt(ints, t: int, leaf: int) -> None:
    """Count a split attempt: tests were ranked. A leaf of one class has no tests to rank."""
    ints[t + at.TREE_ATTEMPTS] += 1
    ints[leaf + at.LEAF_ATTEMPTS] += 1


@kernel
def evidence(plan, ints, floats, node: int, leaf: int) -> float:
    """Return n, the weight that bounds count [D8]: without records that observers left out."""
    if plan[at.PLAN_INHERITED] == 0:
        return own_evidence(floats, leaf)
    return all_weight(ints, floats, node) - floats[leaf + at.LEAF_LEFT_OUT]


@kernel
def own_evidence(floats, leaf: int) -> float:
    """Return the weight of the records in a leaf's statistics."""
    return floats[leaf + at.LEAF_OBSERVED] - floats[leaf + at.LEAF_LEFT_OUT]


@kernel
def reckoned_weight(plan, ints, floats, node: int, leaf: int) -> float:
    """Return the weight by which schedules count: for MOA with inherited weight."""
    if plan[at.PLAN_QUIRKS] & quirks.INHERITED_COUNTS == 0:
        return floats[leaf + at.LEAF_OBSERVED]
    return all_weight(ints, floats, node)


@kernel
def all_weight(ints, floats, node: int) -> float:
    """Return the weight of a node's class masses, with inherited weight; summed in the order of classes."""
    total = 0.0
    for c in range(ints[at.MODEL_CLASSES]):
        total += floats[node + at.NODE_FIELDS + c]
    return total
