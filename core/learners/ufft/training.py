"""Training: a labelled record goes through the trees of its class, each of which learns, drifts or grows."""

from __future__ import annotations

from typing import Any

import numpy as np

from core.drift import base as drift
from core.kernels.jit import WORDS, kernel, outlined
from core.kernels.records import Words
from core.learners.ufft import layout as of
from core.learners.ufft.descent import child_of, write_inputs
from core.learners.ufft.growing import (
    begin_node,
    evaluate,
    free_below,
    page_fits,
    spare_nodes,
    stop,
    take_node,
)
from core.learners.ufft.memory import push, wants_page
from core.learners.ufft.node_statistics import add_record, log_odds
from core.learners.ufft.replay import replay
from core.learners.ufft.steps import note_values
from core.learners.ufft.waiting import begin_waiting
from core.numeric.idbd import idbd_update
from core.tree import layout as at

detect = drift.dispatcher()


@kernel
def wanted_nodes(plan, ints, t: int, label: int) -> int:
    """Return how many node records a record may take: roots of new pairs, and two leaves for each tree."""
    met, roots = 0, 0
    for other in range(plan[at.PLAN_CLASSES]):
        if other != label and ints[of.class_at(plan, t, other) + of.CLASS_RECORDS] > 0:
            met += 1
            pair = of.pair_number(min(label, other), max(label, other))
            if ints[of.pair_at(t, pair) + of.ROOT] < 0:
                roots += 1
    return roots + 2 * met


@kernel
def lacks_room(plan, params, ints, t: int, label: int, wanted: int) -> bool:
    """Return whether the block has to grow first and has the bytes for it."""
    if ints[t + of.RECKONED] != of.learned(plan, ints):
        return True
    pages = ints[t + of.PAGES]
    needs_page = wants_page(plan, params, ints, of.class_at(plan, t, label)) and page_fits(plan, ints, t)
    if needs_page and pages == ints[t + of.PAGE_CAPACITY]:
        return True
    fitting = min(wanted, spare_nodes(plan, ints, t))
    return bool(ints[t + of.NODES] + fitting > ints[t + of.NODE_CAPACITY])


@kernel
def watch(plan, params, ints, floats, t: int, node: int, side: int, x, arrival: int) -> bool:
    """Update a node's detector with the error of its naive Bayes; return whether the node is out of control.

    The node keeps the first record of a warning until it is in control again.
    """
    error = 0.0 if (log_odds(plan, params, ints, floats, t, node, x) < 0.0) == (side == 1) else 1.0
    ints[node + of.NODE_INPUTS] += 1
    ints[node + of.NODE_ERRORS] += 1 if error != 0.0 else 0
    kind, first = plan[at.PLAN_NODE_DETECTOR], plan[at.PLAN_NODE_DETECTOR + 1]
    level = detect(kind, Words(plan, params, first), Words(ints, floats, node + of.NODE_FIELDS), error)
    if level == drift.IN_CONTROL:
        ints[node + of.NODE_WARNING] = -1
    elif level == drift.WARNING and ints[node + of.NODE_WARNING] < 0:
        ints[node + of.NODE_WARNING] = arrival
    return bool(level == drift.DRIFT)


@kernel
def restart(
    plan, params, ints, floats, t: int, root: int, number: int, first: int, second: int, arrival: int
) -> None:
    """Make a node that is out of control a leaf, which learns the records since its warning again [D57]."""
    node = of.node_at(plan, t, number)
    since = ints[node + of.NODE_WARNING]
    since = since if since >= 0 else arrival
    inputs, errors = ints[node + of.NODE_INPUTS], ints[node + of.NODE_ERRORS]
    freed = free_below(plan, ints, t, number)
    kind = of.PRUNED if freed > 0 else of.RESTARTED
    begin_node(plan, params, ints, floats, node)
    ints[t + of.RESTARTS] += 1
    of.add_event(
        plan, ints, floats, t, kind, number, -1, 0.0, 0.0, 0.0, 0.0, float(errors) / max(float(inputs), 1.0)
    )
    replay(plan, params, ints, floats, t, root, number, first, second, since, False)


@kernel
def learn_tree(
    plan,
    params,
    ints,
    floats,
    t: int,
    root: int,
    first: int,
    second: int,
    side: int,
    x,
    weight: float,
    arrival: int,
    is_kept: bool,
    inputs,
) -> None:
    """Learn a record of one of a pair's classes (side 0: the first) with its tree."""
    detects = of.parameter(plan, params, of.DETECTS) != 0.0
    number = root
    while True:
        node = of.node_at(plan, t, number)
        ints[t + of.VISITS] += 1
        floats[node + of.NODE_ROUTED] += weight
        if detects and watch(plan, params, ints, floats, t, node, side, x, arrival):
            restart(plan, params, ints, floats, t, root, number, first, second, arrival)
            if not is_kept:
                add_record(plan, floats, node, side, x, weight)
                begin_waiting(plan, params, floats, node)
            return
        is_leaf = ints[node + of.NODE_LEFT] < 0
        if is_leaf and of.parameter(plan, params, of.LEAF_MODEL) == of.UNIT:
            write_inputs(plan, ints, floats, node, x, inputs)
            n, unit = 1 + of.place(plan, of.COLUMNS), node + of.place(plan, of.UNIT_AT)
            idbd_update(floats, unit, inputs, n, 1.0 - side, min(weight, 1.0))
        add_record(plan, floats, node, side, x, weight)
        if is_leaf:
            break
        number = child_of(plan, ints, floats, t, node, x)
    evaluate(plan, params, ints, floats, t, root, number, first, second)


@kernel(f"int64({WORDS}, int64, CPointer(float64), int64, float64)", alone=True)
def train(plan, params, ints, floats, t: int, x, label: int, weight: float) -> int:
    """Learn a labelled record; return the outcome, and four times the node records that are needed."""
    wanted = wanted_nodes(plan, ints, t, label)
    if lacks_room(plan, params, ints, t, label, wanted):
        return at.GROW_FIRST + 4 * wanted
    arrival, own = ints[t + of.ARRIVALS], of.class_at(plan, t, label)
    is_kept = push(plan, params, ints, floats, t, own, x, weight, page_fits(plan, ints, t))
    ints[t + of.ARRIVALS] += 1
    note_values(plan, floats, t, x)
    floats[own + of.CLASS_WEIGHT] += weight
    ints[own + of.CLASS_RECORDS] += 1
    inputs = np.empty(1 + of.place(plan, of.COLUMNS))
    for other in range(plan[at.PLAN_CLASSES]):
        its = of.class_at(plan, t, other)
        if other == label or ints[its + of.CLASS_RECORDS] == 0:
            continue
        pair = of.pair_number(min(label, other), max(label, other))
        entry = of.pair_at(t, pair)
        root = ints[entry + of.ROOT]
        if root < 0:
            root = take_node(plan, params, ints, floats, t, pair, -1)
            if root < 0:
                stop(plan, ints, floats, t)
                continue
            ints[entry + of.ROOT] = root
            ints[entry + of.PLANTED] = arrival
            ints[t + of.TREES] += 1
        side = 1 if label > other else 0
        first, second = (its, own) if side == 1 else (own, its)
        learn_tree(
            plan, params, ints, floats, t, root, first, second, side, x, weight, arrival, is_kept, inputs
        )
    return at.DECISION_DUE if ints[t + of.EVENTS] > 0 else at.LEARNED


train_here: Any = outlined(train)
