"""Training: a labelled record goes through the trees of its class, each of which learns, drifts or grows."""

from __future__ import annotations

from typing import Any

import numpy as np

from core.drift import base as drift
from core.kernels.jit import kernel, outlined
from core.layout.learning import DECISION_DUE, GROW_FIRST, LEARNED, Row
from core.layout.plan import PlanRecord
from core.layout.tree import NO_NODE
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
from core.learners.ufft.layout import (
    PRUNED,
    RESTARTED,
    UNIT,
    PairForest,
    PairNode,
    PairTree,
    add_event,
    learned,
    pair_number,
    parameters_of,
    places_of,
)
from core.learners.ufft.memory import push, wants_page
from core.learners.ufft.node_statistics import add_record, log_odds
from core.learners.ufft.replay import replay
from core.learners.ufft.steps import note_values
from core.learners.ufft.waiting import begin_waiting
from core.numeric.idbd import idbd_update

detect = drift.dispatcher()


@kernel
def most_nodes(plan: PlanRecord, forest: PairForest, label: int) -> int:
    """Return how many node records a record may take: roots of new pairs, and two leaves for each tree."""
    met, roots = 0, 0
    for other in range(plan.classes):
        if other != label and forest.class_entry(plan, other).records > 0:
            met += 1
            if forest.pair(pair_number(min(label, other), max(label, other))).root < 0:
                roots += 1
    return roots + 2 * met


@kernel
def lacks_room(plan: PlanRecord, forest: PairForest, label: int, nodes: int) -> bool:
    """Return whether the block has to grow first and has the bytes for it.

    nodes: node records that the record may take.
    """
    if forest.reckoned != learned(plan, forest):
        return True
    needs_page = wants_page(plan, forest.class_entry(plan, label)) and page_fits(plan, forest)
    if needs_page and forest.pages == forest.page_capacity:
        return True
    fitting = min(nodes, spare_nodes(plan, forest))
    return bool(forest.nodes + fitting > forest.node_capacity)


@kernel
def watch(plan: PlanRecord, forest: PairForest, node: PairNode, side: int, x, arrival: int) -> bool:
    """Update a node's detector with the error of its naive Bayes; return whether the node is out of control.

    The node keeps the first record of a warning until it is in control again.
    """
    error = 0.0 if (log_odds(plan, forest, node, x) < 0.0) == (side == 1) else 1.0
    node.inputs += 1
    node.errors += 1 if error != 0.0 else 0
    level = detect(plan.node_detector, plan.parameters(plan.node_detector_at), node.detector, error)
    if level == drift.IN_CONTROL:
        node.warning = -1
    elif level == drift.WARNING and node.warning < 0:
        node.warning = arrival
    return bool(level == drift.DRIFT)


@kernel
def restart(plan: PlanRecord, forest: PairForest, tree: PairTree, number: int, arrival: int) -> None:
    """Make a node that is out of control a leaf, which learns the records since its warning again [D57]."""
    node = forest.node(plan, number)
    since = node.warning if node.warning >= 0 else arrival
    inputs, errors = node.inputs, node.errors
    freed = free_below(plan, forest, number)
    begin_node(plan, node)
    forest.restarts += 1
    event = add_event(plan, forest, PRUNED if freed > 0 else RESTARTED, number)
    event.weight = float(errors) / max(float(inputs), 1.0)
    replay(plan, forest, tree, number, since, False)


@kernel
def learn_tree(
    plan: PlanRecord,
    forest: PairForest,
    tree: PairTree,
    side: int,
    row: Row,
    arrival: int,
    is_kept: bool,
    inputs,
) -> None:
    """Learn a record of one of a pair's classes (side 0: the first) with its tree.

    is_kept: the record is in the ring of its class. inputs: workspace, float64[1 + column].
    """
    p, places = parameters_of(plan), places_of(plan)
    number = tree.entry.root
    while True:
        node = forest.node(plan, number)
        forest.visits += 1
        node.routed += row.weight
        if p.detects != 0.0 and watch(plan, forest, node, side, row.x, arrival):
            restart(plan, forest, tree, number, arrival)
            if not is_kept:
                add_record(plan, node, side, row.x, row.weight)
                begin_waiting(p, node)
            return
        is_leaf = node.left < 0
        if is_leaf and p.leaf_model == UNIT:
            write_inputs(plan, forest, node, row.x, inputs)
            unit, target = node.unit_start(plan), 1.0 - side
            idbd_update(node.floats, unit, inputs, places.inputs, target, min(row.weight, 1.0))
        add_record(plan, node, side, row.x, row.weight)
        if is_leaf:
            break
        number = child_of(plan, forest, node, row.x)
    evaluate(plan, forest, tree, number)


@kernel("int64(PlanRecord, PairForest, Row)", alone=True)
def train(plan: PlanRecord, forest: PairForest, row: Row) -> int:
    """Learn a labelled record; return the outcome, and four times the node records that are needed."""
    label, weight = row.label, row.weight
    nodes = most_nodes(plan, forest, label)
    if lacks_room(plan, forest, label, nodes):
        return GROW_FIRST + 4 * nodes
    arrival, own_class = forest.arrivals, forest.class_entry(plan, label)
    is_kept = push(plan, forest, own_class, row.x, weight, page_fits(plan, forest))
    forest.arrivals += 1
    note_values(plan, forest, row.x)
    own_class.weight += weight
    own_class.records += 1
    inputs = np.empty(places_of(plan).inputs)
    for other in range(plan.classes):
        other_class = forest.class_entry(plan, other)
        if other == label or other_class.records == 0:
            continue
        number = pair_number(min(label, other), max(label, other))
        entry = forest.pair(number)
        if entry.root < 0:
            root = take_node(plan, forest, number, NO_NODE)
            if root < 0:
                stop(plan, forest)
                continue
            entry.root = root
            entry.planted = arrival
            forest.trees += 1
        side = 1 if label > other else 0
        tree = (
            PairTree(entry, other_class, own_class) if side == 1 else PairTree(entry, own_class, other_class)
        )
        learn_tree(plan, forest, tree, side, row, arrival, is_kept, inputs)
    return DECISION_DUE if forest.events > 0 else LEARNED


train_here: Any = outlined(train)
