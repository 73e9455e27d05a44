"""Growing: roots for new pairs, evaluation of leaves, splits whose children learn from the memory."""

from __future__ import annotations

import math
from typing import Final

from core.kernels.jit import kernel
from core.layout.plan import PlanRecord
from core.layout.tree import NO_NODE
from core.learners.ufft.layout import (
    FREED,
    LEAF,
    NO_ROOM,
    NODE_FIELDS,
    SPLIT,
    TIE,
    UNIT,
    PairForest,
    PairNode,
    PairTree,
    add_event,
    parameters_of,
    places_of,
)
from core.learners.ufft.replay import has_records_on_both_sides, replay
from core.learners.ufft.waiting import first_due, next_due
from core.numeric.idbd import idbd_inherit, idbd_start
from core.numeric.moments import deviation
from core.numeric.qda import cut_of, gain_of
from core.numeric.special import LN2, log2

MIRROR: Final = 1e-9
"""Relative difference by which a gain must exceed the gain of another value of the same attribute."""
NO_GAIN: Final = 1e-10
"""A smaller gain counts as none [D6]."""


@kernel
def page_fits(plan: PlanRecord, forest: PairForest) -> bool:
    """Return whether another page fits into the bytes of the block."""
    words = forest.nodes * forest.learned_node
    words += (forest.pages + 1) * places_of(plan).page_words
    return bool(words <= forest.limit)


@kernel
def spare_nodes(plan: PlanRecord, forest: PairForest) -> int:
    """Return how many node records, in addition to those ever used, fit into the bytes of the block.

    If there is enough room, one page is left free: the present record may take it.
    """
    pages = forest.pages + (1 if page_fits(plan, forest) else 0)
    words = forest.limit - pages * places_of(plan).page_words
    return max(words // forest.learned_node - forest.nodes, 0)


@kernel
def take_node(plan: PlanRecord, forest: PairForest, pair: int, parent: int) -> int:
    """Return the number of a new leaf that has seen nothing; -1: there is no room for one."""
    number = forest.free
    if number >= 0:
        forest.free = forest.node(plan, number).parent
    else:
        if spare_nodes(plan, forest) == 0:
            return NO_NODE
        number = forest.nodes
        forest.nodes += 1
    forest.live += 1
    node = forest.node(plan, number)
    node.parent = parent
    node.pair = pair
    node.depth = 0 if parent < 0 else forest.node(plan, parent).depth + 1
    node.routed = 0.0
    begin_node(plan, node)
    return number


@kernel
def begin_node(plan: PlanRecord, node: PairNode) -> None:
    """Make a node a leaf that has seen nothing; its links, and the weight that came to it, stay."""
    p, places = parameters_of(plan), places_of(plan)
    node.left = LEAF
    node.right = LEAF
    node.column = 0
    node.cut = 0.0
    node.due = first_due(p, 0.0)
    node.warning = -1
    node.first_weight = 0.0
    node.second_weight = 0.0
    node.inputs = 0
    node.errors = 0
    for word in range(places.statistics_at - NODE_FIELDS):
        node.detector.cells[word] = p.new_detector[word]
    for word in range(places.statistics_at, places.node_words):
        node.floats[node.start + word] = 0.0
    if p.leaf_model == UNIT:
        idbd_start(node.floats, node.unit_start(plan), places.inputs)


@kernel
def free_below(plan: PlanRecord, forest: PairForest, number: int) -> int:
    """Free all nodes below a node, the left ones of each first; return their number.

    A node that waits to be freed is chained by its parent word, like free nodes.
    """
    above = forest.node(plan, number)
    if above.left < 0:
        return 0
    freed = 0
    waiting = above.left
    forest.node(plan, above.left).parent = above.right
    forest.node(plan, above.right).parent = NO_NODE
    while waiting >= 0:
        node = forest.node(plan, waiting)
        rest = node.parent
        if node.left >= 0:
            forest.node(plan, node.left).parent = node.right
            forest.node(plan, node.right).parent = rest
            rest = node.left
        for word in range(places_of(plan).node_words):
            node.ints[node.start + word] = 0
        node.left = FREED
        node.right = FREED
        node.parent = forest.free
        forest.free = waiting
        freed += 1
        waiting = rest
    forest.live -= freed
    return freed


@kernel
def candidate_of(plan: PlanRecord, node: PairNode, column: int) -> tuple[float, float]:
    """Return the cut of a column and its gain (bits), 0 and 0 for a column without candidate.

    A cut of a nominal value with 0 and 1 on the same side is no candidate.
    """
    statistics = node.statistics(plan)
    first, second = statistics.moments(column, 0), statistics.moments(column, 1)
    if not (first.n >= 2.0 and second.n >= 2.0):
        return 0.0, 0.0
    first_sd, second_sd = deviation(first.n, first.m2), deviation(second.n, second.m2)
    is_cut, cut = cut_of(first.n, first.mean, first_sd, second.n, second.mean, second_sd)
    if not is_cut or (column >= plan.numeric and not 0.0 <= cut < 1.0):
        return 0.0, 0.0
    return cut, gain_of(first.n, first.mean, first_sd, second.n, second.mean, second_sd, cut)


@kernel
def best_of_attribute(
    plan: PlanRecord, forest: PairForest, node: PairNode, attribute: int
) -> tuple[int, float, float]:
    """Return the column, cut and gain of an attribute's best candidate; the gain is 0 without one.

    attribute: numeric attributes first, then nominal attributes. Each value of a nominal attribute has a
    candidate, and a later candidate must be clearly better: two values are mirror images, with equal gains
    [D5].
    """
    if attribute < plan.numeric:
        cut, gain = candidate_of(plan, node, attribute)
        return attribute, cut, gain
    j = attribute - plan.numeric
    first = plan.numeric + plan.nominal_column(j).first
    column, best_cut, best = first, 0.0, 0.0
    for code in range(forest.model.values_seen(plan)[j]):
        cut, gain = candidate_of(plan, node, first + code)
        if gain > best * (1.0 + MIRROR):
            column, best_cut, best = first + code, cut, gain
    return column, best_cut, best


@kernel
def evaluate(plan: PlanRecord, forest: PairForest, tree: PairTree, number: int) -> None:
    """Split a leaf if one column's gain is surely the largest; else set when the leaf is evaluated again.

    A cut with all records of the memory on one side is no split, even if its gain by the densities is large.
    """
    node, p = forest.node(plan, number), parameters_of(plan)
    n = node.weight
    if n < node.due or node.first_weight <= 0.0 or node.second_weight <= 0.0:
        return
    forest.attempts += 1
    column, cut, best, second = -1, 0.0, 0.0, 0.0
    for attribute in range(plan.numeric + plan.nominal):
        its_column, its_cut, gain = best_of_attribute(plan, forest, node, attribute)
        if gain > best:
            column, cut, best, second = its_column, its_cut, gain, best
        elif gain > second:
            second = gain
    gap = best - second
    bound = math.sqrt(-LN2 * log2(p.delta) / (2.0 * n))
    is_tie = gap < bound < p.tau
    node.due = next_due(p, n, gap)
    if best < NO_GAIN or not (gap > bound or is_tie):
        return
    if not has_records_on_both_sides(plan, forest, tree, number, column, cut):
        return
    if not has_room_for_two(plan, forest):
        stop(plan, forest)
        return
    split(plan, forest, number, column, cut)
    event = add_event(plan, forest, TIE if is_tie else SPLIT, number)
    event.column = column
    event.cut = cut
    event.best = best
    event.second = second
    event.bound = bound
    event.weight = n
    replay(plan, forest, tree, number, -1, True)


@kernel
def split(plan: PlanRecord, forest: PairForest, number: int, column: int, cut: float) -> None:
    """Make a leaf an inner node with two children that have seen nothing; there is room for both."""
    node = forest.node(plan, number)
    left = take_node(plan, forest, node.pair, number)
    right = take_node(plan, forest, node.pair, number)
    node.left = left
    node.right = right
    node.column = column
    node.cut = cut
    forest.splits += 1
    if parameters_of(plan).leaf_model == UNIT:
        unit, inputs = node.unit_start(plan), places_of(plan).inputs
        for child in (left, right):
            idbd_inherit(node.floats, forest.node(plan, child).unit_start(plan), unit, inputs)


@kernel
def has_room_for_two(plan: PlanRecord, forest: PairForest) -> bool:
    """Return whether there are two node records for a split."""
    room = spare_nodes(plan, forest)
    if forest.free >= 0:
        room += 1 if forest.node(plan, forest.free).parent < 0 else 2
    return bool(room >= 2)


@kernel
def stop(plan: PlanRecord, forest: PairForest) -> None:
    """Note that the forest lacks bytes to grow; the first time, add an event."""
    if forest.stopped == 0:
        forest.stopped = 1
        add_event(plan, forest, NO_ROOM, -1)
