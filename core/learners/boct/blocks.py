"""Blocks of BOCT: a tree, followed by the rows of its leaves; how they are laid out, grown and read."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cached_property
from typing import Any, ClassVar, Final

import numpy as np

from core.events import Event, GrowthStopped, Kind, Split
from core.kernels import jit
from core.layout.model import Ints
from core.layout.tree import TreeShape, write_tree_header
from core.learners.boct import leaf_rows as rows
from core.learners.boct.bound_table import BoundTable
from core.learners.boct.cut_search import search
from core.learners.boct.leaf_division import LABELS, PART, POSITIVES, ROWS, begin_leaf, part_rows
from core.learners.hoeffding.blocks import CARRIED, TreeLayout
from core.learners.hoeffding.decision import HasState
from core.learners.protocol import HasBlocks, Room
from core.schema.dimensions import Dimensions
from core.tree import allocation, views
from core.tree import layout as at
from core.tree.byoffset.children import connect
from core.tree.views import TreeView

LEAST_ROWS: Final = 16
"""Number of rows that a model must have bytes for."""
FIRST_ROOM: Final = 8
"""Number of rows that a leaf has room for at first."""
TESTS: Final[dict[int, Kind]] = {at.NUMERIC: "numeric", at.CATEGORY: "category"}

# A room: nodes, leaf records, rows, whether the rows are in order, the leaf record that has more room than
# rows (-1: none), and how much more
NODES, SLOTS, CAPACITY, TIDY, ROOMY, EXTENT = range(6)


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
        self.own_word = at.LEAF_FIELDS + dims.classes
        """The first of the words in a leaf record that only BOCT uses."""

    # Sizes

    def shape_of(self, classes: int, values: int, nodes: int, slots: int) -> TreeShape:
        return TreeShape(
            classes=classes,
            numeric=(0,),
            nominal=(0,),
            nodes=nodes,
            slots=slots,
            schedule=((rows.OWN_WORDS,),),
        )

    @cached_property
    def empty_leaf(self) -> Ints:
        record = allocation.aligned_words(self.shape(1, 1).leaf_stride)
        jit.register(record)
        record.flags.writeable = False
        return record

    def words(self, room: Room) -> int:
        return self.shape(room[NODES], room[SLOTS]).words + rows.ROWS_HEADER + room[CAPACITY] * self.stride

    def least_words(self, classes: int) -> int:
        tree = self.shape_of(classes, self.dims.values, 1, 1).words
        return tree + rows.ROWS_HEADER + LEAST_ROWS * self.stride

    def header_of(self, ints: Ints, t: int) -> Ints:
        """Return the header of rows, not copied."""
        first = t + ints.item(t + at.TREE_LEAVES_AT)
        first += ints.item(t + at.TREE_SLOT_CAPACITY) * ints.item(t + at.TREE_LEAF_STRIDE)
        return ints[first : first + rows.ROWS_HEADER]

    def rows_of(self, ints: Ints, t: int) -> Ints:
        """Return all rows, int64[capacity, stride], not copied."""
        first = t + self.view(ints, t).shape.words + rows.ROWS_HEADER
        n = self.header_of(ints, t).item(rows.ROWS_CAPACITY)
        return ints[first : first + n * self.stride].reshape(n, self.stride)

    def own_of(self, tree: TreeView) -> Ints:
        """Return the words of leaf records that only BOCT uses, int64[leaf record, word], not copied."""
        return tree.leaf_ints[:, self.own_word :]

    def room(self, ints: Ints, t: int) -> Room:
        header = self.header_of(ints, t)
        nodes, slots = ints.item(t + at.TREE_NODE_CAPACITY), ints.item(t + at.TREE_SLOT_CAPACITY)
        return nodes, slots, header.item(rows.ROWS_CAPACITY), header.item(rows.ROWS_TIDY), -1, 0

    def live_room(self, ints: Ints, t: int) -> Room:
        live = self.header_of(ints, t).item(rows.ROWS_LIVE)
        return ints.item(t + at.TREE_NODES), ints.item(t + at.TREE_SLOTS), live, 1, -1, 0

    def size_of(self, ints: Ints, t: int) -> int | None:
        """Return the words of a foreign block; None if its headers contradict the schema or each other."""
        if t + at.TREE_HEADER > len(ints):
            return None
        nodes, slots = ints.item(t + at.TREE_NODE_CAPACITY), ints.item(t + at.TREE_SLOT_CAPACITY)
        if not (0 < nodes <= len(ints) and 0 < slots <= len(ints)):
            return None
        shape = self.shape(nodes, slots)
        header = np.zeros(at.TREE_HEADER, dtype=np.int64)
        write_tree_header(header, shape)
        sizes = [at.TREE_NODE_STRIDE, at.TREE_LEAF_STRIDE, at.TREE_LEAVES_AT, at.TREE_NOMINAL_AT]
        if any(ints[t + word] != header[word] for word in sizes):
            return None
        if t + shape.words + rows.ROWS_HEADER > len(ints):
            return None
        capacity = self.header_of(ints, t).item(rows.ROWS_CAPACITY)
        if not 0 <= capacity <= len(ints):
            return None
        size = shape.words + rows.ROWS_HEADER + capacity * self.stride
        return size if ints[t + at.TREE_WORDS] == size else None

    # Writing

    def plant(self, ints: Ints, t: int, room: Room) -> None:
        """Write a tree whose root is a leaf that has seen nothing."""
        tree = self._clear(ints, t, room)
        for word in (at.TREE_NODES, at.TREE_SLOTS, at.TREE_LEAVES):
            tree.header[word] = 1
        tree.node_ints[0, at.NODE_SLOT] = 0
        views.end_here(tree, 0)

    def _clear(self, ints: Ints, t: int, room: Room) -> TreeView:
        tree = super()._clear(ints, t, room[:2])
        words = self.words(room)
        ints[t + tree.shape.words : t + words] = 0
        tree.header[at.TREE_WORDS] = words
        header = self.header_of(ints, t)
        header[rows.ROWS_CAPACITY], header[rows.ROWS_TIDY] = room[CAPACITY], 1
        return tree

    def copy(self, old: Any, source: Ints, s: int, target: Ints, t: int, room: Room) -> None:
        """Write a block with the state of another block, its extents in the order of leaf records."""
        before, tree = old.view(source, s), self._clear(target, t, room)
        for name in CARRIED:
            setattr(tree.block, name, getattr(before.block, name))
        nodes, slots = int(before.block.nodes), int(before.block.slots)
        tree.node_ints[:nodes, : before.shape.node_stride] = before.node_ints[:nodes]
        head = at.LEAF_FIELDS + before.shape.classes
        tree.leaf_ints[:slots, :head] = before.leaf_ints[:slots, :head]
        own, earlier = self.own_of(tree), old.own_of(before)
        own[:slots] = earlier[:slots]
        kept, given = old.rows_of(source, s), self.rows_of(target, t)
        used = 0
        for slot, (first, n) in enumerate(earlier[:slots, [rows.FIRST, rows.COUNT]].tolist()):
            given[used : used + n, : old.stride] = kept[first : first + n]
            extent = room[EXTENT] if slot == room[ROOMY] else n
            own[slot, rows.FIRST], own[slot, rows.ROOM] = used, extent
            used += extent
        given.view(np.float64)[:used, old.stride :] = math.nan  # attributes that came later
        header, was = self.header_of(target, t), old.header_of(source, s)
        header[rows.ROWS_USED], header[rows.ROWS_LIVE] = used, was[rows.ROWS_LIVE]
        header[rows.ROWS_TIDY] = room[ROOMY] < 0
        header[rows.ROWS_LIMIT] = was[rows.ROWS_LIMIT] if old.stride == self.stride else 0

    # Growing

    def grow(self, model: HasState, reason: int, t: int, place: int, row: int, index: int) -> list[Event]:
        """Give a leaf room for more rows, or install the cut that has won there and search its branches."""
        number = at.number_of(model.ints, t, place)
        if reason == at.GROW_FIRST:
            self._extend(model, t, number)
            return []
        is_first = t == model.block_places[0]
        events: list[Event] = []
        waiting = [number]
        while waiting and not model.ints[t + at.TREE_STOPPED]:
            node = waiting.pop()
            record = at.node_at(model.ints, t, node)
            if not search(model.plan.address, model.ints.ctypes.data, t, record):
                continue
            if self._exceeds_cap(model, t):
                model.ints[t + at.TREE_STOPPED] = 1
                events.append(GrowthStopped(row, index, model.ints.item(t + at.TREE_LEAVES)))
                break
            t = self._make_room_for_branches(model, t)
            first, event = self._install(model, t, node, row, index)
            events.append(event)
            waiting += [first + 1, first]
        return events if is_first else []

    def _limit(self, model: HasState, nodes: int, slots: int) -> int:
        """Return how many rows fit into the bytes of the block in addition to these nodes and leaf records.

        It counts the classes and values that the model has learned. When they were added to the schema has no
        influence.
        """
        fixed = self.shape_of(2, 0, nodes, slots).words
        words = int(model.plan.learned_bytes(model.ints, 2) // at.WORD)
        return max((words - fixed - rows.ROWS_HEADER) // self.stride, 1)

    def _exceeds_cap(self, model: HasState, t: int) -> bool:
        """Return whether another split would exceed the caps [D1], regardless of spare room."""
        ints = model.ints
        nodes, slots = ints.item(t + at.TREE_NODES) + 2, ints.item(t + at.TREE_SLOTS) + 1
        if slots > self.learner.max_leaves:
            return True
        return self.header_of(ints, t).item(rows.ROWS_LIVE) > self._limit(model, nodes, slots)

    def _make_room_for_branches(self, model: HasState, t: int) -> int:
        """Make room for two more nodes and one more leaf record; return the tree's first word after that."""
        live, room = self.live_room(model.ints, t), list(self.room(model.ints, t))
        needed = live[NODES] + 2, live[SLOTS] + 1
        if needed[0] <= room[NODES] and needed[1] <= room[SLOTS]:
            return t
        room[NODES], room[SLOTS] = max(needed[0], 2 * room[NODES] + 1), max(needed[1], 2 * room[SLOTS])
        if self.words(tuple(room)) * at.WORD > model.plan.block_bytes(max(self.dims.classes, 2)):
            room[:3] = *needed, live[CAPACITY]
        return model.make_room(t, (*room[:3], 0, -1, 0))

    def _extend(self, model: HasState, t: int, node: int) -> None:
        """Compute how many rows fit, if that is not known, and double the extent of a leaf that is full.

        The number is computed with the first label and with each split, and at no other time: when an extent
        is full depends on where it was laid out last.
        """
        ints, live = model.ints, self.live_room(model.ints, t)
        header, tree = self.header_of(ints, t), self.view(ints, t)
        if not header[rows.ROWS_LIMIT]:
            header[rows.ROWS_LIMIT] = self._limit(model, live[NODES], live[SLOTS])
        limit = header.item(rows.ROWS_LIMIT)
        slot = tree.node_ints.item(node, at.NODE_SLOT)
        own = self.own_of(tree)[slot]
        n = int(own[rows.COUNT])
        most = limit if self.learner.sizes == "pool" else self.learner.capacity
        spare = min(limit - live[CAPACITY], most - n)
        if n < own[rows.ROOM] or spare <= 0:
            return
        extent = n + min(max(n, FIRST_ROOM - n), spare)
        if header[rows.ROWS_USED] + extent <= header[rows.ROWS_CAPACITY]:
            jit.register(ints)
            rows.move_extent(model.plan.address, ints.ctypes.data, t, slot, extent)
            return
        others = live[CAPACITY] - n
        capacity = min(others + extent + others // 2, max(limit, others + extent))
        nodes, slots = self.room(ints, t)[:2]
        model.make_room(t, (nodes, slots, capacity, 0, slot, extent))

    def _install(self, model: HasState, t: int, node: int, row: int, index: int) -> tuple[int, Event]:
        """Give a leaf the test that has won, and divide its rows; return the first child and the event."""
        ints, plan = model.ints, model.plan
        tree = self.view(ints, t)
        record = t + at.TREE_HEADER + node * tree.shape.node_stride
        slot = tree.node_ints.item(node, at.NODE_SLOT)
        own, values = self.own_of(tree)[slot].copy(), tree.leaf_floats[slot, self.own_word :].copy()
        observed = tree.leaf_floats.item(slot, at.LEAF_OBSERVED)
        flat = np.zeros(2 * PART, dtype=np.int64)
        part_rows(plan.address, ints.ctypes.data, t, record, flat)
        parts = flat.reshape(2, PART)
        tree.leaf_ints[slot] = self.empty_leaf
        tree.leaf_ints[slot, at.LEAF_NODE] = tree.header[at.TREE_FREE]
        tree.header[at.TREE_FREE] = slot
        tree.node_ints[node, at.NODE_SLOT] = -1
        routed = tree.node_floats.item(node, at.NODE_ROUTED)
        if not tree.header[at.TREE_PATHS]:
            tree.node_floats[node, at.NODE_ROUTED] = 0.0  # the children count from here
        known = model.ints.item(at.MODEL_CLASSES)
        had, depth = tuple(tree.masses[node, :known].tolist()), int(tree.node_ints[node, at.NODE_DEPTH])
        kind, attribute, value = int(own[rows.CUT_KIND]), int(own[rows.CUT_ATTRIBUTE]), values[rows.CUT_VALUE]
        masses = np.empty((2, 2))
        masses[:, 1] = parts[:, POSITIVES]
        masses[:, 0] = parts[:, LABELS] - parts[:, POSITIVES]
        connect(plan.address, ints.ctypes.data, t, node, attribute, kind, value, masses, True)
        child, first, room = (
            tree.node_ints.item(node, at.NODE_CHILD),
            int(own[rows.FIRST]),
            int(own[rows.ROOM]),
        )
        # The toy problem's cells are halves; a leaf without rows has only labels.
        n, labels = max(int(own[rows.COUNT]), 1), max(int(own[rows.LABELS]), 1)
        for branch, part in enumerate(parts):
            extent = int(part[ROWS]) if branch == 0 else room - int(parts[0, ROWS])
            share = 0.5 if self.learner.sizes == "toy" else part[ROWS] / n
            seen = part[LABELS] * (observed / labels)
            arguments = (child + branch, first, extent, seen, routed * share, np.ascontiguousarray(part))
            begin_leaf(plan.address, ints.ctypes.data, t, *arguments)
            first += extent
        live = self.live_room(ints, t)
        self.header_of(ints, t)[rows.ROWS_LIMIT] = self._limit(model, live[NODES], live[SLOTS])
        event = Split(
            row=row,
            model=index,
            node=node,
            attribute=attribute,
            test=TESTS[kind],
            value=float(value),
            merits=(-float(values[rows.CUT_SCORE]), -float(values[rows.CUT_LOWER])),
            bound=0.0,
            n=float(labels),
            reason="gap",
            depth=depth,
            masses=had,
        )
        return child, event

    # Reading

    def view(self, ints: Ints, t: int) -> TreeView:
        nodes, slots = ints.item(t + at.TREE_NODE_CAPACITY), ints.item(t + at.TREE_SLOT_CAPACITY)
        return TreeView(ints, ints.view(np.float64), t, self.shape(nodes, slots))

    def problems(self, model: HasBlocks, t: int) -> Iterator[str]:
        """Yield the leaves whose counts differ from the counts of their rows."""
        tree = self.view(model.ints, t)
        own, kept = self.own_of(tree), self.rows_of(model.ints, t)
        for node in np.flatnonzero(
            tree.node_ints[: int(tree.header[at.TREE_NODES]), at.NODE_KIND] == at.LEAF
        ):
            leaf = own[tree.node_ints[node, at.NODE_SLOT]]
            first, labels, positives = (int(leaf[w]) for w in (rows.FIRST, rows.LABELS, rows.POSITIVES))
            if (
                labels
                and tree.masses[node].tolist()[:2] != [labels - positives, positives][: tree.shape.classes]
            ):
                masses = tree.masses[node].tolist()
                yield f"leaf {node}: masses={masses} must be the counts of its {labels} labels"
            if leaf[at.ROW_NODE] != node:
                yield f"leaf {node}: it must have its number in the table of leaves"
            values = kept[first : first + int(leaf[rows.COUNT]), 1:].view(np.float64)
            if np.isinf(values).any():
                yield f"leaf {node}: values of rows must be finite or missing"
