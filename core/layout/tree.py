"""Layout of a tree block: everything in it is found from its first word.

    tree header | node record × node capacity | leaf record × slot capacity
    node record = Node, then the class masses [class], and in a tree that adapts a Subtree
    leaf record = Leaf, then ``seen`` [class], the observers' statistics, the schedule's state, the leaf
                  model's, and for a learner that revises splits a Revision

A node record of a two-class tree is 1.5 cache lines.
"""

from __future__ import annotations

import math
import operator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, NamedTuple

from core.kernels.records import Record, Words, name_tuple, offset, word, words_after
from core.layout.model import Ints, ModelHeader
from core.layout.plan import PlanRecord

# Kinds of nodes
LEAF: Final = 0
NUMERIC: Final = 1
"""x <= value: child 0."""
CATEGORY: Final = 2
"""x == value: child 0."""
MULTIWAY: Final = 3
"""Child number x."""
ABSENT: Final = 4
"""A branch that grows when its value is first learned (``compat="moa"``)."""

NO_NODE: Final = -1
"""Number of no node: the parent of a root, the root of an empty tree, the end of a chain of nodes."""
NO_SLOT: Final = -1
"""Number of no leaf record: of an inner node and of an inactive leaf, and the end of the free records."""

LACKS_ROOM: Final = 1
"""Value of ``Tree.stopped``: max_bytes, or without reviews any limit."""
LACKS_LEAVES: Final = 2
"""Value of ``Tree.stopped``: max_leaves, in forests with reviews."""


class Node(Record):
    """A node record."""

    kind: int = word("LEAF, a kind of test, or ABSENT", low=LEAF, high=ABSENT)
    attribute: int = word("column that the test reads")
    value: float = word("threshold or category; equality goes to child 0. Leaves: infinity")
    child: int = word("first child; children are contiguous. Leaves and absent branches: the node itself")
    routed: float = word("weight routed to the node, labelled or not; see Tree.paths")
    children: int = word("number of children")
    parent: int = word("number of the parent, NO_NODE: root")
    slot: int = word("leaf record, NO_SLOT: none; a leaf without one is inactive")
    depth: int = word("tests between the root and the node")
    reach: int = word("highest class that ever reached the node, plus one (MOA's range)")
    masses: Any = words_after(float, "class masses [class]")


NODE_FIELDS: Final = Node.SIZE


class SplitTest(NamedTuple):
    """A test that a node has or may get."""

    attribute: int
    kind: int
    """NUMERIC, CATEGORY or MULTIWAY."""
    value: float
    """Threshold or category."""


name_tuple(SplitTest, "int64", "int64", "float64")


class Subtree(Record):
    """The state of the subtree at a node of a tree that adapts (core/learners/hat/kernels.py)."""

    alternate: int = word("number of the root of the node's alternate tree, 0: none")
    beside: int = word("root of an alternate tree: number of the node that it may replace, plus one")
    draws: int = word(
        "leaf: state of MOA's generator XOR the state of a new one; 0: a new one", low=0, high=(1 << 48) - 1
    )
    due: int = word(
        "while a record is learned: the due reaction (core/learners/hat/kernels.py), else 0", low=0, high=0
    )
    next: int = word("while a record is learned: root of the tree that comes next, else 0", low=0, high=0)
    detector: Any = words_after(float, "state of the detector that watches the subtree")


SUBTREE_FIELDS: Final = Subtree.SIZE


class Leaf(Record):
    """A leaf record."""

    node: int = word("number of its node; in a free record the next free record")
    observed: float = word("labelled weight since the leaf was made", low=0.0)
    evaluated: float = word("observed weight at the last attempt")
    next: float = word("observed weight at which the next attempt is due")
    attempts: int = word("attempts with more than one class, in which tests were ranked", low=0, high=1 << 53)
    majority_right: float = word("weight of the hits of the majority class")
    bayes_right: float = word("weight of the hits of naive Bayes")
    left_out: float = word("observed weight that is not in the numeric statistics")
    seen: Any = words_after(float, "labelled weight [class]")


LEAF_FIELDS: Final = Leaf.SIZE


class Revision(Record):
    """The end of a leaf record of a learner that revises splits."""

    evaluations: float = word("divisor of the sums")
    own: float = word("sum of the merits of the node's test")
    null: float = word("sum of the merits of not splitting (MOA)")
    forgets: float = word("1.0: the node ignores the tests above it (MOA)")
    due: float = word("1.0: an attempt is due by the node's schedule; only while a record is learned")
    merits: Any = words_after(float, "sums of merits [attribute]")


class Tree(Record):
    """The header of a tree block."""

    words: int = word("words of the block")
    nodes: int = word("nodes in use", low=1, high="node_capacity")
    node_capacity: int = word("nodes that there is room for")
    slots: int = word("leaf records ever used (free records are chained)", low=1, high="slot_capacity")
    slot_capacity: int = word("leaf records that there is room for")
    free: int = word("first free leaf record, NO_SLOT: none; chained through Leaf.node, last freed first")
    leaves: int = word("nodes that are leaves")
    depth: int = word("largest depth of a node")
    splits: int = word("nodes that are tests")
    attempts: int = word("split attempts in which tests were ranked", low=0, high=1 << 53)
    labels: int = word("labels this tree has learned", low=0, high=1 << 53)
    stopped: int = word(
        "0: grows; LACKS_ROOM, LACKS_LEAVES: no attempts until a revision or a review makes room",
        low=0,
        high=LACKS_LEAVES,
    )
    node_stride: int = word("words of a node record")
    leaf_stride: int = word("words of a leaf record")
    leaves_at: int = word("first leaf record, relative to the block")
    nominal_at: int = word("nominal statistics, relative to a leaf record")
    paths: int = word("1: every node counts the weight routed through it; 0: only leaves do", low=0, high=1)

    @property
    def model(self) -> ModelHeader:
        """The header of the model that holds the tree."""
        return ModelHeader(self.ints, self.floats, 0)

    @property
    def end_of_leaves(self) -> int:
        """First word after the leaf records."""
        return self.start + self.leaves_at + self.slot_capacity * self.leaf_stride

    @property
    def root(self) -> Node:
        return Node(self.ints, self.floats, self.start + TREE_HEADER)

    def node(self, number: int) -> Node:
        """Return a node by its number."""
        start = self.start + TREE_HEADER + number * self.node_stride
        return Node(self.ints, self.floats, start)

    def node_of(self, place: int) -> Node:
        """Return the node whose record begins at word ``place`` of the model."""
        return Node(self.ints, self.floats, place)

    def number(self, node: Node) -> int:
        """Return the number of a node."""
        return (node.start - self.start - TREE_HEADER) // self.node_stride

    def leaf(self, slot: int) -> Leaf:
        """Return a leaf record by its number."""
        start = self.start + self.leaves_at + slot * self.leaf_stride
        return Leaf(self.ints, self.floats, start)

    def leaf_of(self, node: Node) -> Leaf:
        """Return the leaf record of a node, which must have one."""
        start = self.start + self.leaves_at + node.slot * self.leaf_stride
        return Leaf(self.ints, self.floats, start)

    def subtree(self, plan: PlanRecord, node: Node) -> Subtree:
        """Return the state of the subtree at a node of a tree that adapts."""
        return Subtree(self.ints, self.floats, node.start + plan.subtrees)

    def numeric_statistics(self, plan: PlanRecord, leaf: Leaf) -> Words:
        """Return the statistics of a leaf's numeric observer."""
        return Words(self.ints, self.floats, leaf.start + LEAF_FIELDS + plan.classes)

    def nominal_statistics(self, leaf: Leaf) -> Words:
        """Return the statistics of a leaf's nominal observer."""
        return Words(self.ints, self.floats, leaf.start + self.nominal_at)

    def revision(self, plan: PlanRecord, leaf: Leaf) -> Revision:
        """Return the revision section of a leaf record."""
        return Revision(self.ints, self.floats, leaf.start + plan.revision)


TREE_HEADER: Final = Tree.SIZE


@dataclass(frozen=True)
class TreeShape:
    """Sizes of a tree block.

    ``numeric`` and ``nominal`` are the shapes of the two observers' statistics in one leaf, for example
    (class, 5, attribute) and (class, value). ``schedule`` and ``leaf_model`` are the shapes of the sections
    of their states. ``revision`` is the length of the revision section, 0 if splits are final. ``subtree`` is
    the length of the state of the subtree at a node, 0 unless the tree adapts.
    """

    classes: int
    numeric: tuple[int, ...]
    nominal: tuple[int, ...]
    nodes: int
    slots: int
    schedule: tuple[tuple[int, ...], ...] = ()
    revision: int = 0
    leaf_model: tuple[tuple[int, ...], ...] = ()
    subtree: int = 0

    @cached_property
    def subtree_at(self) -> int:
        """First word of the state of the subtree in a node record."""
        return NODE_FIELDS + self.classes

    @cached_property
    def node_stride(self) -> int:
        return self.subtree_at + self.subtree

    @cached_property
    def numeric_at(self) -> int:
        """First word of the numeric statistics in a leaf record."""
        return LEAF_FIELDS + self.classes

    @cached_property
    def nominal_at(self) -> int:
        """First word of the nominal statistics in a leaf record."""
        return self.numeric_at + math.prod(self.numeric)

    @cached_property
    def schedule_at(self) -> int:
        """First word of the schedule's state in a leaf record."""
        return self.nominal_at + math.prod(self.nominal)

    @cached_property
    def leaf_model_at(self) -> int:
        """First word of the leaf model's state in a leaf record."""
        return self.schedule_at + sum(map(math.prod, self.schedule))

    @cached_property
    def revision_at(self) -> int:
        """First word of the revision section in a leaf record."""
        return self.leaf_model_at + sum(map(math.prod, self.leaf_model))

    @cached_property
    def leaf_stride(self) -> int:
        return self.revision_at + self.revision

    @cached_property
    def leaves_at(self) -> int:
        """First word of the leaf records in the block."""
        return TREE_HEADER + self.nodes * self.node_stride

    @cached_property
    def words(self) -> int:
        return self.leaves_at + self.slots * self.leaf_stride

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """The words of a block's header that are sizes, in the order of _SIZE_WORDS."""
        return (
            self.words,
            self.nodes,
            self.slots,
            self.node_stride,
            self.leaf_stride,
            self.leaves_at,
            self.nominal_at,
        )


def write_tree_header(header: Ints, shape: TreeShape) -> None:
    """Write the sizes of a block into its header."""
    for position, size in zip(_SIZE_WORDS, shape.sizes, strict=True):
        header[position] = size


def has_sizes(header: list[int], shape: TreeShape) -> bool:
    """Return whether the words of a block's header have the sizes of a shape."""
    return _size_words(header) == shape.sizes


_SIZE_WORDS: Final = tuple(
    offset(Tree, name)
    for name in (
        "words",
        "node_capacity",
        "slot_capacity",
        "node_stride",
        "leaf_stride",
        "leaves_at",
        "nominal_at",
    )
)
_size_words = operator.itemgetter(*_SIZE_WORDS)
