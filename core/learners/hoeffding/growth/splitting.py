"""Splitting: the split attempt at a due leaf, and installing the test that was chosen."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from core.events import Event, GrowthStopped, Kind, Split
from core.layout.model import WORD, Floats, ModelHeader
from core.layout.tree import (
    CATEGORY,
    LACKS_LEAVES,
    LACKS_ROOM,
    MULTIWAY,
    NO_SLOT,
    NUMERIC,
    TREE_HEADER,
    SplitTest,
)
from core.learners.hoeffding import split_attempt
from core.learners.hoeffding.branch_masses import divide
from core.learners.hoeffding.decision import FORGET, Decision, HasState, tree_of
from core.learners.hoeffding.plain_split import SPLIT_WORDS, SplitWords
from core.learners.hoeffding.split_decision import REASONS
from core.tree import quirks
from core.tree.children import connect, grow
from core.tree.statistics import weight_after
from core.tree.views import TreeView, tree_view

SMALL: Final = 8
"""Nodes are small if this number of them takes no more words than one leaf record."""

TESTS: Final[dict[int, Kind]] = {NUMERIC: "numeric", CATEGORY: "category", MULTIWAY: "multiway"}


def attempt(model: HasState, t: int, place: int, row: int, index: int) -> Event | None:
    """Let the learner decide on a due leaf and apply the decision; return the first tree's event, if any.

    t and place are the first words of the tree and of the leaf's node record.
    """
    ints, learner, plan = model.ints, model.spec.learner, model.plan.record
    tree = tree_of(model, t)
    node = tree.node_of(place)
    leaf = tree.leaf_of(node)
    if not learner.is_due(tree, node, leaf):
        return None
    if tree.stopped:
        leaf.next = math.inf
        return None
    if split_attempt.is_mixed(plan, tree, node, leaf):
        tree.attempts += 1
        leaf.attempts += 1
    decision = learner.decide(model, tree, node, leaf)
    if decision is None:
        split_attempt.reschedule(plan, tree, node)
        return None
    number = int(tree.number(node))
    if decision.test == FORGET:
        forget(model, t, number)
        return None
    event = install(model, t, number, decision, row, index)
    if model.ints is ints and tree.stopped:  # the leaf stays a leaf
        split_attempt.reschedule(plan, tree, node)
    return event


def install(model: HasState, t: int, node: int, decision: Decision, row: int, index: int) -> Event | None:
    """Turn leaf number ``node`` into an inner node with the decided test; return the main tree's event."""
    is_first = t == model.block_places[0]
    masses, present = divided(model, t, node, decision)
    had, block = masses_of(model, t, node), tree_of(model, t)
    leaves, nodes = int(block.leaves) - 1 + present, int(block.nodes) + len(masses)
    if exceeds_cap(model, leaves, int(block.splits) + 1, nodes, inactive(model, t)):
        lacks_leaves = model.plan.record.review and leaves > model.spec.learner.max_leaves
        block.stopped = LACKS_LEAVES if lacks_leaves else LACKS_ROOM
        return GrowthStopped(row, index, int(block.leaves)) if is_first else None
    t = make_room(model, t, len(masses), present - 1)
    tree = tree_view(model.plan, model.ints, t)
    record = tree.block.node(node)
    learned = [section[record.slot].copy() for section in tree.leaf_model]
    if tree.shape.revision:
        keep_slot(model, tree, node, decision)
    else:
        free_slot(model, tree, int(record.slot))
        record.slot = NO_SLOT
    learner, plan, block = model.spec.learner, model.plan.record, tree_of(model, t)
    inherits = not plan.has(quirks.NOTHING_INHERITED)
    connect(plan, block, block.node(node), test_of(decision), masses, inherits)
    children = np.arange(record.child, record.child + len(masses))
    slots = tree.nodes.slot[children]
    children, slots = children[slots >= 0], slots[slots >= 0]
    learner.begin_all(tree, children, slots)
    if inherits and learned:
        for slot in slots.tolist():
            learner.leaf_model.inherit([section[slot] for section in tree.leaf_model], learned)
    watch_again(model, t, node)
    return event_of(decision, node, row, index, int(record.depth), had) if is_first else None


def masses_of(model: HasState, t: int, node: int) -> tuple[float, ...]:
    """Return the class weight of node number ``node``, in the order of the schema's classes.

    It has the classes that the model has learned: the number in the schema depends on where runs are cut.
    """
    tree = tree_of(model, t)
    return tuple(tree.node(node).masses[: tree.model.classes].tolist())


def watch_again(model: HasState, t: int, node: int) -> None:
    """Let the schedule watch rivals of the new test of node number ``node``."""
    if model.spec.learner.watches_inner_nodes:
        tree = tree_of(model, t)
        split_attempt.reschedule(model.plan.record, tree, tree.node(node))


def event_of(
    decision: Decision, node: int, row: int, index: int, depth: int, masses: tuple[float, ...]
) -> Split:
    """Return the event of a decision that was carried out at node number ``node``.

    masses: class weight that the node had before.
    """
    return Split(
        row=row,
        model=index,
        node=node,
        attribute=decision.attribute,
        test=TESTS[decision.test],
        value=decision.value,
        merits=decision.merits,
        bound=decision.bound,
        n=decision.n,
        reason=decision.reason,
        action=decision.action,  # type: ignore[arg-type]
        depth=depth,
        masses=masses,
    )


def plain_event(words: Floats, row: int, index: int) -> Split:
    """Return the event of a split that compiled code has made, words: float64[SPLIT_WORDS + class]."""
    return described_event(words.tolist(), row, index)


def described_event(words: list[float], row: int, index: int, member: int | None = None) -> Split:
    """Return the event of a split from its description (SPLIT_WORDS + class); member: of a forest."""
    split = SplitWords(*words[:SPLIT_WORDS])
    return Split(
        row=row,
        model=index,
        node=int(split.node),
        attribute=int(split.attribute),
        test=TESTS[int(split.test)],
        value=split.value,
        merits=(split.best, split.second),
        bound=split.epsilon,
        n=split.evidence,
        reason=REASONS[int(split.outcome)],
        depth=int(split.depth),
        masses=tuple(words[SPLIT_WORDS : SPLIT_WORDS + int(split.classes)]),
        member=member,
    )


def divided(model: HasState, t: int, node: int, decision: Decision) -> tuple[Any, int]:
    """Return the class masses of the branches of a test (float64[branch, class]), and how many exist."""
    return divided_by(model, t, node, test_of(decision))


def divided_by(model: HasState, t: int, node: int, test: SplitTest) -> tuple[Any, int]:
    """Return ``divided`` for a test that may not have been decided on."""
    plan, tree = model.plan.record, tree_of(model, t)
    leaf = tree.leaf_of(tree.node(node))
    masses = divide(plan, tree, leaf, test.attribute, test.kind, test.value)
    if test.kind == MULTIWAY and plan.has(quirks.ABSENT_BRANCHES):
        # MOA makes branches up to the largest value seen, and later branches when their values come.
        return masses, int((masses >= 0.0).any(axis=1).sum())
    if plan.sorts:
        met_all = (masses >= 0.0).all(axis=1)
        masses[met_all] = np.sort(masses[met_all], axis=1)
    return masses, len(masses)


def test_of(decision: Decision) -> SplitTest:
    return SplitTest(decision.attribute, decision.test, decision.value)


def inactive(model: HasState, t: int) -> int:
    """Return how many leaves have no leaf record (core/learners/hoeffding/growth/deactivation.py)."""
    if not model.plan.record.review:
        return 0
    return len(tree_view(model.plan, model.ints, t).leaves[1])


def exceeds_cap(model: HasState, leaves: int, inner: int, nodes: int, idle: int = 0) -> bool:
    """Return whether a tree with these numbers of leaves, inner nodes and nodes exceeds the caps [D1].

    idle: the number of leaves that have no leaf record.

    Bytes are computed from the classes and values that the model has learned, without spare room, so that
    neither the cut of runs nor a restore changes the result. There may be more nodes than leaves and inner
    nodes: MOA has absent branches.
    """
    learner, plan, ints, shared = model.spec.learner, model.plan, model.ints, model.plan.record
    if leaves > learner.max_leaves:
        return True
    records = (leaves + inner if shared.revision else leaves) - idle
    shape = plan.blocks.shape(1, 1)
    most = TREE_HEADER + nodes * shape.node_stride + records * shape.leaf_stride
    if most * WORD <= plan.block_bytes(plan.schema.n_classes):
        return False  # not even with the room of its records
    values = int(ints[shared.values_seen : shared.values_seen + len(plan.values_index)].sum())
    classes = int(ModelHeader(ints, model.floats, 0).classes)
    words = plan.blocks.shape_of(classes, values, nodes, records).words
    return bool(words * WORD > plan.learned_bytes(ints))


def make_room(model: HasState, t: int, nodes: int, slots: int) -> int:
    """Make room in a tree for this many more nodes and leaf records; return its first word after that.

    Room doubles, up to the bytes that the tree may take. A large tree gets a quarter more leaf records
    without being moved. More nodes move the leaf records, so that a tree with small nodes gets many at once.
    """
    plan, shared, tree = model.plan, model.plan.record, tree_of(model, t)
    active = int(tree.leaves) - inactive(model, t)
    if shared.revision:  # inner nodes keep their leaf records
        active, slots = active + int(tree.splits), slots + 1
    needed = int(tree.nodes) + nodes, active + slots
    have = plan.blocks.room(model.ints, t)
    if needed[0] <= have[0] and needed[1] <= have[1]:
        return t
    more = 2 * have[0], 2 * have[1]
    if model.extends(t):
        has_small_nodes = tree.node_stride * SMALL <= tree.leaf_stride
        more = (SMALL if has_small_nodes else 2) * have[0], have[1] + have[1] // 4
    rooms = [max(n, m) if n > h else h for n, h, m in zip(needed, have, more, strict=True)]
    most, values = plan.block_bytes(plan.schema.n_classes), int(shared.values)
    while rooms != [*needed] and (
        plan.blocks.shape_of(plan.schema.n_classes, values, *rooms).words * WORD > most
    ):
        rooms = [n + max(room - n, 0) // 2 for n, room in zip(needed, rooms, strict=True)]
    return model.make_room(t, (rooms[0], rooms[1]))


def keep_slot(model: HasState, tree: TreeView, node: int, decision: Decision) -> None:
    """Prepare the leaf record of a node that gets a test and continues to learn, for its revisions."""
    plan, record = model.plan.record, tree.block.node(node)
    leaf = tree.block.leaf_of(record)
    revision = tree.block.revision(plan, leaf)
    leaf.majority_right = leaf.bayes_right = 0.0
    revision.own = revision.merits[decision.attribute]
    for state in tree.schedule:
        state[record.slot] = 0.0
    leaf.next = weight_after(leaf.observed, model.spec.learner.revisit_weight)
    leaf.evaluated = leaf.observed
    if plan.has(quirks.PERIOD_OF_TREE):
        leaf.evaluated = tree.block.labels
    if plan.has(quirks.REVISED_IS_NEW):
        # In published code the node is a new object, which starts counting with the classes it has then.
        revision.evaluations = 0.0
        met = np.flatnonzero(tree.masses[node])
        record.reach = max(int(record.reach), int(met[-1]) + 1 if len(met) else 0)
        if decision.action == "replaced":
            revision.forgets = 1.0


def free_slot(model: HasState, tree: TreeView, slot: int) -> None:
    """Clear a leaf record and chain it to the free records."""
    clear_slot(model, tree, slot)
    tree.block.leaf(slot).node = tree.block.free
    tree.block.free = slot


def clear_slot(model: HasState, tree: TreeView, slot: int) -> None:
    """Write the state of an unused record."""
    tree.leaf_ints[slot] = model.plan.blocks.empty_leaf


def forget(model: HasState, t: int, node: int) -> None:
    """Let a leaf start observing again, keeping its class masses (MOA, when not to split is best)."""
    tree = tree_view(model.plan, model.ints, t)
    record = tree.block.node(node)
    clear_slot(model, tree, int(record.slot))
    leaf = tree.block.leaf_of(record)
    leaf.node = node
    if model.plan.record.has(quirks.NOTHING_INHERITED):
        tree.masses[node] = 0.0
        record.reach = 0
    model.spec.learner.begin(tree, node, int(record.slot))
    if model.spec.learner.freezes and record.parent >= 0:
        leaf.next = math.inf


def grow_branch(model: HasState, t: int, place: int) -> None:
    """Make an absent branch a leaf.

    t and place are the first words of the tree and of the branch's node record.
    """
    tree = tree_of(model, t)
    number = int(tree.number(tree.node_of(place)))
    t = make_room(model, t, 0, 1)
    block = tree_of(model, t)
    grow(block, block.node(number))
    view = tree_view(model.plan, model.ints, t)
    leaf = view.block.node(number)
    model.spec.learner.begin(view, number, int(leaf.slot))
    if view.shape.revision:
        view.block.revision(model.plan.record, view.block.leaf_of(leaf)).forgets = 1.0
