"""Blocks of the Hoeffding family: trees; how they are laid out, copied, grown and read."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any, ClassVar, Final

import numpy as np

from core.events import Event
from core.kernels import jit
from core.kernels.records import offset
from core.layout.learning import GROW_FIRST
from core.layout.model import Floats, Ints
from core.layout.tree import (
    ABSENT,
    LEAF,
    LEAF_FIELDS,
    NO_NODE,
    NO_SLOT,
    NODE_FIELDS,
    TREE_HEADER,
    Tree,
    TreeShape,
    has_sizes,
    write_tree_header,
)
from core.learners.arrays import copy_axes
from core.learners.hoeffding import invariants
from core.learners.hoeffding.decision import HasState
from core.learners.hoeffding.growth import revision, splitting
from core.learners.protocol import BlockLayout, BlockSummary, HasBlocks, Room
from core.schema.dimensions import Dimensions, values_carried
from core.schema.schema import Schema
from core.tree import allocation, outline, quirks, views
from core.tree.conditions import Branch, end_of, path_to
from core.tree.outline import Outline
from core.tree.routing import sum_paths
from core.tree.statistics import SLACK
from core.tree.views import TreeView

MAX_SHAPES: Final = 64
"""Number of cached shapes of trees."""

FEW: Final = 8
"""If fewer than one in FEW words differ from zero, they are written one by one, else the whole record."""

CARRIED: Final = (
    "nodes",
    "slots",
    "free",
    "leaves",
    "depth",
    "splits",
    "attempts",
    "labels",
    "stopped",
    "paths",
)
"""Words of a tree's header that are not sizes."""


_NODES, _SLOTS = offset(Tree, "node_capacity"), offset(Tree, "slot_capacity")


def tree_at(ints: Ints, t: int) -> Tree:
    """Return the tree at word t of a model's words."""
    return Tree(ints, ints.view(np.float64), t)


class TreeLayout(BlockLayout):
    """The trees of a learner of the family for records of certain dimensions; room: (nodes, leaf records)."""

    new_room: ClassVar[Room] = (1, 1)
    extends: ClassVar[bool] = True
    place_name: ClassVar[str] = "node"
    counts_weight: ClassVar[bool] = True
    """A leaf's observed weight is the weight of its labels, so that the time to the next attempt is known."""
    block_names: ClassVar[tuple[str, str]] = ("main tree", "background tree")

    def __init__(self, learner: Any, dims: Dimensions) -> None:
        """Take the learner, whose axes define the parts of a leaf record."""
        self.learner = learner
        self.dims = dims
        self._shapes: dict[tuple[int, int], TreeShape] = {}
        self.blank_address = int(self.empty_leaf.ctypes.data)

    # Sizes

    def shape(self, nodes: int, slots: int) -> TreeShape:
        """Return the shape of a tree with room for this number of nodes and leaf records."""
        # Trees double their room, so that few shapes serve all models; each shape is needed at every split.
        shape = self._shapes.get((nodes, slots))
        if shape is None:
            if len(self._shapes) >= MAX_SHAPES:
                self._shapes.clear()
            new_shape = self.shape_of(self.dims.classes, self.dims.values, nodes, slots)
            shape = self._shapes[nodes, slots] = new_shape
        return shape

    def shape_of(self, classes: int, values: int, nodes: int, slots: int) -> TreeShape:
        """Return the shape of a tree for this number of classes and values of nominal attributes."""
        learner, counts = self.learner, (classes, len(self.dims.numeric), values)
        return TreeShape(
            classes=classes,
            numeric=learner.numeric_observer.shape(*counts),
            nominal=learner.nominal_observer.shape(*counts),
            nodes=nodes,
            slots=slots,
            schedule=learner.schedule.shapes(classes, self.dims.attributes, values),
            revision=learner.revision_words(self.dims.attributes),
            leaf_model=learner.leaf_model.shapes(*counts),
            subtree=learner.subtree_words,
        )

    @cached_property
    def empty_leaf(self) -> Ints:
        """An unused leaf record, int64[leaf stride], read-only."""
        shape = self.shape(1, 1)
        ints = np.zeros(shape.words, dtype=np.int64)
        tree = TreeView(ints, ints.view(np.float64), 0, shape)
        self.learner.numeric_observer.clear(tree.numeric)
        self.learner.nominal_observer.clear(tree.nominal)
        self.learner.leaf_model.clear(tree.leaf_model)
        record = allocation.aligned_words(shape.leaf_stride)
        record[:] = tree.leaf_ints[0]
        jit.register(record)  # core/learners/hoeffding/soundness.py compares free records with it
        record.flags.writeable = False
        return record

    @cached_property
    def _written(self) -> Ints:
        """Words of an unused leaf record that are not zeros."""
        return np.flatnonzero(self.empty_leaf)

    def words(self, room: Room) -> int:
        nodes, slots = room
        return self.shape(nodes, slots).words

    def least_words(self, classes: int) -> int:
        return self.shape_of(classes, self.dims.values, 1, 1).words

    def room(self, ints: Ints, t: int) -> Room:
        tree = tree_at(ints, t)
        return int(tree.node_capacity), int(tree.slot_capacity)

    def live_room(self, ints: Ints, t: int) -> Room:
        """Return the nodes and leaf records in use."""
        tree = tree_at(ints, t)
        return int(tree.nodes), int(tree.slots)

    def size_of(self, ints: Ints, t: int) -> int | None:
        """Return the words of a foreign tree; None if its header is no tree's."""
        if t + TREE_HEADER > len(ints):
            return None
        header = ints[t : t + TREE_HEADER].tolist()
        nodes, slots = header[_NODES], header[_SLOTS]
        if not (0 < nodes <= len(ints) and 0 < slots <= len(ints)):
            return None
        shape = self.shape(nodes, slots)
        return shape.words if has_sizes(header, shape) else None

    # Writing

    def plant(self, ints: Ints, t: int, room: Room) -> None:
        """Write a tree whose root is a leaf that has seen nothing."""
        tree = self._clear(ints, t, room)
        tree.block.nodes = 1
        tree.block.slots = 1
        tree.block.leaves = 1
        tree.block.root.slot = 0
        views.end_here(tree, 0)
        self.learner.begin(tree, 0, 0)

    def copy(self, old: TreeLayout, source: Ints, s: int, target: Ints, t: int, room: Room) -> None:
        """Write a tree with the state of a source, also for more classes, values and attributes."""
        before = old.view(source, s)
        nodes, slots = int(before.block.nodes), int(before.block.slots)
        # Records whose length stays the same are copied whole; longer records get new parts.
        tree = self._lay_out(target, t, room, slots if old is self else 0)
        for name in CARRIED:
            setattr(tree.block, name, getattr(before.block, name))
        if old is self:  # a tree that needs room: its records keep their length
            tree.node_ints[:nodes] = before.node_ints[:nodes]
            tree.leaf_ints[:slots] = before.leaf_ints[:slots]
            return
        k = before.shape.classes
        tree.node_ints[:nodes, : NODE_FIELDS + k] = before.node_ints[:nodes, : NODE_FIELDS + k]
        tree.subtrees[:nodes] = before.subtrees[:nodes]
        tree.leaf_ints[:slots, : LEAF_FIELDS + k] = before.leaf_ints[:slots, : LEAF_FIELDS + k]
        learner, index = self.learner, values_carried(old.dims, self.dims)
        copy_axes(
            (slots, *learner.numeric_observer.axes), before.numeric[:slots], tree.numeric[:slots], index
        )
        copy_axes(
            (slots, *learner.nominal_observer.axes), before.nominal[:slots], tree.nominal[:slots], index
        )
        sections = learner.schedule.axes(self.dims.attributes)
        for axes, earlier, now in zip(sections, before.schedule, tree.schedule, strict=True):
            copy_axes((slots, *axes), earlier[:slots], now[:slots], index)
        for axes, earlier, now in zip(
            learner.leaf_model.axes, before.leaf_model, tree.leaf_model, strict=True
        ):
            copy_axes((slots, *axes), earlier[:slots], now[:slots], index)
        tree.revision[:slots, : before.shape.revision] = before.revision[:slots]

    def _clear(self, ints: Ints, t: int, room: Room) -> TreeView:
        """Write an empty tree: every record in the state of unused records."""
        ints[t : t + self.shape(*room[:2]).words] = 0
        return self._lay_out(ints, t, room, 0)

    def _lay_out(self, ints: Ints, t: int, room: Room, slots_in_use: int) -> TreeView:
        """Write an empty tree into zeros, except for leaf records that will be overwritten by copies.

        Zeros are not written again: with many values of nominal attributes a leaf record contains little
        else.
        """
        nodes, slots = room
        shape = self.shape(nodes, slots)
        tree = TreeView(ints, ints.view(np.float64), t, shape)
        write_tree_header(tree.header, shape)
        tree.block.free = NO_SLOT
        self._make_blank(tree, 0, min(slots_in_use, slots))
        return tree

    def _make_blank(self, tree: TreeView, node: int, slot: int) -> None:
        """Write unused node and leaf records into zeros, from these numbers on."""
        nodes = tree.nodes
        nodes.parent[node:] = NO_NODE
        nodes.slot[node:] = NO_SLOT
        unused, blank = tree.leaf_ints[slot:], self.empty_leaf
        written = self._written
        if FEW * len(written) < len(blank):
            unused[:, written] = blank[written]
        else:
            unused[:] = blank

    def extend(self, ints: Ints, t: int, room: Room) -> None:
        """Give a tree more room without moving it; leaf records move if there are more nodes."""
        had, (nodes, slots) = self.shape(*self.room(ints, t)), room
        shape = self.shape(nodes, slots)
        if nodes > had.nodes:
            first, length = t + had.leaves_at, had.slots * had.leaf_stride
            ints[t + shape.leaves_at : t + shape.leaves_at + length] = ints[first : first + length]
            ints[first : t + shape.leaves_at] = 0
        tree = TreeView(ints, ints.view(np.float64), t, shape)
        write_tree_header(tree.header, shape)
        self._make_blank(tree, had.nodes, had.slots)

    # Growing

    def grow(self, model: HasState, reason: int, t: int, place: int, row: int, index: int) -> list[Event]:
        """Attempt a split, revise a path, or turn an absent branch into a leaf."""
        if reason == GROW_FIRST:
            splitting.grow_branch(model, t, place)
            return []
        if model.plan.record.revision:
            return revision.revise_path(model, t, place, row, index)
        event = splitting.attempt(model, t, place, row, index)
        return [] if event is None else [event]

    def event_of(self, words: Floats, row: int, index: int) -> Event:
        """Return the event of a plain split."""
        return splitting.plain_event(words, row, index)

    def takes_attributes(self, ints: Ints, t: int) -> bool:
        """Return whether the tree is still one leaf: in split trees a new attribute would lack statistics."""
        return bool(tree_at(ints, t).nodes <= 1)

    def undecided_weight(self, ints: Ints, t: int) -> float:
        """Return the weight until the next attempt of a one-leaf tree; 0 unless its schedule only counts."""
        tree = tree_at(ints, t)
        if tree.nodes > 1 or not self.counts_weight or self.learner.schedule.step is None:
            return 0.0
        if tree.root.slot < 0:
            return 0.0
        leaf = tree.leaf_of(tree.root)
        return max(float(leaf.next - leaf.observed) - SLACK, 0.0)

    # Reading

    def view(self, ints: Ints, t: int) -> TreeView:
        nodes, slots = self.room(ints, t)
        return TreeView(ints, ints.view(np.float64), t, self.shape(nodes, slots))

    def prepare(self, ints: Ints, t: int) -> Floats:
        """Return the weight routed through each node, float64[node]; it routes missing values."""
        routed = np.empty(int(tree_at(ints, t).nodes))
        sum_paths(ints.ctypes.data, t, routed)
        return routed

    def summary(self, ints: Ints, t: int) -> BlockSummary:
        """Return the tree's size and counters, without absent branches."""
        tree = tree_at(ints, t)
        kinds = self.view(ints, t).nodes.kind[: tree.nodes]
        return BlockSummary(
            leaves=int(tree.leaves),
            nodes=int(np.count_nonzero(kinds != ABSENT)),
            depth=int(tree.depth),
            splits=int(tree.splits),
            attempts=int(tree.attempts),
            growth_stopped=self.has_stopped(ints, t),
        )

    def nodes(self, ints: Ints, t: int) -> int:
        """Return the number of nodes, including absent branches."""
        return int(tree_at(ints, t).nodes)

    def has_stopped(self, ints: Ints, t: int) -> bool:
        """Return whether a cap was reached, so that there are no attempts until a revision makes room."""
        return bool(tree_at(ints, t).stopped)

    def next_test(self, ints: Ints, t: int, x: Floats, unknown: Any) -> int:
        """Return the attribute of the first test on a record's path whose value is unknown."""
        tree = self.view(ints, t)
        stops = bool(self.learner.quirks & quirks.STOPS_AT_MISSING)
        node = tree.block.node(end_of(tree, x, stops, unknown))
        if node.kind in (LEAF, ABSENT) or not unknown[node.attribute]:
            return -1
        return int(node.attribute)

    def explain(
        self, schema: Schema, ints: Ints, t: int, x: Floats, place: int | None = None
    ) -> tuple[Branch, ...]:
        """Return the path of branches to the node where a record ends."""
        tree = self.view(ints, t)
        if place is None:
            node = end_of(tree, x, stop_at_missing=bool(self.learner.quirks & quirks.STOPS_AT_MISSING))
        else:
            block = tree_at(ints, t)
            node = int(block.number(block.node_of(place)))
        return path_to(schema, tree, node, x)

    def outline(self, model: HasBlocks, t: int, depth: int | None) -> Iterator[Outline]:
        tree = self.view(model.ints, t)
        yield from outline.of_tree(model.plan, model.schema, model.ints, tree, depth)

    def problems(self, model: HasBlocks, t: int) -> Iterator[str]:
        yield from invariants.problems(model, self.view(model.ints, t))
