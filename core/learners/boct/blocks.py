"""Blocks of BOCT: a tree, followed by the rows of its leaves; how they are laid out, grown and read."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cached_property
from typing import Any, ClassVar, Final

import numpy as np

from core.events import Event, GrowthStopped, Kind, Split
from core.kernels import jit, records
from core.layout.learning import GROW_FIRST, LEAF_ROW, LeafRow
from core.layout.model import WORD, Ints
from core.layout.tree import (
    CATEGORY,
    LEAF,
    LEAF_FIELDS,
    NO_SLOT,
    NUMERIC,
    TREE_HEADER,
    Node,
    SplitTest,
    Tree,
    TreeShape,
)
from core.learners.boct.bound_table import BoundTable
from core.learners.boct.cut_search import search
from core.learners.boct.leaf_division import begin_leaf, part_rows
from core.learners.boct.leaf_rows import (
    BOCT_WORDS,
    ROWS_HEADER,
    BoctLeaf,
    KeptRow,
    RowCounts,
    RowsHeader,
    move_extent,
)
from core.learners.hoeffding.blocks import CARRIED, TreeLayout, tree_at
from core.learners.hoeffding.decision import HasState, tree_of
from core.learners.protocol import HasBlocks, Room
from core.schema.dimensions import Dimensions
from core.tree import allocation, views
from core.tree.children import connect
from core.tree.views import TreeView

LEAST_ROWS: Final = 16
"""Number of rows that a model must have bytes for."""
FIRST_ROOM: Final = 8
"""Number of rows that a leaf has room for at first."""
TESTS: Final[dict[int, Kind]] = {NUMERIC: "numeric", CATEGORY: "category"}

# A room: nodes, leaf records, rows, whether the rows are in order, the leaf record that has more room than
# rows (-1: none), and how much more
NODES, SLOTS, CAPACITY, TIDY, ROOMY, EXTENT = range(6)

SIZES: Final = ("node_stride", "leaf_stride", "leaves_at", "nominal_at")
"""Words of a tree's header that follow from its shape; the block has more words than the shape."""


class BoctLayout(TreeLayout):
    """The blocks of BOCT for records of certain dimensions."""

    new_room: ClassVar[Room] = (1, 1, 0, 1, -1, 0)
    extends: ClassVar[bool] = False
    counts_weight: ClassVar[bool] = False  # bytes limit the rows that it keeps
    block_names: ClassVar[tuple[str, str]] = ("main tree", "background tree")

    def __init__(self, learner: Any, dims: Dimensions, table: BoundTable) -> None:
        """Take the table of bounds and keep it alive as long as the layout."""
        super().__init__(learner, dims)
        self.table = table
        self.offsets = (table.address,)
        self.stride = 1 + dims.attributes
        self.table_word = LEAF_FIELDS + dims.classes
        """First word in a leaf record of the leaf's row in the table of leaves."""

    # Sizes

    def shape_of(self, classes: int, values: int, nodes: int, slots: int) -> TreeShape:
        return TreeShape(
            classes=classes,
            numeric=(0,),
            nominal=(0,),
            nodes=nodes,
            slots=slots,
            schedule=((BOCT_WORDS,),),
        )

    @cached_property
    def empty_leaf(self) -> Ints:
        record = allocation.aligned_words(self.shape(1, 1).leaf_stride)
        jit.register(record)
        record.flags.writeable = False
        return record

    def words(self, room: Room) -> int:
        return self.shape(room[NODES], room[SLOTS]).words + ROWS_HEADER + room[CAPACITY] * self.stride

    def least_words(self, classes: int) -> int:
        tree = self.shape_of(classes, self.dims.values, 1, 1).words
        return tree + ROWS_HEADER + LEAST_ROWS * self.stride

    def header_of(self, ints: Ints, t: int) -> RowsHeader:
        """Return the header of rows."""
        tree = tree_at(ints, t)
        return RowsHeader(tree.ints, tree.floats, tree.end_of_leaves)

    def row_words(self, ints: Ints, t: int) -> Ints:
        """Return the words of all rows, int64[capacity, stride], not copied."""
        header = self.header_of(ints, t)
        first, n = int(header.start) + ROWS_HEADER, int(header.capacity)
        return ints[first : first + n * self.stride].reshape(n, self.stride)

    def rows_of(self, ints: Ints, t: int) -> Any:
        """Return all rows with the columns of KeptRow, not copied."""
        words = self.row_words(ints, t).reshape(-1)
        return records.rows(words, records.row_type(KeptRow, self.stride, after=self.dims.attributes))

    def table_rows(self, tree: TreeView) -> Any:
        """Return the rows of all leaf records in the table of leaves, not copied."""
        stride = tree.shape.leaf_stride
        return records.rows(tree.leaf_ints.reshape(-1), records.row_type(LeafRow, stride, self.table_word))

    def leaf_words(self, tree: TreeView) -> Any:
        """Return the words of all leaf records with the columns of BoctLeaf, not copied."""
        row = records.row_type(BoctLeaf, tree.shape.leaf_stride, self.table_word + LEAF_ROW)
        return records.rows(tree.leaf_ints.reshape(-1), row)

    def leaf_of(self, tree: Tree, node: Node) -> BoctLeaf:
        """Return the words that only BOCT uses, for the leaf at a node."""
        first = tree.leaf_of(node).start + self.table_word + LEAF_ROW
        return BoctLeaf(tree.ints, tree.floats, first)

    def room(self, ints: Ints, t: int) -> Room:
        tree, header = tree_at(ints, t), self.header_of(ints, t)
        return (
            int(tree.node_capacity),
            int(tree.slot_capacity),
            int(header.capacity),
            int(header.tidy),
            -1,
            0,
        )

    def live_room(self, ints: Ints, t: int) -> Room:
        tree = tree_at(ints, t)
        return int(tree.nodes), int(tree.slots), int(self.header_of(ints, t).live), 1, -1, 0

    def size_of(self, ints: Ints, t: int) -> int | None:
        """Return the words of a foreign block; None if its headers contradict the schema or each other."""
        if t + TREE_HEADER > len(ints):
            return None
        tree = tree_at(ints, t)
        nodes, slots = int(tree.node_capacity), int(tree.slot_capacity)
        if not (0 < nodes <= len(ints) and 0 < slots <= len(ints)):
            return None
        shape = self.shape(nodes, slots)
        if any(getattr(tree, name) != getattr(shape, name) for name in SIZES):
            return None
        if t + shape.words + ROWS_HEADER > len(ints):
            return None
        capacity = int(self.header_of(ints, t).capacity)
        if not 0 <= capacity <= len(ints):
            return None
        size = shape.words + ROWS_HEADER + capacity * self.stride
        return size if tree.words == size else None

    # Writing

    def plant(self, ints: Ints, t: int, room: Room) -> None:
        """Write a tree whose root is a leaf that has seen nothing."""
        tree = self._clear(ints, t, room)
        tree.block.nodes = 1
        tree.block.slots = 1
        tree.block.leaves = 1
        tree.block.root.slot = 0
        views.end_here(tree, 0)

    def _clear(self, ints: Ints, t: int, room: Room) -> TreeView:
        tree = super()._clear(ints, t, room[:2])
        words = self.words(room)
        ints[t + tree.shape.words : t + words] = 0
        tree.block.words = words
        header = self.header_of(ints, t)
        header.capacity, header.tidy = room[CAPACITY], 1
        return tree

    def copy(self, old: Any, source: Ints, s: int, target: Ints, t: int, room: Room) -> None:
        """Write a block with the state of another block, its extents in the order of leaf records."""
        before, tree = old.view(source, s), self._clear(target, t, room)
        for name in CARRIED:
            setattr(tree.block, name, getattr(before.block, name))
        nodes, slots = int(before.block.nodes), int(before.block.slots)
        tree.node_ints[:nodes, : before.shape.node_stride] = before.node_ints[:nodes]
        tree.leaf_ints[:slots, : old.table_word] = before.leaf_ints[:slots, : old.table_word]
        tree.leaf_ints[:slots, self.table_word :] = before.leaf_ints[:slots, old.table_word :]
        leaves, old_rows, rows = self.leaf_words(tree), old.row_words(source, s), self.row_words(target, t)
        used = 0
        for slot, (first, n) in enumerate(
            zip(leaves.first[:slots].tolist(), leaves.count[:slots].tolist(), strict=True)
        ):
            rows[used : used + n, : old.stride] = old_rows[first : first + n]
            extent = room[EXTENT] if slot == room[ROOMY] else n
            leaves.first[slot], leaves.room[slot] = used, extent
            used += extent
        rows.view(np.float64)[:used, old.stride :] = math.nan  # attributes that came later
        header, old_header = self.header_of(target, t), old.header_of(source, s)
        header.used, header.live = used, old_header.live
        header.tidy = int(room[ROOMY] < 0)
        header.limit = old_header.limit if old.stride == self.stride else 0

    # Growing

    def grow(self, model: HasState, reason: int, t: int, place: int, row: int, index: int) -> list[Event]:
        """Give a leaf room for more rows, or install the cut that has won there and search its branches."""
        tree = tree_of(model, t)
        number = int(tree.number(tree.node_of(place)))
        if reason == GROW_FIRST:
            self._extend(model, t, number)
            return []
        is_first = t == model.block_places[0]
        events: list[Event] = []
        waiting = [number]
        while waiting:
            number, tree = waiting.pop(), tree_of(model, t)
            if tree.stopped:
                break
            if not search(model.plan.record, tree, tree.node(number)):
                continue
            if self._exceeds_cap(model, t):
                tree.stopped = 1
                events.append(GrowthStopped(row, index, int(tree.leaves)))
                break
            t = self._make_room_for_branches(model, t)
            first, event = self._install(model, t, number, row, index)
            events.append(event)
            waiting += [first + 1, first]
        return events if is_first else []

    def _limit(self, model: HasState, nodes: int, slots: int) -> int:
        """Return how many rows fit into the bytes of the block in addition to these nodes and leaf records.

        It counts the classes and values that the model has learned. When they were added to the schema has no
        influence.
        """
        fixed = self.shape_of(2, 0, nodes, slots).words
        words = int(model.plan.learned_bytes(model.ints, 2) // WORD)
        return max((words - fixed - ROWS_HEADER) // self.stride, 1)

    def _exceeds_cap(self, model: HasState, t: int) -> bool:
        """Return whether another split would exceed the caps [D1], regardless of spare room."""
        nodes, slots, live = self.live_room(model.ints, t)[:3]
        if slots + 1 > self.learner.max_leaves:
            return True
        return live > self._limit(model, nodes + 2, slots + 1)

    def _make_room_for_branches(self, model: HasState, t: int) -> int:
        """Make room for two more nodes and one more leaf record; return the tree's first word after that."""
        live, room = self.live_room(model.ints, t), list(self.room(model.ints, t))
        needed = live[NODES] + 2, live[SLOTS] + 1
        if needed[0] <= room[NODES] and needed[1] <= room[SLOTS]:
            return t
        room[NODES], room[SLOTS] = max(needed[0], 2 * room[NODES] + 1), max(needed[1], 2 * room[SLOTS])
        if self.words(tuple(room)) * WORD > model.plan.block_bytes(max(self.dims.classes, 2)):
            room[:3] = *needed, live[CAPACITY]
        return model.make_room(t, (*room[:3], 0, -1, 0))

    def _extend(self, model: HasState, t: int, number: int) -> None:
        """Compute how many rows fit, if that is not known, and double the extent of a leaf that is full.

        The number is computed with the first label and with each split, and at no other time: when an extent
        is full depends on where it was laid out last.
        """
        tree, live = tree_of(model, t), self.live_room(model.ints, t)
        header, node = self.header_of(model.ints, t), tree.node(number)
        if not header.limit:
            header.limit = self._limit(model, live[NODES], live[SLOTS])
        limit, leaf = int(header.limit), self.leaf_of(tree, node)
        n = int(leaf.count)
        most = limit if self.learner.sizes == "pool" else self.learner.capacity
        spare = min(limit - live[CAPACITY], most - n)
        if n < leaf.room or spare <= 0:
            return
        extent = n + min(max(n, FIRST_ROOM - n), spare)
        if header.used + extent <= header.capacity:
            move_extent(model.plan.record, tree, leaf, extent)
            return
        others = live[CAPACITY] - n
        capacity = min(others + extent + others // 2, max(limit, others + extent))
        nodes, slots = self.room(model.ints, t)[:2]
        model.make_room(t, (nodes, slots, capacity, 0, int(node.slot), extent))

    def _install(self, model: HasState, t: int, number: int, row: int, index: int) -> tuple[int, Event]:
        """Give a leaf the test that has won, and divide its rows; return the first child and the event."""
        plan, tree, view = model.plan.record, tree_of(model, t), self.view(model.ints, t)
        node = tree.node(number)
        observed, routed = float(tree.leaf_of(node).observed), float(node.routed)
        left, right = (RowCounts.over(np.zeros(RowCounts.SIZE, dtype=np.int64)) for _ in range(2))
        part_rows(plan, tree, node, left, right)
        leaf = self._free_leaf_record(tree, node, view)
        if not tree.paths:
            node.routed = 0.0  # the children count from here
        masses = tuple(node.masses[: tree.model.classes].tolist())
        attribute, kind, value = int(leaf.cut_attribute), int(leaf.cut_kind), float(leaf.cut_value)
        counts = np.array([[part.labels - part.positives, part.positives] for part in (left, right)], float)
        connect(plan, tree, node, SplitTest(attribute, kind, value), counts, True)
        first_child, first = int(node.child), int(leaf.first)
        # The toy problem's cells are halves; a leaf without rows has only labels.
        n, labels = max(int(leaf.count), 1), max(int(leaf.labels), 1)
        for child, part in enumerate((left, right), first_child):
            extent = int(left.rows) if part is left else int(leaf.room - left.rows)
            share = 0.5 if self.learner.sizes == "toy" else part.rows / n
            seen = part.labels * (observed / labels)
            begin_leaf(plan, tree, child, first, extent, seen, routed * share, part)
            first += extent
        live = self.live_room(model.ints, t)
        self.header_of(model.ints, t).limit = self._limit(model, live[NODES], live[SLOTS])
        event = Split(
            row=row,
            model=index,
            node=number,
            attribute=attribute,
            test=TESTS[kind],
            value=value,
            merits=(-float(leaf.cut_score), -float(leaf.cut_lower)),
            bound=0.0,
            n=float(labels),
            reason="gap",
            depth=int(node.depth),
            masses=masses,
        )
        return first_child, event

    def _free_leaf_record(self, tree: Tree, node: Node, view: TreeView) -> BoctLeaf:
        """Free the leaf record of a node; return a copy of the words that only BOCT uses."""
        leaf, slot = self.leaf_of(tree, node), int(node.slot)
        words = tree.ints[leaf.start : leaf.start + BoctLeaf.SIZE].copy()
        view.leaf_ints[slot] = self.empty_leaf
        tree.leaf(slot).node = tree.free
        tree.free = slot
        node.slot = NO_SLOT
        return BoctLeaf.over(words)

    # Reading

    def view(self, ints: Ints, t: int) -> TreeView:
        nodes, slots = self.room(ints, t)[:2]
        return TreeView(ints, ints.view(np.float64), t, self.shape(nodes, slots))

    def problems(self, model: HasBlocks, t: int) -> Iterator[str]:
        """Yield the leaves whose counts differ from the counts of their rows."""
        view, rows = self.view(model.ints, t), self.rows_of(model.ints, t)
        tree = view.block
        for number in np.flatnonzero(view.nodes.kind[: tree.nodes] == LEAF):
            node = tree.node(int(number))
            leaf = self.leaf_of(tree, node)
            counts, masses = [leaf.labels - leaf.positives, leaf.positives], view.masses[number].tolist()
            if leaf.labels and masses[:2] != counts[: view.shape.classes]:
                yield f"leaf {number}: masses={masses} must be the counts of its {leaf.labels} labels"
            if leaf.table_row.node != number:
                yield f"leaf {number}: it must have its number in the table of leaves"
            if np.isinf(rows.values[leaf.first : leaf.first + leaf.count]).any():
                yield f"leaf {number}: values of rows must be finite or missing"
