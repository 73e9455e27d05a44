"""Replay of a tree's memory: the records that reach a node are learned by its children, or by the node."""

from __future__ import annotations

from core.kernels.jit import called, kernel
from core.layout.plan import PlanRecord
from core.learners.ufft.descent import child_of, reaches
from core.learners.ufft.layout import PairForest, PairNode, PairTree, parameters_of
from core.learners.ufft.memory import remembered, row_of_age
from core.learners.ufft.node_statistics import add_record, value_of
from core.learners.ufft.waiting import begin_waiting
from core.numeric.moments import deviation
from core.numeric.qda import left_share


@called
def replay(
    plan: PlanRecord, forest: PairForest, tree: PairTree, number: int, since: int, divides: bool
) -> None:
    """Add the rows of the memory that reach a node to its statistics, by arrival: those from ``since`` on.

    divides: add them to the statistics of the child that each falls into, not to the node's. No detector sees
    the rows, and no leaf is evaluated: the leaf, or each of the two leaves, waits for its first evaluation
    from here on.
    """
    p, node, root = parameters_of(plan), forest.node(plan, number), tree.entry.root
    a, b = remembered(plan, forest, tree, max(tree.entry.planted, since))
    while a + b > 0:
        side = side_of_oldest(plan, forest, tree, a, b)
        entry, age = (tree.second, b - 1) if side == 1 else (tree.first, a - 1)
        row = row_of_age(plan, forest, entry, age)
        a -= 1 - side
        b -= side
        if not reaches(plan, forest, root, number, row.values):
            continue
        target = node
        if divides:
            target = forest.node(plan, child_of(plan, forest, node, row.values))
            target.routed += row.weight
        add_record(plan, target, side, row.values, row.weight)
    if divides:
        begin_waiting(p, forest.node(plan, node.left))
        begin_waiting(p, forest.node(plan, node.right))
    else:
        begin_waiting(p, node)


@kernel
def side_of_oldest(plan: PlanRecord, forest: PairForest, tree: PairTree, a: int, b: int) -> int:
    """Return the class (0: the first) of the oldest row among the last a of the first class, b of the second.

    At least one of the two numbers is above 0.
    """
    if a == 0 or b == 0:
        return 1 if a == 0 else 0
    of_first = row_of_age(plan, forest, tree.first, a - 1).arrival
    return 1 if row_of_age(plan, forest, tree.second, b - 1).arrival < of_first else 0


@called
def has_records_on_both_sides(
    plan: PlanRecord, forest: PairForest, tree: PairTree, number: int, column: int, cut: float
) -> bool:
    """Return whether the memory holds records of a leaf on both sides of a cut.

    A record without a value in the column is on neither side. A forest without memory has only the densities
    of the two classes: the expected number of records on each side must be at least 1.
    """
    if parameters_of(plan).memory < 1.0:
        return is_expected_on_both_sides(plan, forest.node(plan, number), column, cut)
    rows_of_first, rows_of_second = remembered(plan, forest, tree, tree.entry.planted)
    is_left, is_right = False, False
    for position in range(rows_of_first + rows_of_second):
        is_first = position < rows_of_first
        entry, age = (tree.first, position) if is_first else (tree.second, position - rows_of_first)
        row = row_of_age(plan, forest, entry, age)
        value = value_of(plan, forest, row.values, column)
        is_new_side = (value <= cut and not is_left) or (value > cut and not is_right)
        if is_new_side and reaches(plan, forest, tree.entry.root, number, row.values):
            is_left = is_left or value <= cut
            is_right = is_right or value > cut
            if is_left and is_right:
                return True
    return False


@kernel
def is_expected_on_both_sides(plan: PlanRecord, node: PairNode, column: int, cut: float) -> bool:
    """Return whether each side of a cut has a weight of 1 by the normal densities of the two classes."""
    left, right = 0.0, 0.0
    for side in range(2):
        moments = node.statistics(plan).moments(column, side)
        share = left_share(moments.mean, deviation(moments.n, moments.m2), cut)
        left += moments.n * share
        right += moments.n * (1.0 - share)
    return left >= 1.0 and right >= 1.0
