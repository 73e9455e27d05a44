"""Replay of a tree's memory: the records that reach a node are learned by its children, or by the node."""

from __future__ import annotations

from core.kernels.jit import called, kernel, part
from core.learners.ufft import layout as of
from core.learners.ufft.descent import child_of, reaches
from core.learners.ufft.memory import remembered, row_of_age
from core.learners.ufft.node_statistics import add_record, value_of
from core.learners.ufft.waiting import begin_waiting
from core.numeric.moments import deviation
from core.numeric.qda import left_share
from core.tree import layout as at


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

    divides: add them to the statistics of the child that each falls into, not to the node's. first, second:
    entries of the pair's classes. No detector sees the rows, and no leaf is evaluated (ALGORITHMS section
    22.4): the leaf, or each of the two leaves, waits for its first evaluation from here on.
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
    if divides:
        begin_waiting(plan, params, floats, of.node_at(plan, t, ints[node + of.NODE_LEFT]))
        begin_waiting(plan, params, floats, of.node_at(plan, t, ints[node + of.NODE_RIGHT]))
    else:
        begin_waiting(plan, params, floats, node)


@called
def has_records_on_both_sides(
    plan,
    params,
    ints,
    floats,
    t: int,
    root: int,
    number: int,
    first: int,
    second: int,
    column: int,
    cut: float,
) -> bool:
    """Return whether the memory holds records of a leaf on both sides of a cut.

    A record without a value in the column is on neither side. A forest without memory has only the densities
    of the two classes: the expected number of records on each side must be at least 1.
    """
    node = of.node_at(plan, t, number)
    if of.parameter(plan, params, of.MEMORY) < 1.0:
        return is_expected_on_both_sides(plan, floats, node, column, cut)
    planted = ints[of.pair_at(t, ints[node + of.NODE_PAIR]) + of.PLANTED]
    rows_of_first, rows_of_second = remembered(plan, params, ints, t, first, second, planted)
    is_left, is_right = False, False
    for age in range(rows_of_first + rows_of_second):
        entry, its_age = (first, age) if age < rows_of_first else (second, age - rows_of_first)
        row = row_of_age(plan, params, ints, t, entry, its_age)
        x = part(floats, row + of.ROW_FIELDS, plan[at.PLAN_ATTRIBUTES])
        value = value_of(plan, ints, x, column)
        is_new_side = (value <= cut and not is_left) or (value > cut and not is_right)
        if is_new_side and reaches(plan, ints, floats, t, root, number, x):
            is_left = is_left or value <= cut
            is_right = is_right or value > cut
            if is_left and is_right:
                return True
    return False


@kernel
def is_expected_on_both_sides(plan, floats, node: int, column: int, cut: float) -> bool:
    """Return whether each side of a cut has a weight of 1 by the normal densities of the two classes."""
    left, right = 0.0, 0.0
    for side in range(2):
        here = node + of.place(plan, of.STATISTICS_AT) + column * of.COLUMN_WORDS + side * of.STATISTICS
        n = floats[here]
        share = left_share(floats[here + 1], deviation(n, floats[here + 2]), cut)
        left += n * share
        right += n * (1.0 - share)
    return left >= 1.0 and right >= 1.0
