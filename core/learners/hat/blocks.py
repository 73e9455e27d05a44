"""Blocks of adaptive trees: alternate trees start, take places, are removed and listed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import ClassVar

import numpy as np

from core.drift import adwin
from core.drift.base import Detector
from core.events import Action, Drift, Event, Level, Split
from core.layout.learning import GROW_FIRST
from core.layout.model import Floats, Ints
from core.layout.tree import ABSENT, LEAF
from core.learners.hat.due import JUDGED, STARTS, TAKES_OVER
from core.learners.hoeffding.blocks import TreeLayout, tree_at
from core.learners.hoeffding.decision import HasState
from core.learners.hoeffding.growth import alternates, revision, splitting
from core.learners.protocol import BlockSummary, HasBlocks, Room
from core.tree import outline, quirks
from core.tree.conditions import ALTERNATE, BESIDE, Branch
from core.tree.outline import Outline
from core.tree.views import TreeView, tree_view


class HatLayout(TreeLayout):
    """The trees of ``hat`` for records of certain dimensions; room: (nodes, leaf records), of all trees."""

    counts_weight: ClassVar[bool] = False  # a label may count several times

    def plant(self, ints: Ints, t: int, room: Room) -> None:
        """Write a tree of one leaf; its nodes count the records that come from the beginning."""
        super().plant(ints, t, room)
        tree_at(ints, t).paths = 1

    def prepare(self, ints: Ints, t: int) -> Floats:
        """Return the weight routed through each node, float64[node], which the nodes have counted."""
        return self.view(ints, t).routed[: tree_at(ints, t).nodes]

    # Growing

    def grow(self, model: HasState, reason: int, t: int, place: int, row: int, index: int) -> list[Event]:
        """Apply the alarms of detectors on a record's paths, or attempt the splits that are due."""
        block = model.block_places.index(t)
        if reason == GROW_FIRST:
            return self._adapt(model, block, row, index)
        events: list[Event] = []
        while (node := self._next_due(model, model.block_places[block])) is not None:
            events += self._attempt(model, block, node, row, index)
        return events

    def _adapt(self, model: HasState, block: int, row: int, index: int) -> list[Event]:
        """Start, install and remove alternate trees; the record that led to it comes again."""
        events: list[Event] = []
        while True:
            t = model.block_places[block]
            tree = tree_view(model.plan, model.ints, t)
            marks = tree.subtree_states.due[: tree.block.nodes]
            marked = np.flatnonzero(marks)
            if not len(marked):
                marks[0] = JUDGED
                return events
            node = marked.item(0)
            due, marks[node] = marks.item(node), 0
            is_reported = t == model.block_places[0] and alternates.alternate_root(tree, node) < 0
            event = self._drift(tree, node, due, row, index)
            if due == STARTS:
                if not alternates.start(model, t, node):
                    event = replace(event, action="none")
            elif due == TAKES_OVER:
                alternates.take_over(model, tree, node)
            else:
                alternates.drop(model, tree, node)
            if due != STARTS:
                revision.grow_again(model, tree)
            events += [event] if is_reported else []

    def _drift(self, tree: TreeView, node: int, due: int, row: int, index: int) -> Drift:
        """Return the event of a change beside a node; its error rate is the rate in the detector's window."""
        level: Level = "in-control"
        action: Action = "alternate tree dropped"
        if due == STARTS:
            level, action = "warning", "alternate tree started"
        elif due == TAKES_OVER:
            level, action = "drift", "alternate tree took over"
        return Drift(
            row=row,
            model=index,
            level=level,
            detector=self._detector.name,
            error_rate=self._error_at(tree, node)[0],
            action=action,
            node=node,
            depth=int(tree.block.node(node).depth),
        )

    @property
    def _detector(self) -> Detector:
        detector: Detector = self.learner.subtree_detector
        return detector

    def _error_at(self, tree: TreeView, node: int) -> tuple[float, int]:
        """Return the error rate in the window of a node's detector, and the records in it."""
        state = tree.subtree_states.detector[node]
        return self._detector.error_rate(state), int(adwin.AdwinState.over(state).width)

    def _next_due(self, model: HasState, t: int) -> int | None:
        """Return the leaf whose attempt comes next, and clear its mark; None: all attempts are made."""
        tree = tree_view(model.plan, model.ints, t)
        marks = tree.subtree_states.due[: tree.block.nodes]
        marked = np.flatnonzero(marks)
        if not len(marked):
            return None
        node = int(marked[np.argmin(marks[marked])])
        marks[node] = 0
        return node

    def _attempt(self, model: HasState, block: int, node: int, row: int, index: int) -> list[Event]:
        """Attempt to split leaf number ``node``; return the events of the tree that answers."""
        t = model.block_places[block]
        tree = tree_view(model.plan, model.ints, t)
        root = alternates.alternate_root(tree, node)
        event = splitting.attempt(model, t, int(tree_at(model.ints, t).node(node).start), row, index)
        events: list[Event] = [] if event is None else [event]
        t = model.block_places[block]
        tree = tree_view(model.plan, model.ints, t)
        record = tree.block.node(node)
        if record.kind == LEAF and tree.block.leaf_of(record).observed > 0.0:
            return events
        alternates.begin_again(tree, node)
        if root < 0:
            return events
        if not self.learner.quirks & quirks.SPLIT_TAKES_OVER:
            return [event for event in events if not isinstance(event, Split)]
        beside = tree.subtree_states.beside.item(root) - 1
        event = self._drift(tree, beside, TAKES_OVER, row, index)
        alternates.take_over(model, tree, beside)
        revision.grow_again(model, tree)
        return [event] if t == model.block_places[0] else []

    # Reading

    def summary(self, ints: Ints, t: int) -> BlockSummary:
        """Return size and counters; alternate trees count only in the attempts."""
        tree = self.view(ints, t)
        nodes = tree.nodes[alternates.main_tree(tree)]
        leaves, absent = int((nodes.kind == LEAF).sum()), int((nodes.kind == ABSENT).sum())
        return BlockSummary(
            leaves=leaves,
            nodes=len(nodes) - absent,
            depth=int(nodes.depth.max()),
            splits=len(nodes) - leaves - absent,
            attempts=int(tree.block.attempts),
            growth_stopped=self.has_stopped(ints, t),
        )

    def outline(self, model: HasBlocks, t: int, depth: int | None) -> Iterator[Outline]:
        """Yield the nodes, parents first, and with them the alternate trees: each as a node's last child.

        The branch that leads to one holds the error rates of both, and over how many records.
        """
        tree = self.view(model.ints, t)
        for node in outline.of_tree(model.plan, model.schema, model.ints, tree, depth):
            yield from self._beside(model, tree, node, depth)

    def _beside(
        self, model: HasBlocks, tree: TreeView, node: Outline, depth: int | None
    ) -> Iterator[Outline]:
        """Yield a node, and the alternate tree beside it, if it is within the depth."""
        root = tree.subtree_states.alternate.item(node.number)
        if not root or node.is_leaf or (depth is not None and node.depth >= depth):
            yield node
            return
        yield replace(node, children=(*node.children, root))
        error, records = self._error_at(tree, node.number)
        other, others = self._error_at(tree, root)
        rates = f"error {other:.4f} of {others}, {error:.4f} of {records} here"
        for below in outline.of_tree(model.plan, model.schema, model.ints, tree, depth, root):
            child = replace(below, depth=below.depth + 1)
            if below.number == root:
                child = replace(child, parent=node.number, branch=Branch(ALTERNATE, BESIDE, rates))
            yield from self._beside(model, tree, child, depth)
