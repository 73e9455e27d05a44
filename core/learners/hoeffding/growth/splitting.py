"""Splitting: the split attempt at a due leaf, and installing the test that was chosen."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from core.events import Event, GrowthStopped, Kind, Split
from core.learners.hoeffding import plain_split, split_attempt
from core.learners.hoeffding.branch_masses import divide
from core.learners.hoeffding.decision import FORGET, Decision, HasState
from core.learners.hoeffding.split_decision import REASONS
from core.tree import layout as at
from core.tree import quirks
from core.tree.byoffset.children import connect, grow
from core.tree.byoffset.statistics import weight_after
from core.tree.layout import Floats
from core.tree.views import TreeView, tree_view

SMALL: Final = 8
"""Nodes are small if this number of them takes no more words than one leaf record."""

TESTS: Final[dict[int, Kind]] = {at.NUMERIC: "numeric", at.CATEGORY: "category", at.MULTIWAY: "multiway"}


def attempt(model: HasState, t: int, node: int, row: int, index: int) -> Event | None:
    """Let the learner decide on a due leaf and apply the decision; return the first tree's event, if any.

    t and node are the first words of the tree and of the leaf's node record.
    """
    ints, floats = model.ints, model.floats
    learner = model.spec.learner
    leaf = at.leaf_of(ints, t, node)
    if not learner.is_due(model, node, leaf):
        return None
    if ints[t + at.TREE_STOPPED]:
        floats[leaf + at.LEAF_NEXT] = math.inf
        return None
    if split_attempt.is_mixed(model.plan.address, model.address, node, leaf):
        ints[t + at.TREE_ATTEMPTS] += 1
        ints[leaf + at.LEAF_ATTEMPTS] += 1
    decision = learner.decide(model, t, node, leaf)
    if decision is None:
        split_attempt.reschedule(model.plan.address, model.address, t, node)
        return None
    number = at.number_of(ints, t, node)
    if decision.test == FORGET:
        forget(model, t, number)
        return None
    event = install(model, t, number, decision, row, index)
    if model.ints is ints and ints[t + at.TREE_STOPPED]:  # the leaf stays a leaf
        split_attempt.reschedule(model.plan.address, model.address, t, node)
    return event


def install(model: HasState, t: int, node: int, decision: Decision, row: int, index: int) -> Event | None:
    """Turn leaf number ``node`` into an inner node with the decided test; return the main tree's event."""
    is_first = t == model.block_places[0]
    masses, present = divided(model, t, node, decision)
    had = masses_of(model, t, node)
    leaves, splits = model.ints.item(t + at.TREE_LEAVES), model.ints.item(t + at.TREE_SPLITS)
    nodes = model.ints.item(t + at.TREE_NODES) + len(masses)
    if exceeds_cap(model, leaves - 1 + present, splits + 1, nodes, inactive(model, t)):
        lacks_leaves = (
            model.plan.ints[at.PLAN_REVIEW] and leaves - 1 + present > model.spec.learner.max_leaves
        )
        model.ints[t + at.TREE_STOPPED] = at.LACKS_LEAVES if lacks_leaves else at.LACKS_ROOM
        return GrowthStopped(row, index, int(model.ints[t + at.TREE_LEAVES])) if is_first else None
    t = make_room(model, t, len(masses), present - 1)
    tree = tree_view(model.plan, model.ints, t)
    above = tree.node_ints.item(node, at.NODE_SLOT)
    learned = [section[above].copy() for section in tree.leaf_model]
    if tree.shape.revision:
        keep_slot(model, tree, node, decision)
    else:
        free_slot(model, tree, tree.node_ints.item(node, at.NODE_SLOT))
        tree.node_ints[node, at.NODE_SLOT] = -1
    learner, test = model.spec.learner, (decision.attribute, decision.test, decision.value)
    inherits = not model.plan.ints[at.PLAN_QUIRKS] & quirks.NOTHING_INHERITED
    connect(model.plan.address, model.address, t, node, *test, masses, inherits)
    first = tree.node_ints.item(node, at.NODE_CHILD)
    children = np.arange(first, first + len(masses))
    children = children[tree.node_ints[children, at.NODE_SLOT] >= 0]
    learner.begin_all(tree, children, tree.node_ints[children, at.NODE_SLOT])
    if inherits and learned:
        for slot in tree.node_ints[children, at.NODE_SLOT].tolist():
            learner.leaf_model.inherit([section[slot] for section in tree.leaf_model], learned)
    watch_anew(model, t, node)
    depth = int(tree.node_ints[node, at.NODE_DEPTH])
    return event_of(decision, node, row, index, depth, had) if is_first else None


def masses_of(model: HasState, t: int, node: int) -> tuple[float, ...]:
    """Return the class weight of node number ``node``, in the order of the schema's classes.

    It has the classes that the model has learned: the number in the schema depends on where runs are cut.
    """
    known = model.ints.item(at.MODEL_CLASSES)
    return tuple(tree_view(model.plan, model.ints, t).masses[node, :known].tolist())


def watch_anew(model: HasState, t: int, node: int) -> None:
    """Let the schedule watch rivals of the new test of node number ``node``."""
    if model.spec.learner.watches_inner_nodes:
        split_attempt.reschedule(model.plan.address, model.address, t, at.node_at(model.ints, t, node))


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
    return told_event(words.tolist(), row, index)


def told_event(said: list[float], row: int, index: int, member: int | None = None) -> Split:
    """Return the event of a split from its description (SPLIT_WORDS + class); member: of a forest."""
    end = plain_split.SPLIT_WORDS + int(said[plain_split.CLASSES])
    return Split(
        row=row,
        model=index,
        node=int(said[plain_split.NODE]),
        attribute=int(said[plain_split.ATTRIBUTE]),
        test=TESTS[int(said[plain_split.TEST])],
        value=said[plain_split.VALUE],
        merits=(said[plain_split.BEST], said[plain_split.SECOND]),
        bound=said[plain_split.EPSILON],
        n=said[plain_split.EVIDENCE],
        reason=REASONS[int(said[plain_split.OUTCOME])],
        depth=int(said[plain_split.DEPTH]),
        masses=tuple(said[plain_split.SPLIT_WORDS : end]),
        member=member,
    )


def divided(model: HasState, t: int, node: int, decision: Decision) -> tuple[Any, int]:
    """Return the class masses of the branches of a test (float64[branch, class]), and how many exist."""
    test = (decision.attribute, decision.test, decision.value)
    masses = divide(model.plan.address, model.address, t, node, *test)
    if decision.test == at.MULTIWAY and model.plan.ints[at.PLAN_QUIRKS] & quirks.ABSENT_BRANCHES:
        # MOA makes branches up to the largest value seen, and later branches when their values come.
        return masses, int((masses >= 0.0).any(axis=1).sum())
    if model.plan.ints[at.PLAN_SORTS]:
        met_all = (masses >= 0.0).all(axis=1)
        masses[met_all] = np.sort(masses[met_all], axis=1)
    return masses, len(masses)


def inactive(model: HasState, t: int) -> int:
    """Return how many leaves have no leaf record (core/learners/hoeffding/growth/deactivation.py)."""
    if not model.plan.ints[at.PLAN_REVIEW]:
        return 0
    return len(tree_view(model.plan, model.ints, t).leaves[1])


def exceeds_cap(model: HasState, leaves: int, inner: int, nodes: int, idle: int = 0) -> bool:
    """Return whether a tree with these numbers of leaves, inner nodes and nodes exceeds the caps [D1].

    idle: the number of leaves that have no leaf record.

    Bytes are computed from the classes and values that the model has learned, without spare room, so that
    neither the cut of runs nor a restore changes the result. There may be more nodes than leaves and inner
    nodes: MOA has absent branches.
    """
    learner, plan, ints = model.spec.learner, model.plan, model.ints
    if leaves > learner.max_leaves:
        return True
    records = (leaves + inner if plan.ints[at.PLAN_REVISION] else leaves) - idle
    shape = plan.blocks.shape(1, 1)
    most = at.TREE_HEADER + nodes * shape.node_stride + records * shape.leaf_stride
    if most * at.WORD <= plan.block_bytes(plan.schema.n_classes):
        return False  # not even with the room of its records
    seen = int(plan.ints[at.PLAN_VALUES_SEEN])
    values = int(ints[seen : seen + len(plan.values_index)].sum())
    classes = int(ints[at.MODEL_CLASSES])
    words = plan.blocks.shape_of(classes, values, nodes, records).words
    return bool(words * at.WORD > plan.learned_bytes(ints))


def make_room(model: HasState, t: int, nodes: int, slots: int) -> int:
    """Make room in a tree for this many more nodes and leaf records; return its first word after that.

    Room doubles, up to the bytes that the tree may take. A large tree gets a quarter more leaf records
    without being moved. More nodes move the leaf records, so that a tree with small nodes gets many at once.
    """
    ints, plan = model.ints, model.plan
    taken = ints.item(t + at.TREE_LEAVES) - inactive(model, t)
    if plan.ints[at.PLAN_REVISION]:  # inner nodes keep their leaf records
        taken, slots = taken + ints.item(t + at.TREE_SPLITS), slots + 1
    needed = ints.item(t + at.TREE_NODES) + nodes, taken + slots
    have = plan.blocks.room(ints, t)
    if needed[0] <= have[0] and needed[1] <= have[1]:
        return t
    more = 2 * have[0], 2 * have[1]
    if model.extends(t):
        has_small_nodes = ints[t + at.TREE_NODE_STRIDE] * SMALL <= ints[t + at.TREE_LEAF_STRIDE]
        more = (SMALL if has_small_nodes else 2) * have[0], have[1] + have[1] // 4
    rooms = [max(n, m) if n > h else h for n, h, m in zip(needed, have, more, strict=True)]
    most, values = plan.block_bytes(plan.schema.n_classes), int(plan.ints[at.PLAN_VALUES])
    while rooms != [*needed] and (
        plan.blocks.shape_of(plan.schema.n_classes, values, *rooms).words * at.WORD > most
    ):
        rooms = [n + max(room - n, 0) // 2 for n, room in zip(needed, rooms, strict=True)]
    return model.make_room(t, (rooms[0], rooms[1]))


def keep_slot(model: HasState, tree: TreeView, node: int, decision: Decision) -> None:
    """Prepare the leaf record of a node that gets a test and continues to learn, for its revisions."""
    slot = int(tree.node_ints[node, at.NODE_SLOT])
    record, section = tree.leaf_floats[slot], tree.revision[slot]
    record[[at.LEAF_MAJORITY_RIGHT, at.LEAF_BAYES_RIGHT]] = 0.0
    section[at.REVISION_OWN] = section[at.REVISION_FIELDS + decision.attribute]
    for state in tree.schedule:
        state[slot] = 0.0
    record[at.LEAF_NEXT] = weight_after(record[at.LEAF_OBSERVED], model.spec.learner.revisit_weight)
    record[at.LEAF_EVALUATED] = record[at.LEAF_OBSERVED]
    held = model.plan.ints[at.PLAN_QUIRKS]
    if held & quirks.PERIOD_OF_TREE:
        record[at.LEAF_EVALUATED] = tree.header[at.TREE_LABELS]
    if held & quirks.REVISED_IS_NEW:
        # In published code the node is a new object, which starts counting with the classes it has then.
        section[at.REVISION_EVALUATIONS] = 0.0
        met = np.flatnonzero(tree.masses[node])
        reach = max(int(tree.node_ints[node, at.NODE_REACH]), int(met[-1]) + 1 if len(met) else 0)
        tree.node_ints[node, at.NODE_REACH] = reach
        if decision.action == "replaced":
            section[at.REVISION_FORGETS] = 1.0


def free_slot(model: HasState, tree: TreeView, slot: int) -> None:
    """Clear a leaf record and chain it to the free records."""
    clear_slot(model, tree, slot)
    tree.leaf_ints[slot, at.LEAF_NODE] = tree.header[at.TREE_FREE]
    tree.header[at.TREE_FREE] = slot


def clear_slot(model: HasState, tree: TreeView, slot: int) -> None:
    """Write the state of an unused record."""
    tree.leaf_ints[slot] = model.plan.blocks.empty_leaf


def forget(model: HasState, t: int, node: int) -> None:
    """Let a leaf start observing again, keeping its class masses (MOA, when not to split is best)."""
    tree = tree_view(model.plan, model.ints, t)
    slot = int(tree.node_ints[node, at.NODE_SLOT])
    clear_slot(model, tree, slot)
    tree.leaf_ints[slot, at.LEAF_NODE] = node
    if model.plan.ints[at.PLAN_QUIRKS] & quirks.NOTHING_INHERITED:
        tree.masses[node] = 0.0
        tree.node_ints[node, at.NODE_REACH] = 0
    model.spec.learner.begin(tree, node, slot)
    if model.spec.learner.freezes and tree.node_ints[node, at.NODE_PARENT] >= 0:
        tree.leaf_floats[slot, at.LEAF_NEXT] = math.inf


def grow_branch(model: HasState, t: int, node: int) -> None:
    """Make an absent branch a leaf; t and node are the first words of the tree and of the branch's record."""
    number = at.number_of(model.ints, t, node)
    t = make_room(model, t, 0, 1)
    grow(model.address, t, number)
    tree = tree_view(model.plan, model.ints, t)
    slot = tree.node_ints.item(number, at.NODE_SLOT)
    model.spec.learner.begin(tree, number, slot)
    if tree.shape.revision:
        tree.revision[slot, at.REVISION_FORGETS] = 1.0
