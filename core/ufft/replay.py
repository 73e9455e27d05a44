"""Replay of a tree's memory: the records that reach a node are learned by its children, or by it anew."""

from __future__ import annotations

from core.jit import called, part
from core.tree import layout as at
from core.ufft import layout as of
from core.ufft.descent import child_of, reaches
from core.ufft.memory import remembered, row_of_age
from core.ufft.node_statistics import add_record


@called
def replay(
    plan,
    params,
    ints,
    floats,
    t: int,
    root: int,
    number: int,
    first: int,
    second: int,
    since: int,
    divides: bool,
) -> None:
    """Add the rows of the memory that reach a node to its statistics, by arrival: those from ``since`` on.

    divides: not to its own statistics but to those of the child that each falls in. first, second: entries of
    the pair's classes. No detector sees them, and nothing is evaluated (ALGORITHMS section 22.4).
    """
    node = of.node_at(plan, t, number)
    planted = ints[of.pair_at(t, ints[node + of.NODE_PAIR]) + of.PLANTED]
    a, b = remembered(plan, params, ints, t, first, second, max(planted, since))
    while a + b > 0:
        row_a = row_of_age(plan, params, ints, t, first, a - 1) if a > 0 else -1
        row_b = row_of_age(plan, params, ints, t, second, b - 1) if b > 0 else -1
        side = 1 if a == 0 else 0
        if a > 0 and b > 0 and ints[row_b + of.ROW_ARRIVAL] < ints[row_a + of.ROW_ARRIVAL]:
            side = 1
        row = row_a if side == 0 else row_b
        a -= 1 - side
        b -= side
        x = part(floats, row + of.ROW_FIELDS, plan[at.PLAN_ATTRIBUTES])
        if not reaches(plan, ints, floats, t, root, number, x):
            continue
        weight, target = floats[row + of.ROW_WEIGHT], node
        if divides:
            target = of.node_at(plan, t, child_of(plan, ints, floats, t, node, x))
            floats[target + of.NODE_ROUTED] += weight
        add_record(plan, floats, target, side, x, weight)
