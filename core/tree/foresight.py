"""The ways of several records at once.

A way down a tree is a chain: each node names the next one, and each test is a coin toss to the branch
predictor. Eight records go down together, one level at a time and without a branch, so that the processor
works on one while it waits for another. Nothing is written: what is found holds until the tree changes its
shape, and records that meet a value which a test cannot place are left to ``arrive``. Only trees of numeric
tests go this way: to make all three kinds of tests and let one count costs what the tosses did.

That needs no test for being at a leaf: a leaf's record reads "at most infinity: child 0", and its first child
is itself (layout.end_here).
"""

from __future__ import annotations

from typing import Any, Final

from core.jit import kernel, stay_apart
from core.tree import layout as at

WIDTH: Final = 8
"""Records that go together."""


@kernel
def foresee(ints: Any, floats: Any, t: int, xs: Any, d: int, ends: Any) -> None:
    """Write the node records where WIDTH records end, all attributes being numeric, or -1 for all of them.

    xs: float64[WIDTH·d], one record after another; ends: int64[WIDTH].
    """
    for i in range(WIDTH):
        ends[i] = t + at.TREE_HEADER
    if descend(ints, floats, t, xs, d, ends) != 0:
        for i in range(WIDTH):
            ends[i] = -1


@kernel
def descend(ints: Any, floats: Any, t: int, xs: Any, d: int, ends: Any) -> int:
    """Go down to the leaves; return not 0 if a value that a test asks for is missing."""
    stay_apart()
    stride = ints[t + at.TREE_NODE_STRIDE]
    first = t + at.TREE_HEADER
    missed = 0
    moved = 1
    while moved != 0:
        moved = 0
        for i in range(WIDTH):
            node = ends[i]
            value = xs[i * d + ints[node + at.NODE_ATTRIBUTE]]
            child = 1 if value > floats[node + at.NODE_VALUE] else 0
            below = first + (ints[node + at.NODE_CHILD] + child) * stride
            ends[i] = below
            moved |= below ^ node
            missed |= 1 if value != value else 0
    return missed
