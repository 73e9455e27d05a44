"""Routing ahead: eight records go down a tree together, one level at a time.

The way of one record down a tree is a chain of loads, each depending on the previous one, and each test is
mispredicted half of the time. Eight records go down together, one level at a time and without a branch, so
that the processor loads for one record while it waits for another. Nothing is written: the leaves that are
found stay valid until the tree changes its shape. If one of the records has a value that a test cannot place,
all eight are left to ``arrive``. Only trees whose tests are all of one kind are routed in this way: numeric
tests, or multiway tests of two values, which are tests for being above 0. Computing all three kinds of tests
and selecting one costs as much as the mispredictions.

No check for a leaf is needed: a leaf's record contains the test "at most infinity: child 0", and its first
child is the leaf (layout.end_here).
"""

from __future__ import annotations

from typing import Any, Final

from core.kernels.jit import address_of, kernel, prefetch, stay_apart
from core.layout.tree import TREE_HEADER, Tree

WIDTH: Final = 8
"""Records that are routed together."""

AHEAD: Final = 2 * WIDTH
"""Rows between a row and the later one that is prefetched."""
LINES: Final = 16
"""Cache lines of 64 bytes that are prefetched."""

# Kinds of tests (PlanRecord.route_ahead)
NONE: Final = 0
THRESHOLDS: Final = 1
HALVES: Final = 2


@kernel
def route_ahead(kind: int, tree: Tree, xs, d: int, ends) -> None:
    """Write the places (first words of nodes) where WIDTH records end, or -1 for all of them.

    kind: THRESHOLDS or HALVES; xs: float64[WIDTH·d], one record after another; ends: int64[WIDTH].
    """
    for i in range(WIDTH):
        ends[i] = tree.start + TREE_HEADER
    missed = descend(tree, xs, d, ends) if kind == THRESHOLDS else halve(tree, xs, d, ends)
    if missed != 0:
        for i in range(WIDTH):
            ends[i] = -1


def _descent(is_unplaced: Any) -> Any:
    """Return the kernel ``descend``; is_unplaced: kernel that returns whether a test cannot place a value."""

    @kernel
    def descend(tree: Tree, xs, d: int, ends) -> int:
        """Go down to the leaves; return non-zero if a test cannot place one of the values."""
        stay_apart()
        stride = tree.node_stride
        first = tree.start + TREE_HEADER
        missed = 0
        moved = 1
        while moved != 0:
            moved = 0
            for i in range(WIDTH):
                node = tree.node_of(ends[i])
                value = xs[i * d + node.attribute]
                child = 1 if value > node.value else 0
                below = first + (node.child + child) * stride
                moved |= below ^ ends[i]
                ends[i] = below
                missed |= 1 if is_unplaced(value) else 0
        return missed

    return descend


@kernel
def is_missing(value: float) -> bool:
    """Return whether a value is missing; every other value is at most a threshold or above it."""
    return value != value


@kernel
def is_no_half(value: float) -> bool:
    """Return whether a value is neither 0 nor 1; the test of a node of two values is "at most 0"."""
    return value * (value - 1.0) != 0.0


descend: Any = _descent(is_missing)
halve: Any = _descent(is_no_half)


@kernel
def is_one_model(run: Any, row: int) -> bool:
    """Return whether the next WIDTH rows of a run (core/run.py) belong to one model."""
    models = run.model
    if row + WIDTH > run.rows or models[row] != models[row + WIDTH - 1]:
        return False
    others = 0
    for later in range(row, row + WIDTH):
        others |= models[later] ^ models[row]
    return bool(others == 0)


@kernel
def look_ahead(run: Any, row: int) -> None:
    """Prefetch the first cache lines of a later record of a run and, if it differs, of its model.

    Ten thousand models do not fit a core's cache; a small model fits these lines completely.
    """
    later = row + AHEAD
    if later < run.rows:
        if run.model[later] != run.model[row]:
            address = run.addresses[run.model[later]]
            for line in range(LINES):
                prefetch(address + 64 * line)
        cells = address_of(run.x)
        last = min((run.width + 7) >> 3, LINES)
        for line in range(last):
            prefetch(cells + 8 * later * run.width + 64 * line)
