"""Residuals: a labelled record goes through the trees of each committee, each of which learns one.

The first tree of a committee learns the residual of the score 0. The prediction of each tree, times the
learning rate, is added to the score before the next tree learns. The target of a tree is the gradient of the
logarithmic loss divided by its second derivative, (y - p)/(p(1 - p)), where y is 1 for a record of the
committee's class and 0 for others, and p is the probability that belongs to the score.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from core.kernels.jit import called, kernel, outlined
from core.kernels.records import Words
from core.layout.learning import DECISION_DUE, GROW_FIRST, LEARNED, Row
from core.layout.plan import PlanRecord
from core.learners.sgbt.boosted_alternates import (
    ENDS,
    GOES_ON,
    TAKES_OVER,
    begin_alternate,
    compare,
    count_error,
    drop,
    error_of,
    has_risen,
    take_over,
)
from core.learners.sgbt.boosted_nodes import stop, take_leaf
from core.learners.sgbt.layout import (
    ENTRY_FIELDS,
    MASK_BITS,
    Boosting,
    BoostNode,
    NumberSketch,
    TreeEntry,
    committees_of,
    fitting,
    learned,
    parameters_of,
    places_of,
    sketch_of,
    value_sums,
)
from core.learners.sgbt.scoring import LEAST_SHARE, MOA_LEAST_SHARE, child_of, leaf_of, share_of
from core.learners.sgbt.variance_splits import attempt
from core.numeric import subsets
from core.numeric.subsets import choose, choose_apart

SPLITS: Final = 1 << 30
"""Factor of the roots in the number of what a record may take; the splits are added to it."""
TREE_BITS: Final = 40
"""Random numbers of a tree, as a power of two."""


@kernel
def attributes_seen(plan: PlanRecord) -> int:
    """Return how many attributes a tree sees: its share of all, rounded, and two at least."""
    seen = int(parameters_of(plan).share * plan.attributes + 0.5)
    return min(max(seen, 2), plan.attributes)


@kernel
def draw_mask(plan: PlanRecord, entry: TreeEntry, number: int, chosen) -> None:
    """Sample the attributes that a tree sees; chosen: workspace, float64[attribute].

    Of few attributes, no subset comes twice among trees with numbers in a row before all have come.
    """
    d, m = plan.attributes, attributes_seen(plan)
    if d <= subsets.FEW:
        choose_apart(plan.subspace_key, number, d, m, chosen)
    else:
        choose(plan.subspace_key, number << TREE_BITS, d, m, chosen)
    for word in range(places_of(plan).entry_words - ENTRY_FIELDS):
        entry.mask[word] = 0
    for a in range(d):
        if chosen[a] != 0.0:
            entry.mask[a // MASK_BITS] |= 1 << (a % MASK_BITS)


@kernel
def draw_masks(plan: PlanRecord, boosting: Boosting, trees: int) -> None:
    """Sample the attributes of all trees again if there are other attributes than before."""
    if boosting.drawn == plan.attributes:
        return
    boosting.drawn = plan.attributes
    chosen = np.empty(plan.attributes)
    for number in range(trees):
        entry = boosting.entry(plan, number)
        if entry.root >= 0:
            draw_mask(plan, entry, number, chosen)


@kernel
def is_due(plan: PlanRecord, leaf: BoostNode, weight: float) -> bool:
    """Return whether a leaf that learns another weight is to be split if one test is surely the best."""
    return leaf.weight + weight - leaf.tried >= parameters_of(plan).grace_period


@kernel
def most_to_take(plan: PlanRecord, boosting: Boosting, row: Row) -> tuple[int, int, int]:
    """Return how many trees a record begins, and how many splits and alternate trees follow at most.

    No more than one alternate tree begins in a tree, because an alarm ends the detectors below its node.
    """
    trees = committees_of(boosting.model.classes) * places_of(plan).members
    planted, splits, alternates = 0, 0, 0
    for number in range(trees):
        root = boosting.entry(plan, number).root
        if root < 0:
            planted += 1
            splits += 1 if row.weight >= parameters_of(plan).grace_period else 0
            continue
        node, is_watched = boosting.node(plan, root), False
        while node.left >= 0:
            if node.alternate >= 0:
                leaf = leaf_of(plan, boosting, node.alternate, row.x)
                splits += 1 if is_due(plan, leaf, row.weight) else 0
            is_watched = is_watched or node.watched != 0 or node.alternate >= 0
            node = boosting.node(plan, child_of(plan, boosting, node, row.x))
        alternates += 1 if is_watched else 0
        splits += 1 if is_due(plan, node, row.weight) else 0
    return planted, splits, alternates


@kernel
def lacks_room(plan: PlanRecord, boosting: Boosting, row: Row) -> int:
    """Set how many roots and splits a record may take, and return -1; else what the block has to grow for.

    Both follow from the bytes of the block, never from its room, so that the cut of runs does not matter. A
    block with room for all of them has the bytes.
    """
    if boosting.reckoned != learned(plan, boosting):
        return 0
    trees = committees_of(boosting.model.classes) * places_of(plan).members
    roots, splits = trees, trees + boosting.alternates
    spare = boosting.node_capacity - boosting.live_nodes
    spare_leaves = boosting.leaf_capacity - boosting.live_leaves
    if boosting.trees < trees or spare < roots + 2 * splits or spare_leaves < roots + splits:
        planted, due, alternates = most_to_take(plan, boosting, row)
        roots, splits = fitting(boosting, planted, due, alternates)
        if spare < roots + 2 * splits or spare_leaves < roots + splits:
            return roots * SPLITS + splits
    boosting.roots_left = roots
    boosting.splits_left = splits
    return -1


@kernel
def observe_number(sketch: NumberSketch, bins: int, value: float, weight: float, target: float) -> None:
    """Take in a target with the value of a numeric attribute, which becomes a threshold if it is new."""
    used, thresholds = sketch.used, sketch.thresholds
    low, high = 0, used
    while low < high:
        middle = (low + high) // 2
        if thresholds[middle] < value:
            low = middle + 1
        else:
            high = middle
    is_known = low < used and thresholds[low] == value
    if is_known or used == bins:
        sketch.sums(bins, low).add(weight, target)
        return
    for i in range(used, low, -1):
        thresholds[i] = thresholds[i - 1]
        above, below = sketch.sums(bins, i), sketch.sums(bins, i - 1)
        above.weight = below.weight
        above.total = below.total
        above.squares = below.squares
    thresholds[low] = value
    fresh = sketch.sums(bins, low)
    fresh.weight = 0.0
    fresh.total = 0.0
    fresh.squares = 0.0
    fresh.add(weight, target)
    sketch.used = used + 1


@kernel
def observe(
    plan: PlanRecord, boosting: Boosting, entry: TreeEntry, leaf: Words, row: Row, target: float
) -> None:
    """Take in the target of a record by the values of the attributes that the tree sees."""
    bins = places_of(plan).bins
    for i in range(plan.numeric):
        column = plan.numeric_column(i)
        value = row.x[column]
        if entry.sees(column) and value - value == 0.0:
            observe_number(sketch_of(plan, leaf, i), bins, value, row.weight, target)
    for j in range(plan.nominal):
        attribute = plan.nominal_column(j)
        value = row.x[attribute.column]
        if entry.sees(attribute.column) and 0.0 <= value < boosting.model.values_seen(plan)[j]:
            value_sums(plan, leaf, attribute.first + int(value)).add(row.weight, target)


@called
def learn_leaf(
    plan: PlanRecord,
    boosting: Boosting,
    entry: TreeEntry,
    number: int,
    row: Row,
    target: float,
    may_split: bool,
) -> float:
    """Let a leaf, by its number, learn the target of a record; return what it predicts afterwards."""
    node = boosting.node(plan, number)
    node.weight += row.weight
    node.total += row.weight * target
    node.errors += row.weight * error_of(entry, target - node.value)
    observe(plan, boosting, entry, boosting.leaf(plan, node.leaf), row, target)
    if may_split and is_due(plan, node, 0.0) and attempt(plan, boosting, entry, number):
        return 0.0
    return node.value


@kernel
def learn_alternate(
    plan: PlanRecord, boosting: Boosting, root: int, row: Row, target: float, error: float
) -> None:
    """Let an alternate tree, by its root, learn the target of a record; error: of the tree beside it."""
    place, node = root, boosting.node(plan, root)
    while node.left >= 0:
        count_error(node, row.weight, error)
        place = child_of(plan, boosting, node, row.x)
        node = boosting.node(plan, place)
    learn_leaf(plan, boosting, boosting.entry(plan, node.tree), place, row, target, True)


@kernel
def learn_tree(plan: PlanRecord, boosting: Boosting, number: int, row: Row, target: float) -> float:
    """Let a tree, by its number, learn a target; return what the leaf of the record predicts afterwards.

    Below a node with an alternate tree no leaf is split. The root of an alternate tree that takes over does
    not count the record, as in MOA.
    """
    p, entry = parameters_of(plan), boosting.entry(plan, number)
    entry.weight += row.weight
    entry.total += row.weight * target
    entry.squares += row.weight * target * target
    prediction, error, may_split = 0.0, 0.0, True
    if p.watches != 0.0:
        prediction = leaf_of(plan, boosting, entry.root, row.x).value
        error = error_of(entry, target - prediction)
    place = entry.root
    node = boosting.node(plan, place)
    while node.left >= 0:
        count_error(node, row.weight, error)
        outcome = GOES_ON
        if node.alternate >= 0:
            outcome = compare(plan, boosting, node, row, target, prediction)
            if outcome == TAKES_OVER:
                place = take_over(plan, boosting, place, may_split)
            elif outcome == ENDS:
                drop(plan, boosting, place, may_split)
            else:
                may_split = False
                learn_alternate(plan, boosting, node.alternate, row, target, error)
        if outcome != TAKES_OVER and node.watched != 0 and has_risen(p, node, row.weight, error):
            begin_alternate(plan, boosting, place)
        node = boosting.node(plan, place)
        if node.left >= 0:
            place = child_of(plan, boosting, node, row.x)
            node = boosting.node(plan, place)
    return learn_leaf(plan, boosting, entry, place, row, target, may_split)


@kernel
def plant(plan: PlanRecord, boosting: Boosting, number: int) -> bool:
    """Plant a tree, by its number, if there are the bytes for it; return whether it is planted."""
    if boosting.roots_left == 0:
        stop(boosting)
        return False
    boosting.roots_left -= 1
    entry = boosting.entry(plan, number)
    entry.root = take_leaf(plan, boosting, number, -1, -1)
    draw_mask(plan, entry, number, np.empty(plan.attributes))
    boosting.trees += 1
    return True


@kernel
def learn_committee(plan: PlanRecord, boosting: Boosting, committee: int, row: Row) -> None:
    """Let the trees of a committee learn a record in turn."""
    members, p = places_of(plan).members, parameters_of(plan)
    least = MOA_LEAST_SHARE if p.moa != 0.0 else LEAST_SHARE
    y = 1.0 if row.label == committee else 0.0
    score = 0.0
    for number in range(committee * members, (committee + 1) * members):
        if boosting.entry(plan, number).root < 0 and not plant(plan, boosting, number):
            continue
        share = min(max(share_of(score), least), 1.0 - least)
        target = (y - share) / (share * (1.0 - share))
        score += p.learning_rate * learn_tree(plan, boosting, number, row, target)


@kernel("int64(PlanRecord, Boosting, Row)", alone=True)
def train(plan: PlanRecord, boosting: Boosting, row: Row) -> int:
    """Learn a labelled record; return the outcome, and four times what it may take if it needs room."""
    asked = lacks_room(plan, boosting, row)
    if asked >= 0:
        return GROW_FIRST + 4 * asked
    committees = committees_of(boosting.model.classes)
    draw_masks(plan, boosting, committees * places_of(plan).members)
    boosting.class_weights(plan)[row.label] += row.weight
    for committee in range(committees):
        learn_committee(plan, boosting, committee, row)
    boosting.roots_left = 0
    boosting.splits_left = 0
    return DECISION_DUE if boosting.unreported != 0 else LEARNED


train_here: Any = outlined(train)
