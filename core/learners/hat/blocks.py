"""Blocks of adaptive trees: alternate trees start, take places, are removed and listed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import ClassVar

import numpy as np

from core.drift import adwin
from core.drift.base import Detector
from core.events import Action, Drift, Event, Split
from core.learners.hat import due as what_is_due
from core.learners.hoeffding.blocks import TreeLayout
from core.learners.hoeffding.decision import HasState
from core.learners.hoeffding.growth import alternates, revision, splitting
from core.learners.protocol import BlockSummary, HasBlocks, Room
from core.tree import layout as at
from core.tree import outline, quirks
from core.tree.conditions import ALTERNATE, BESIDE, Branch
from core.tree.layout import Floats, Ints
from core.tree.outline import Outline
from core.tree.views import TreeView, tree_view


class HatLayout(TreeLayout):
    """The trees of ``hat`` for records of certain dimensions; room: (nodes, leaf records), of all trees."""

    counts_weight: ClassVar[bool] = False  # a label may count several times

    def plant(self, ints: Ints, t: int, room: Room) -> None:
        """Write a tree of one leaf; its nodes count the records that come from the beginning."""
        super().plant(ints, t, room)
        ints[t + at.TREE_PATHS] = 1

    def prepare(self, ints: Ints, t: int) -> Floats:
        """Return the weight routed through each node, float64[node], which the nodes have counted."""
        return self.view(ints, t).routed[: int(ints[t + at.TREE_NODES])]

    # Growing

    def grow(self, model: HasState, reason: int, t: int, place: int, row: int, index: int) -> list[Event]:
        """Apply the alarms of detectors on a record's paths, or attempt the splits that are due."""
        block = model.block_places.index(t)
        if reason == at.GROW_FIRST:
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
            due = tree.subtrees[: tree.header.item(at.TREE_NODES), at.SUBTREE_DUE]
            marked = np.flatnonzero(due)
            if not len(marked):
                tree.subtrees[0, at.SUBTREE_DUE] = what_is_due.JUDGED
                return events
            node = marked.item(0)
            what, due[node] = due.item(node), 0
            is_told = t == model.block_places[0] and alternates.alternate_root(tree, node) < 0
            event = self._drift(tree, node, what, row, index)
            if what == what_is_due.STARTS:
                if not alternates.start(model, t, node):
                    event = replace(event, action="none")
            elif what == what_is_due.TAKES_OVER:
                alternates.take_over(model, tree, node)
            else:
                alternates.drop(model, tree, node)
            if what != what_is_due.STARTS:
                revision.grow_again(model, tree)
            events += [event] if is_told else []

    def _drift(self, tree: TreeView, node: int, what: int, row: int, index: int) -> Drift:
        """Return the event of a change beside a node; its error rate is the rate in the detector's window."""
        action: Action = "alternate tree dropped"
        if what == what_is_due.STARTS:
            action = "alternate tree started"
        elif what == what_is_due.TAKES_OVER:
            action = "alternate tree took over"
        return Drift(
            row=row,
            model=index,
            level={what_is_due.STARTS: "warning", what_is_due.TAKES_OVER: "drift"}.get(what, "in-control"),  # type: ignore[arg-type]
            detector=self._detector.name,
            error_rate=self._error_at(tree, node)[0],
            action=action,
            node=node,
            depth=tree.node_ints.item(node, at.NODE_DEPTH),
        )

    @property
    def _detector(self) -> Detector:
        detector: Detector = self.learner.subtree_detector
        return detector

    def _error_at(self, tree: TreeView, node: int) -> tuple[float, int]:
        """Return the error rate in the window of a node's detector, and the records in it."""
        state = tree.subtrees[node, at.SUBTREE_DETECTOR :].view(np.float64)
        return self._detector.error_rate(state), int(adwin.AdwinState.over(state).width)

    def _next_due(self, model: HasState, t: int) -> int | None:
        """Return the leaf whose attempt comes next, and clear its mark; None: all attempts are made."""
        tree = tree_view(model.plan, model.ints, t)
        due = tree.subtrees[: tree.header.item(at.TREE_NODES), at.SUBTREE_DUE]
        marked = np.flatnonzero(due)
        if not len(marked):
            return None
        node = int(marked[np.argmin(due[marked])])
        due[node] = 0
        return node

    def _attempt(self, model: HasState, block: int, node: int, row: int, index: int) -> list[Event]:
        """Attempt to split leaf number ``node``; return the events of the tree that answers."""
        t = model.block_places[block]
        tree = tree_view(model.plan, model.ints, t)
        root = alternates.alternate_root(tree, node)
        event = splitting.attempt(model, t, at.node_at(model.ints, t, node), row, index)
        t = model.block_places[block]
        tree = tree_view(model.plan, model.ints, t)
        slot = tree.node_ints.item(node, at.NODE_SLOT)
        has_split = tree.node_ints[node, at.NODE_KIND] != at.LEAF
        if not has_split and tree.leaf_floats[slot, at.LEAF_OBSERVED] > 0.0:
            return [] if event is None else [event]
        alternates.begin_anew(tree, node)
        if root < 0:
            return [] if event is None else [event]
        if not self.learner.quirks & quirks.SPLIT_TAKES_OVER:
            return [] if isinstance(event, Split) or event is None else [event]
        beside = tree.subtrees.item(root, at.SUBTREE_BESIDE) - 1
        told = self._drift(tree, beside, what_is_due.TAKES_OVER, row, index)
        alternates.take_over(model, tree, beside)
        revision.grow_again(model, tree)
        return [told] if t == model.block_places[0] else []

    # Reading

    def summary(self, ints: Ints, t: int) -> BlockSummary:
        """Return size and counters; alternate trees count only in the attempts."""
        tree = self.view(ints, t)
        nodes = tree.node_ints[alternates.main_tree(tree)]
        kinds = nodes[:, at.NODE_KIND]
        leaves, absent = int((kinds == at.LEAF).sum()), int((kinds == at.ABSENT).sum())
        return BlockSummary(
            leaves=leaves,
            nodes=len(nodes) - absent,
            depth=int(nodes[:, at.NODE_DEPTH].max()),
            splits=len(nodes) - leaves - absent,
            attempts=int(ints[t + at.TREE_ATTEMPTS]),
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
        root = tree.subtrees.item(node.number, at.SUBTREE_ALTERNATE)
        if not root or node.is_leaf or (depth is not None and node.depth >= depth):
            yield node
            return
        yield replace(node, children=(*node.children, root))
        error, records = self._error_at(tree, node.number)
        other, others = self._error_at(tree, root)
        said = f"error {other:.4f} of {others}, {error:.4f} of {records} here"
        for each in outline.of_tree(model.plan, model.schema, model.ints, tree, depth, root):
            below = each
            if each.number == root:
                below = replace(each, parent=node.number, branch=Branch(ALTERNATE, BESIDE, said))
            yield from self._beside(model, tree, replace(below, depth=below.depth + 1), depth)
