"""Making, growing and carrying over the buffer of a model.

There is one way to change sizes, whatever the reason (more nodes, a class, a value, an attribute more, a
background tree coming or going): lay out a new buffer and copy section by section. What is new in it is as if
it had been there from the beginning, so that it does not matter when it came.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Final

import numpy as np

from core import evaluation
from core.plan import Plan
from core.tree import layout as at
from core.tree.layout import Floats, Ints, TreeShape, TreeView


def new_model(plan: Plan) -> Ints:
    """Return the buffer of a model with a one-leaf tree that has seen nothing."""
    shape = plan.shape(1, 1)
    start = int(plan.ints[at.PLAN_TREES])
    ints = at.aligned_words(start + shape.words)
    floats = ints.view(np.float64)
    ints[at.MODEL_WORDS] = start + shape.words
    ints[at.MODEL_MAIN] = start
    ints[at.MODEL_CLASSES] = plan.schema.declared_classes
    write_states(plan, floats)
    write_declared_values(plan, ints)
    clear_tree(plan, tree_view(plan, ints, start, shape))
    plant(plan, ints, start)
    return ints


def write_states(plan: Plan, floats: Floats) -> None:
    """Write the initial states of detector, query strategy and budget."""
    for word, plugin in (
        (at.PLAN_DETECTOR, plan.spec.drift),
        (at.PLAN_QUERY, plan.spec.query),
        (at.PLAN_BUDGET, plan.spec.budget),
    ):
        state = plugin.initial()
        start = int(plan.ints[word])
        floats[start : start + len(state)] = state


def write_declared_values(plan: Plan, ints: Ints) -> None:
    """Count the declared values of the nominal attributes as seen."""
    start = int(plan.ints[at.PLAN_VALUES_SEEN])
    for j, attribute in enumerate(plan.values_index):
        ints[start + j] = plan.schema.declared_values[attribute]


def tree_shape(plan: Plan, ints: Ints, t: int) -> TreeShape:
    """Return the shape of the tree block at word t."""
    return plan.shape(int(ints[t + at.TREE_NODE_CAPACITY]), int(ints[t + at.TREE_SLOT_CAPACITY]))


def tree_view(plan: Plan, ints: Ints, t: int, shape: TreeShape | None = None) -> TreeView:
    """Return views of the tree block at word t."""
    return TreeView(ints, ints.view(np.float64), t, shape or tree_shape(plan, ints, t))


def clear_tree(plan: Plan, tree: TreeView) -> None:
    """Write an empty tree: every record in the state that unused records have."""
    tree.ints[:] = 0
    at.write_tree_header(tree.header, tree.shape)
    tree.header[at.TREE_FREE] = -1
    tree.node_ints[:, at.NODE_PARENT] = -1
    tree.node_ints[:, at.NODE_SLOT] = -1
    tree.leaf_ints[:] = empty_leaf(plan)


def plant(plan: Plan, ints: Ints, t: int) -> None:
    """Make the root of an empty tree: a leaf that has seen nothing."""
    tree = tree_view(plan, ints, t)
    tree.header[at.TREE_NODES] = 1
    tree.header[at.TREE_SLOTS] = 1
    tree.header[at.TREE_LEAVES] = 1
    tree.node_ints[0, at.NODE_SLOT] = 0
    at.end_here(tree, 0)
    plan.spec.learner.begin(tree, 0, 0)


@functools.lru_cache(maxsize=256)
def empty_leaf(plan: Plan) -> Ints:
    """Return an unused leaf record, not to be written to."""
    shape = plan.shape(1, 1)
    ints = np.zeros(shape.words, dtype=np.int64)
    tree = TreeView(ints, ints.view(np.float64), 0, shape)
    plan.spec.learner.numeric_observer.clear(tree.numeric)
    plan.spec.learner.nominal_observer.clear(tree.nominal)
    record = tree.leaf_ints[0].copy()
    record.flags.writeable = False
    return record


def live_nodes(plan: Plan, ints: Ints, t: int) -> int:
    """Return the number of nodes of a tree, absent branches not counted."""
    tree = tree_view(plan, ints, t)
    kinds = tree.node_ints[: int(ints[t + at.TREE_NODES]), at.NODE_KIND]
    return int(np.count_nonzero(kinds != at.ABSENT))


@dataclass(frozen=True, slots=True)
class Block:
    """A tree of a new buffer: where it lies in the old one (NEW: it has seen nothing), and its room."""

    source: int
    nodes: int
    slots: int


NEW: Final = -1
NEW_TREE: Final = Block(NEW, 1, 1)


def blocks(ints: Ints) -> list[Block]:
    """Return the trees of a buffer as they are, the main tree first."""
    starts = [int(ints[at.MODEL_MAIN]), int(ints[at.MODEL_BACKGROUND])]
    return [Block(t, *room(ints, t)) for t in starts if t]


def relayout(old_plan: Plan, old: Ints, plan: Plan, trees: list[Block]) -> Ints:
    """Return a new buffer with the state of an old one and these trees: main and perhaps background.

    The plan may be that of a grown schema.
    """
    shapes = [plan.shape(block.nodes, block.slots) for block in trees]
    start = int(plan.ints[at.PLAN_TREES])
    words = start + sum(shape.words for shape in shapes)
    new = at.aligned_words(words)
    new[: at.MODEL_HEADER] = old[: at.MODEL_HEADER]
    new[at.MODEL_WORDS] = words
    new[at.MODEL_BACKGROUND] = 0
    _copy_sections(old_plan, old, plan, new)
    position = start
    for header, block, shape in zip((at.MODEL_MAIN, at.MODEL_BACKGROUND), trees, shapes, strict=False):
        new[header] = position
        target = tree_view(plan, new, position, shape)
        clear_tree(plan, target)
        if block.source == NEW:
            plant(plan, new, position)
        else:
            _copy_tree(old_plan, tree_view(old_plan, old, block.source), plan, target)
        position += shape.words
    return new


def room(ints: Ints, t: int) -> tuple[int, int]:
    """Return the room for (nodes, leaf records) of a tree."""
    return int(ints[t + at.TREE_NODE_CAPACITY]), int(ints[t + at.TREE_SLOT_CAPACITY])


def _copy_sections(old_plan: Plan, old: Ints, plan: Plan, new: Ints) -> None:
    """Copy the states of detector, query strategy and budget, the evaluation, values seen, what leaves share.

    A strategy or budget that is another one now begins anew.
    """
    if old_plan is plan:
        new[at.MODEL_HEADER : plan.ints[at.PLAN_TREES]] = old[at.MODEL_HEADER : plan.ints[at.PLAN_TREES]]
        return
    write_states(plan, new.view(np.float64))
    for word, before, now in (
        (at.PLAN_DETECTOR, old_plan.spec.drift, plan.spec.drift),
        (at.PLAN_QUERY, old_plan.spec.query, plan.spec.query),
        (at.PLAN_BUDGET, old_plan.spec.budget, plan.spec.budget),
    ):
        if now.name == before.name:
            source, target, size = int(old_plan.ints[word]), int(plan.ints[word]), len(now.initial())
            new[target : target + size] = old[source : source + size]
    evaluation.repack(old_plan, old, plan, new)
    write_declared_values(plan, new)
    source, target = int(old_plan.ints[at.PLAN_VALUES_SEEN]), int(plan.ints[at.PLAN_VALUES_SEEN])
    n = len(old_plan.values_index)
    new[target : target + n] = old[source : source + n]
    source, target = int(old_plan.ints[at.PLAN_SHARED]), int(plan.ints[at.PLAN_SHARED])
    n = int(old_plan.ints[at.PLAN_TREES]) - source
    new[target : target + n] = old[source : source + n]


def _copy_tree(old_plan: Plan, source: TreeView, plan: Plan, target: TreeView) -> None:
    """Copy a tree into an empty one with as much room or more, for more classes, values, attributes too."""
    target.header[at.TREE_NODES] = source.header[at.TREE_NODES]
    for word in (at.TREE_SLOTS, at.TREE_FREE, at.TREE_LEAVES, at.TREE_DEPTH, at.TREE_SPLITS):
        target.header[word] = source.header[word]
    for word in (at.TREE_ATTEMPTS, at.TREE_LABELS, at.TREE_STOPPED, at.TREE_PATHS):
        target.header[word] = source.header[word]
    nodes, slots = int(source.header[at.TREE_NODES]), int(source.header[at.TREE_SLOTS])
    if old_plan is plan:  # a tree that needs room: its records are as long as before
        target.node_ints[:nodes] = source.node_ints[:nodes]
        target.leaf_ints[:slots] = source.leaf_ints[:slots]
        return
    k = source.shape.classes
    target.node_ints[:nodes, : at.NODE_FIELDS + k] = source.node_ints[:nodes]
    target.leaf_ints[:slots, : at.LEAF_FIELDS + k] = source.leaf_ints[:slots, : at.LEAF_FIELDS + k]
    learner = plan.spec.learner
    index = values_carried(old_plan, plan)
    _copy_statistics(learner.numeric_observer.axes, source.numeric[:slots], target.numeric[:slots], index)
    _copy_statistics(learner.nominal_observer.axes, source.nominal[:slots], target.nominal[:slots], index)
    sections = learner.schedule.axes(plan.schema.n_attributes)
    for axes, old, new in zip(sections, source.schedule, target.schedule, strict=True):
        _copy_statistics(axes, old[:slots], new[:slots], index)
    target.revision[:slots, : source.shape.revision] = source.revision[:slots]


def _copy_statistics(axes: tuple[str | int, ...], source: Floats, target: Floats, values: Ints) -> None:
    """Copy observer statistics: axes grow at their end, but values where their attribute's room ends."""
    corner = (slice(None), *(slice(size) for size in source.shape[1:]))
    if "value" not in axes:
        target[corner] = source
        return
    axis = 1 + axes.index("value")
    where = [*corner]
    where[axis] = slice(None)
    slices = np.moveaxis(target[tuple(where)], axis, 0)
    for old, new in enumerate(values):
        if new >= 0:
            slices[new] = np.moveaxis(source, axis, 0)[old]


def values_carried(old_plan: Plan, plan: Plan) -> Ints:
    """Return, for each position on the old value axis, its position on the new one."""
    index = np.full(int(old_plan.ints[at.PLAN_VALUES]), -1, dtype=np.int64)
    for attribute, (first, size) in old_plan.values_index.items():
        index[first : first + size] = plan.values_index[attribute][0] + np.arange(size)
    return index
