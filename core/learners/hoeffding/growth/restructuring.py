"""Restructuring (PLASTIC): an inner node gets another test, and its subtree is rearranged below it.

The test is pulled up along each branch, by the rules of Heyden and others (2024): a node that has the test
already gives its children away, a node with another test stands below the new branches instead, and the end
of a branch is split by the test, also where the branch becomes too long. A leaf that stands below the same
tests as before keeps its statistics. New leaves begin with the class masses that the observers of the node
at the end of the branch estimate. New inner nodes have seen nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import numpy as np

from core.events import Event
from core.layout.model import Floats, Ints
from core.layout.tree import CATEGORY, LEAF, MULTIWAY, NO_NODE, NUMERIC, SplitTest
from core.learners.hoeffding.branch_masses import branches_of
from core.learners.hoeffding.decision import Decision, HasState, tree_of
from core.learners.hoeffding.growth import splitting
from core.learners.hoeffding.growth.removal import cut_subtree, nodes_below
from core.tree.children import connect
from core.tree.statistics import weight_after
from core.tree.views import TreeView, tree_view

MOST_PARTS: Final = 20_000
"""A subtree of more parts, one for each node and branch, is replaced by new leaves: it would take seconds."""


@dataclass(slots=True)
class Part:
    """A node of a subtree that is planned, with the nodes below it."""

    masses: Floats
    """Class masses, float64[class]."""
    test: SplitTest | None = None
    """None: a leaf."""
    children: list[Part] = field(default_factory=list)
    number: int = NO_NODE
    """Number of the present node whose records it keeps; NO_NODE: it is new."""
    routed: float = 0.0
    """Weight routed through the node."""
    leaf_words: Ints | None = None
    """Its leaf record, if it keeps one."""

    def whole(self) -> list[Part]:
        """Return the part and all parts below it, parents before their children."""
        parts = [self]
        for part in parts:
            parts += part.children
        return parts


def replace_test(
    model: HasState, t: int, node: int, decision: Decision, row: int, index: int
) -> Event | None:
    """Give inner node number ``node`` the decided test; return the event if the tree answers.

    The subtree is replaced by new leaves where the rearranged one exceeds the caps.
    """
    tree = tree_view(model.plan, model.ints, t)
    branches = _pulled_up(model, tree, t, node, decision)
    if not _fits(model, tree, node, branches):
        branches = []
    _take_records(tree, branches)
    cut_subtree(model, tree, node)
    _count_below(tree, node, branches)
    number = model.block_places.index(t)
    event = splitting.install(model, t, node, decision, row, index)
    if branches:
        _place(model, number, node, branches)
    return event


def _pulled_up(model: HasState, tree: TreeView, t: int, node: int, decision: Decision) -> list[Part]:
    """Return the subtrees of the branches of a test that is pulled up to a node; empty: there are none."""
    test = SplitTest(decision.attribute, decision.test, decision.value)
    length = int(model.spec.learner.max_branch_length)
    subtree = _read(tree, node)
    branches = int(branches_of(model.plan.record, tree_of(model, t), test.attribute, test.kind))
    if length <= 1 or len(subtree.whole()) * branches > MOST_PARTS:
        return []
    pulled = _Puller(model, t, test).pull(subtree, length)
    return [_simplified(part, test, branch) for branch, part in enumerate(pulled)]


def _read(tree: TreeView, number: int) -> Part:
    """Return a node and the nodes below it."""
    top = Part(tree.masses[number].copy(), number=number)
    waiting = [top]
    for part in waiting:
        node = tree.block.node(part.number)
        if node.kind != LEAF:
            part.test = SplitTest(int(node.attribute), int(node.kind), float(node.value))
            below = range(node.child, node.child + node.children)
            part.children = [Part(tree.masses[child].copy(), number=child) for child in below]
            waiting += part.children
    return top


@dataclass(slots=True)
class _Puller:
    """Pulls a test up through parts of a tree."""

    model: HasState
    t: int
    test: SplitTest

    def pull(self, part: Part, length: int) -> list[Part]:
        """Return what each branch of the test holds of a part; length: nodes that a branch may still have."""
        if part.test is None or length <= 1:
            return self.leaves(part)
        if part.test == self.test:
            return self.padded(part, part.children)
        if part.test.attribute == self.test.attribute:
            return self.other_test(part)
        pulled = [self.pull(child, length - 1) for child in part.children]
        return [self.inner(part.test, list(children)) for children in zip(*pulled, strict=True)]

    def leaves(self, part: Part) -> list[Part]:
        """Return new leaves with the masses that the observers of a node estimate."""
        masses, _ = splitting.divided_by(self.model, self.t, part.number, self.test)
        room = len(part.masses)
        return [Part(np.pad(np.maximum(row, 0.0), (0, room - len(row)))) for row in masses]

    def padded(self, part: Part, children: list[Part]) -> list[Part]:
        """Return children, and new leaves for values that are younger than the node's test."""
        return children + self.leaves(part)[len(children) :]

    def other_test(self, part: Part) -> list[Part]:
        """Return the branches of a node that tests the attribute in another way."""
        assert part.test is not None
        if part.test.kind == self.test.kind == NUMERIC:
            return list(part.children)
        leaves = self.leaves(part)
        value = int(part.test.value)
        if self.test.kind == MULTIWAY:  # the branch of the one value is kept
            return [part.children[0] if b == value else leaf for b, leaf in enumerate(leaves)]
        rest = self.inner(part.test, list(part.children))
        chosen = int(self.test.value)
        if part.test.kind == MULTIWAY and chosen < len(part.children):
            rest.children[chosen] = Part(np.zeros_like(part.masses))
            return [part.children[chosen], rest]
        return [leaves[0], rest]

    def inner(self, test: SplitTest, children: list[Part]) -> Part:
        """Return a new inner node; its class masses are those of its children."""
        return Part(np.sum([child.masses for child in children], axis=0), test, children)


def _simplified(top: Part, test: SplitTest, branch: int) -> Part:
    """Return a part below a branch of a test, without tests that decide nothing there."""
    above = Part(top.masses, children=[top])
    for part in reversed(above.whole()):
        part.children = [_reduced(child, test, branch) for child in part.children]
    return above.children[0]


def _reduced(part: Part, test: SplitTest, branch: int) -> Part:
    """Return the part that takes a part's place, whose children are simplified already.

    It is a child where the test above decides the part's test, and a leaf where all leaves are new, and have
    one and the same class.
    """
    if part.test is None:
        return part
    if part.test.attribute == test.attribute:
        side = _side(part.test, test, branch)
        if side is not None and side < len(part.children):
            return part.children[side]
    is_new = part.number == NO_NODE and all(child.number == NO_NODE for child in part.children)
    ends = all(child.test is None for child in part.children)
    return Part(part.masses) if is_new and ends and np.count_nonzero(part.masses) <= 1 else part


def _side(below: SplitTest, test: SplitTest, branch: int) -> int | None:
    """Return the only branch that records take at a test below a branch of a test of the same attribute.

    None: they may take several.
    """
    if test.kind == NUMERIC:
        is_decided = below.value >= test.value if branch == 0 else below.value <= test.value
        return branch if is_decided else None
    value = branch if test.kind == MULTIWAY else int(test.value)
    if test.kind == CATEGORY and branch == 1:
        return 1 if below.kind == CATEGORY and below.value == value else None
    if below.kind == MULTIWAY:
        return value
    return 0 if below.value == value else 1


def _fits(model: HasState, tree: TreeView, node: int, branches: list[Part]) -> bool:
    """Return whether a tree is within its caps if these branches take the place of a node's subtree."""
    gone = nodes_below(tree, node)
    kinds = tree.nodes.kind[gone]
    parts = [part for branch in branches for part in branch.whole()]
    inner = sum(part.test is not None for part in parts)
    leaves = int(tree.block.leaves) - np.count_nonzero(kinds == LEAF) + len(parts) - inner
    splits = int(tree.block.splits) - np.count_nonzero(kinds != LEAF) + inner
    nodes = int(tree.block.nodes) - len(gone) + len(parts)
    return not splitting.exceeds_cap(model, int(leaves), int(splits), nodes)


def _take_records(tree: TreeView, branches: list[Part]) -> None:
    """Copy the records that parts keep; a new inner node has met the records of its children."""
    routed = tree.routed
    for part in reversed([part for branch in branches for part in branch.whole()]):
        part.routed = sum(child.routed for child in part.children)
        if part.number != NO_NODE:
            part.routed = float(routed[part.number])
            part.leaf_words = tree.leaf_ints[tree.block.node(part.number).slot].copy()


def _count_below(tree: TreeView, node: int, children: list[Part]) -> None:
    """Subtract the records that a node's children count, where each record is counted at its leaf alone."""
    if not tree.block.paths:
        record = tree.block.node(node)
        record.routed = max(record.routed - sum(child.routed for child in children), 0.0)


def _place(model: HasState, number: int, node: int, branches: list[Part]) -> None:
    """Write planned parts below a node that has the test; number: of its block."""
    tree = tree_view(model.plan, model.ints, model.block_places[number])
    first = int(tree.block.node(node).child)
    waiting = list(zip(range(first, first + len(branches)), branches, strict=True))
    for place, part in waiting:  # which grows: parents come before their children
        if part.test is not None:
            _divide(model, number, place, part)
        tree = tree_view(model.plan, model.ints, model.block_places[number])
        _restore(tree, place, part)
        _wait_again(model, tree, place)
        first = int(tree.block.node(place).child)
        waiting += list(zip(range(first, first + len(part.children)), part.children, strict=True))


def _divide(model: HasState, number: int, place: int, part: Part) -> None:
    """Give a leaf the test and the children of a part."""
    assert part.test is not None
    t = splitting.make_room(model, model.block_places[number], len(part.children), len(part.children) - 1)
    tree, learner = tree_of(model, t), model.spec.learner
    classes = int(tree.model.classes)
    masses = np.array([child.masses[:classes] for child in part.children])
    connect(model.plan.record, tree, tree.node(place), part.test, masses, True)
    view = tree_view(model.plan, model.ints, t)
    first = int(tree.node(place).child)
    children = np.arange(first, first + len(part.children))
    learner.begin_all(view, children, view.nodes.slot[children])
    leaf = view.block.leaf_of(view.block.node(place))
    leaf.next = weight_after(leaf.observed, learner.revisit_weight)


def _restore(tree: TreeView, place: int, part: Part) -> None:
    """Write the records that a part keeps; a new part has its class masses alone."""
    tree.masses[place] = part.masses
    node = tree.block.node(place)
    met = np.flatnonzero(part.masses)
    node.reach = int(met[-1]) + 1 if len(met) else 0
    node.routed = part.routed
    _count_below(tree, place, part.children)
    if part.leaf_words is not None:
        tree.leaf_ints[node.slot] = part.leaf_words
        tree.block.leaf_of(node).node = place


def _wait_again(model: HasState, tree: TreeView, place: int) -> None:
    """Let a node that was due by the present record wait for another period: its path has changed."""
    node, learner = tree.block.node(place), model.spec.learner
    leaf = tree.block.leaf_of(node)
    tree.block.revision(model.plan.record, leaf).due = 0.0
    if leaf.observed < leaf.next or (node.kind == LEAF and not learner.schedule.periodic):
        return
    period = learner.schedule.first() if node.kind == LEAF else learner.revisit_weight
    leaf.next = weight_after(leaf.observed, period)
    leaf.evaluated = leaf.observed
