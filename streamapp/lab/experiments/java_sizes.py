"""Bytes that MOA's memory check counts for a Hoeffding tree: HotSpot, 64 bit, short pointers, wide text.

Only objects that grow with the data are computed; the rest are constants, summed up class by class. One
thing cannot be derived from a tree: a list keeps the room to which it had grown, which depends on the
order in which classes came. It is computed as if the last class had come after a gap, which makes a leaf 2
% larger at most.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from core.tree.views import TreeView

Counts = npt.NDArray[np.int64]

VECTOR: Final = 16
"""A DoubleVector without its array."""
ESTIMATOR: Final = 40
"""A GaussianEstimator."""
NUMERIC_OBSERVER: Final = 32 + 24 + 16 + 32 + 24 + 40 + 48 + 88 + 24 + 2 * VECTOR
"""GaussianNumericAttributeClassObserver, its options (one, with two texts), list and two vectors."""
NOMINAL_OBSERVER: Final = 40 + 24 + 16 + 32 + 24
"""NominalAttributeClassObserver, its options (none) and its list."""

ACTIVE_LEAF: Final = 72
INACTIVE_LEAF: Final = 16
SPLIT_NODE: Final = 24 + 24 + 32
"""With its list of children and its test."""
LIST: Final = 24
QUEUE: Final = 32 + 16
"""IMAC's queue of potential attributes, and its comparison object, which has a reference to the leaf."""
TUPLE: Final = 32
INTEGER: Final = 16
CANDIDATE: Final = 40 + LIST + 24
"""A candidate, the list of its branches, its test."""
CRITERION: Final = 176
TREE: Final = 400


def doubles(n: Any) -> Any:
    return 16 + 8 * np.asarray(n)


def references(n: Any) -> Any:
    return (16 + 4 * np.asarray(n) + 7) // 8 * 8


def room(n: Any) -> Any:
    """Return the room of a list that has grown to n members, n > 0."""
    last = np.asarray(n) - 1
    return last + np.maximum(last // 2, 1)


def observers(tree: TreeView, slot: int, firsts: Counts, attributes: int) -> int:
    """Return the bytes of a leaf's observers.

    firsts: int64[nominal], the first value of each nominal attribute; attributes: number of all
    attributes, nominal and numeric.
    """
    numeric = attributes - len(firsts)
    total = LIST + int(references(attributes + 1))
    met = tree.seen[slot] > 0.0
    if not met.any():
        return LIST + int(references(0))
    classes = int(np.flatnonzero(met)[-1]) + 1
    lists = int(references(room(classes)))
    total += numeric * (NUMERIC_OBSERVER + 2 * int(doubles(classes)) + lists + ESTIMATOR * int(met.sum()))
    if len(firsts):
        counts = tree.nominal[slot][met] > 0.0
        # The vector of a class has the length of its largest value plus one: up to its last column above 0.
        columns = np.arange(counts.shape[1]) + 1
        last = np.maximum.reduceat(np.where(counts, columns, 0), firsts, axis=1)
        lengths = np.maximum(last - firsts, 0)
        total += len(firsts) * (NOMINAL_OBSERVER + lists) + int((VECTOR + doubles(lengths)).sum())
    return total


def distribution(masses: npt.NDArray[np.float64]) -> int:
    """Return the bytes of a node's class distribution, float64[class]."""
    met = np.flatnonzero(masses)
    return VECTOR + int(doubles(met[-1] + 1 if len(met) else 0))
