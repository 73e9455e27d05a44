"""Growing: roots for new pairs, evaluation of leaves, splits whose children learn from the memory."""

from __future__ import annotations

import math
from typing import Final

from core.kernels.jit import kernel
from core.learners.ufft import layout as of
from core.learners.ufft.replay import has_records_on_both_sides, replay
from core.learners.ufft.waiting import first_due, next_due
from core.numeric.idbd import idbd_inherit, idbd_start
from core.numeric.moments import deviation
from core.numeric.qda import cut_of, gain_of
from core.numeric.special import LN2, log2
from core.tree import layout as at

MIRROR: Final = 1e-9
"""Relative difference by which a gain must exceed the gain of another value of the same attribute."""
NO_GAIN: Final = 1e-10
"""A smaller gain counts as none [D6]."""


@kernel
def page_fits(plan, ints, t: int) -> bool:
    """Return whether another page fits into the bytes of the block."""
    words = ints[t + of.NODES] * ints[t + of.LEARNED_NODE]
    words += (ints[t + of.PAGES] + 1) * of.place(plan, of.PAGE_WORDS)
    return bool(words <= ints[t + of.LIMIT])


@kernel
def spare_nodes(plan, ints, t: int) -> int:
    """Return how many node records, in addition to those ever used, fit into the bytes of the block.

    If there is enough room, one page is left free: the present record may take it.
    """
    pages = ints[t + of.PAGES] + (1 if page_fits(plan, ints, t) else 0)
    words = ints[t + of.LIMIT] - pages * of.place(plan, of.PAGE_WORDS)
    return max(words // ints[t + of.LEARNED_NODE] - ints[t + of.NODES], 0)


@kernel
def take_node(plan, params, ints, floats, t: int, pair: int, parent: int) -> int:
    """Return the number of a new leaf that has seen nothing; -1: there is no room for one."""
    number = ints[t + of.FREE]
    if number >= 0:
        ints[t + of.FREE] = ints[of.node_at(plan, t, number) + of.NODE_PARENT]
    else:
        if spare_nodes(plan, ints, t) == 0:
            return -1
        number = ints[t + of.NODES]
        ints[t + of.NODES] += 1
    ints[t + of.LIVE] += 1
    node = of.node_at(plan, t, number)
    ints[node + of.NODE_PARENT] = parent
    ints[node + of.NODE_PAIR] = pair
    ints[node + of.NODE_DEPTH] = 0 if parent < 0 else ints[of.node_at(plan, t, parent) + of.NODE_DEPTH] + 1
    floats[node + of.NODE_ROUTED] = 0.0
    begin_node(plan, params, ints, floats, node)
    return number


@kernel
def begin_node(plan, params, ints, floats, node: int) -> None:
    """Make a node a leaf that has seen nothing; its links, and the weight that came to it, stay."""
    ints[node + of.NODE_LEFT] = of.LEAF
    ints[node + of.NODE_RIGHT] = of.LEAF
    ints[node + of.NODE_COLUMN] = 0
    floats[node + of.NODE_CUT] = 0.0
    floats[node + of.NODE_DUE] = first_due(plan, params, 0.0)
    ints[node + of.NODE_WARNING] = -1
    floats[node + of.NODE_WEIGHT] = 0.0
    floats[node + of.NODE_WEIGHT + 1] = 0.0
    ints[node + of.NODE_INPUTS] = 0
    ints[node + of.NODE_ERRORS] = 0
    state = plan[at.PLAN_LEARNER + 1] + of.PARAMETERS
    statistics, end = of.place(plan, of.STATISTICS_AT), of.place(plan, of.NODE_WORDS)
    for word in range(statistics - of.NODE_FIELDS):
        floats[node + of.NODE_FIELDS + word] = params[state + word]
    for word in range(statistics, end):
        floats[node + word] = 0.0
    if of.parameter(plan, params, of.LEAF_MODEL) == of.UNIT:
        idbd_start(floats, node + of.place(plan, of.UNIT_AT), 1 + of.place(plan, of.COLUMNS))


@kernel
def free_below(plan, ints, t: int, number: int) -> int:
    """Free all nodes below a node, the left ones of each first; return their number.

    A node that waits to be freed is chained by its parent word, like free nodes.
    """
    node = of.node_at(plan, t, number)
    if ints[node + of.NODE_LEFT] < 0:
        return 0
    freed = 0
    waiting = ints[node + of.NODE_LEFT]
    ints[of.node_at(plan, t, waiting) + of.NODE_PARENT] = ints[node + of.NODE_RIGHT]
    ints[of.node_at(plan, t, ints[node + of.NODE_RIGHT]) + of.NODE_PARENT] = -1
    while waiting >= 0:
        record = of.node_at(plan, t, waiting)
        rest = ints[record + of.NODE_PARENT]
        left, right = ints[record + of.NODE_LEFT], ints[record + of.NODE_RIGHT]
        if left >= 0:
            ints[of.node_at(plan, t, left) + of.NODE_PARENT] = right
            ints[of.node_at(plan, t, right) + of.NODE_PARENT] = rest
            rest = left
        for word in range(of.place(plan, of.NODE_WORDS)):
            ints[record + word] = 0
        ints[record + of.NODE_LEFT] = of.FREED
        ints[record + of.NODE_RIGHT] = of.FREED
        ints[record + of.NODE_PARENT] = ints[t + of.FREE]
        ints[t + of.FREE] = waiting
        freed += 1
        waiting = rest
    ints[t + of.LIVE] -= freed
    return freed


@kernel
def candidate_of(plan, floats, node: int, column: int) -> tuple[bool, float, float]:
    """Return whether a column has a candidate, its cut and its gain (bits, 0 without one).

    A cut of a nominal value with 0 and 1 on the same side is no candidate.
    """
    here = node + of.place(plan, of.STATISTICS_AT) + column * of.COLUMN_WORDS
    other = here + of.STATISTICS
    first, second = floats[here], floats[other]
    if not (first >= 2.0 and second >= 2.0):
        return False, 0.0, 0.0
    mean_first, sd_first = floats[here + 1], deviation(first, floats[here + 2])
    mean_second, sd_second = floats[other + 1], deviation(second, floats[other + 2])
    found, cut = cut_of(first, mean_first, sd_first, second, mean_second, sd_second)
    if not found or (column >= plan[at.PLAN_NUMERIC] and not 0.0 <= cut < 1.0):
        return False, 0.0, 0.0
    return True, cut, gain_of(first, mean_first, sd_first, second, mean_second, sd_second, cut)


@kernel
def best_of_attribute(plan, ints, floats, node: int, attribute: int) -> tuple[int, float, float]:
    """Return the column, cut and gain of an attribute's best candidate; the gain is 0 without one.

    attribute: numeric attributes first, then nominal attributes. Each value of a nominal attribute has a
    candidate, and a later candidate must be clearly better: two values are mirror images, with equal gains
    [D5].
    """
    numeric = plan[at.PLAN_NUMERIC]
    if attribute < numeric:
        _, cut, gain = candidate_of(plan, floats, node, attribute)
        return attribute, cut, gain
    entry = plan[at.PLAN_NOMINAL_TABLE] + (attribute - numeric) * at.NOMINAL_FIELDS
    first = numeric + plan[entry + at.NOMINAL_FIRST]
    column, cut, best = first, 0.0, 0.0
    for code in range(ints[plan[at.PLAN_VALUES_SEEN] + attribute - numeric]):
        _, its_cut, gain = candidate_of(plan, floats, node, first + code)
        if gain > best * (1.0 + MIRROR):
            column, cut, best = first + code, its_cut, gain
    return column, cut, best


@kernel
def evaluate(plan, params, ints, floats, t: int, root: int, number: int, first: int, second: int) -> None:
    """Split a leaf if one column's gain is surely the largest; else set when the leaf is evaluated again.

    A cut with all records of the memory on one side is no split, even if its gain by the densities is large.
    first, second: the entries of the pair's classes, whose rings the children learn from.
    """
    node = of.node_at(plan, t, number)
    one, other = floats[node + of.NODE_WEIGHT], floats[node + of.NODE_WEIGHT + 1]
    n = one + other
    if n < floats[node + of.NODE_DUE] or one <= 0.0 or other <= 0.0:
        return
    ints[t + of.ATTEMPTS] += 1
    column, cut, best, rival = -1, 0.0, 0.0, 0.0
    for attribute in range(plan[at.PLAN_NUMERIC] + plan[at.PLAN_NOMINAL]):
        its_column, its_cut, gain = best_of_attribute(plan, ints, floats, node, attribute)
        if gain > best:
            column, cut, best, rival = its_column, its_cut, gain, best
        elif gain > rival:
            rival = gain
    gap = best - rival
    bound = math.sqrt(-LN2 * log2(of.parameter(plan, params, of.DELTA)) / (2.0 * n))
    is_tie = gap < bound < of.parameter(plan, params, of.TAU)
    floats[node + of.NODE_DUE] = next_due(plan, params, n, gap)
    if best < NO_GAIN or not (gap > bound or is_tie):
        return
    if not has_records_on_both_sides(plan, params, ints, floats, t, root, number, first, second, column, cut):
        return
    if not has_room_for_two(plan, ints, t):
        stop(plan, ints, floats, t)
        return
    pair = ints[node + of.NODE_PAIR]
    left = take_node(plan, params, ints, floats, t, pair, number)
    right = take_node(plan, params, ints, floats, t, pair, number)
    ints[node + of.NODE_LEFT], ints[node + of.NODE_RIGHT] = left, right
    ints[node + of.NODE_COLUMN] = column
    floats[node + of.NODE_CUT] = cut
    ints[t + of.SPLITS] += 1
    if of.parameter(plan, params, of.LEAF_MODEL) == of.UNIT:
        words = of.place(plan, of.UNIT_AT)
        for child in (left, right):
            unit = of.node_at(plan, t, child) + words
            idbd_inherit(floats, unit, node + words, 1 + of.place(plan, of.COLUMNS))
    of.add_event(
        plan, ints, floats, t, of.TIE if is_tie else of.SPLIT, number, column, cut, best, rival, bound, n
    )
    replay(plan, params, ints, floats, t, root, number, first, second, -1, True)


@kernel
def has_room_for_two(plan, ints, t: int) -> bool:
    """Return whether there are two node records for a split."""
    free = ints[t + of.FREE]
    room = spare_nodes(plan, ints, t)
    if free >= 0:
        room += 1 if ints[of.node_at(plan, t, free) + of.NODE_PARENT] < 0 else 2
    return bool(room >= 2)


@kernel
def stop(plan, ints, floats, t: int) -> None:
    """Note that the forest lacks bytes to grow; the first time, add an event."""
    if ints[t + of.STOPPED] == 0:
        ints[t + of.STOPPED] = 1
        of.add_event(plan, ints, floats, t, of.NO_ROOM, -1, -1, 0.0, 0.0, 0.0, 0.0, 0.0)
