"""Layout of boosted trees: header, class weights, an entry for each tree, node records, leaf records.

    Boosting | weight × K | TreeEntry × committee × members | BoostNode × capacity | leaf record × capacity
    TreeEntry = its root, sums of its targets, then a bit for each attribute that the tree sees
    leaf record = LeafRecord | NumberSketch × numeric attribute | TargetSums × value of nominal attributes

A *committee* is the trees that score one class. With two classes there is one committee, for the first class;
with more there is one for each class. Tree m of committee c has the number c·members + m, so that a new class
appends trees. Node and leaf records are two arenas for all trees, each with a chain of free records. An
alternate tree beside an inner node is made of the same records: its root has the node as its parent, and the
depth of the node, whose place it may take.

A ``NumberSketch`` has the first distinct values that a leaf has met as thresholds, ascending, and sums of the
targets between them; values above all thresholds of a full sketch go to its last sums.
"""

from __future__ import annotations

import math
from typing import Any, Final

from core.kernels.jit import kernel
from core.kernels.records import Record, Words, word, words_after
from core.layout.model import ModelHeader
from core.layout.plan import PlanRecord
from core.problems import MOST

NO_LEAF: Final = -1
"""Value of ``BoostNode.leaf`` in an inner node."""
FREED: Final = -2
"""Value of ``BoostNode.left`` in a free node record, whose parent is the next free one."""
MASK_BITS: Final = 32
"""Attributes for each word of a tree's entry."""


class BoostParameters(Record):
    """The parameters of the learner."""

    learning_rate: float = word("share of a tree's prediction that is added to the score")
    grace_period: float = word("weight that a leaf learns between two attempts to split it")
    delta: float = word("probability that a split is not the best one")
    tau: float = word("bound below which the best split is made with any ratio")
    share: float = word("share of the attributes that a tree sees")
    moa: float = word("1: MOA's rules")
    watches: float = word("1: inner nodes have a detector, and alternate trees")
    drift_tolerance: float = word("deviation of an error from the mean error that is ignored")
    drift_threshold: float = word("sum of deviations above its minimum that is an alarm")
    fading: float = word("factor of the older losses in a faded loss")
    switch_period: float = word("weight between two comparisons of an alternate tree with its node")
    drop_period: float = word("weight from which an alternate tree that is not better is dropped")


class BoostPlaces(Record):
    """The sizes and places of the layout, in the plan (``BoostLayout.offsets``)."""

    members: int = word("trees of a committee")
    bins: int = word("thresholds of a sketch")
    entry_words: int = word("words of a tree's entry")
    weights_at: int = word("first word of the class weights in the block")
    entries_at: int = word("first word of the entries in the block")
    nodes_at: int = word("first word of the node records in the block")
    leaf_words: int = word("words of a leaf record")
    values_at: int = word("first word of the sums of nominal values in a leaf record")


class TargetSums(Record):
    """Weight, sum and sum of squares of targets."""

    weight: float = word("weight of the records", low=0.0)
    total: float = word("sum of their targets, each times its weight")
    squares: float = word("sum of the squares of the targets, each times its weight")

    def add(self, weight: float, target: float) -> None:
        """Take in a target."""
        self.weight += weight
        self.total += weight * target
        self.squares += weight * target * target


SUMS: Final = TargetSums.SIZE


class NumberSketch(Record):
    """The targets of a leaf by the value of a numeric attribute."""

    used: int = word("thresholds in use", low=0)
    thresholds: Any = words_after(float, "thresholds, ascending")

    def sums(self, bins: int, number: int) -> TargetSums:
        """Return the sums up to a threshold and above the one before, or, with ``bins``, above all."""
        start = self.start + SKETCH_FIELDS + bins + number * SUMS
        return TargetSums(self.ints, self.floats, start)


SKETCH_FIELDS: Final = NumberSketch.SIZE


def sketch_words(bins: int) -> int:
    """Return the words of a sketch with this number of thresholds."""
    return SKETCH_FIELDS + bins + (bins + 1) * SUMS


class TreeEntry(Record):
    """A tree."""

    root: int = word("number of its root, -1: not planted")
    weight: float = word("weight of the records that it has learned")
    total: float = word("sum of their targets, each times its weight")
    squares: float = word("sum of the squares of the targets, each times its weight")
    mask: Any = words_after(int, "bits of the attributes that the tree sees")

    def sees(self, attribute: int) -> bool:
        """Return whether the tree sees an attribute, by its column."""
        return (self.mask[attribute // MASK_BITS] >> (attribute % MASK_BITS)) & 1 != 0


ENTRY_FIELDS: Final = TreeEntry.SIZE


class LeafRecord(Record):
    """The first words of a leaf record."""

    following: int = word("the next free leaf record, -1: none; 0 in a record that belongs to a leaf")


LEAF_FIELDS: Final = LeafRecord.SIZE


class BoostNode(Record):
    """A node record; a leaf has a leaf record.

    An error is the absolute difference between a target and a prediction, divided by three standard
    deviations of the targets of the tree (Ikonomovska, Gama and Džeroski 2011). A loss is the square of the
    difference, without the division.
    """

    parent: int = word("number of the parent, or of the node beside it; -1: the root of a tree")
    tree: int = word("number of the tree")
    depth: int = word("tests between the root and the node")
    left: int = word("child that fails a nominal test, or has values up to the cut; -1: a leaf, -2: free")
    right: int = word("the other child, -1: a leaf")
    leaf: int = word("number of the leaf record, -1: an inner node")
    order: int = word("attribute of the test, by its number among the numeric or the nominal ones")
    is_category: int = word("1: the test is for one value of a nominal attribute", low=0, high=1)
    cut: float = word("threshold, or code of the value")
    weight: float = word("weight of the labelled records that came to the node", low=0.0, high=math.inf)
    total: float = word("sum of the targets that the leaf has learned", low=-math.inf, high=math.inf)
    tried: float = word("weight at the last attempt to split the leaf")
    errors: float = word("sum of errors, each times its weight: of the leaf, then of the tree")
    watched: int = word("1: the detector of the node is on", low=0, high=1)
    beside: int = word("1: the node is in an alternate tree", low=0, high=1)
    rise: float = word("sum of the deviations of errors from their mean, less the tolerance")
    lowest: float = word("smallest of these sums")
    alternate: int = word("root of the alternate tree beside the node, -1: none")
    own_loss: float = word("faded loss of the tree since the alternate tree began")
    other_loss: float = word("faded loss of the alternate tree")
    compared: float = word("weight since the alternate tree began")
    next_comparison: float = word("the same weight at which both are compared again")

    @property
    def value(self) -> float:
        """The prediction of a leaf: the mean target, 0 in a leaf that has seen nothing."""
        return self.total / self.weight if self.weight > 0.0 else 0.0


NODE_WORDS: Final = BoostNode.SIZE


class Boosting(Record):
    """The header of the boosted trees.

    ``reckoned``, ``limit`` and ``learned_leaf`` follow from the classes and values that the model has
    learned, never from the schema, so that the cut of runs does not matter. All three are 0, as in every
    snapshot, if they are not computed yet.
    """

    words: int = word("words of the block")
    classes: int = word("classes that there is room for")
    node_capacity: int = word("nodes that there is room for")
    leaf_capacity: int = word("leaf records that there is room for")
    nodes: int = word("node records that were ever used", low=0, high="node_capacity")
    leaves: int = word("leaf records that were ever used", low=0, high="leaf_capacity")
    live_nodes: int = word("nodes of all trees, alternate trees included", low=0, high="nodes")
    live_leaves: int = word("leaves of all trees, alternate trees included", low=0, high="leaves")
    free_node: int = word("first free node record, -1: none")
    free_leaf: int = word("first free leaf record, -1: none")
    alternates: int = word("alternate trees", low=0, high="nodes")
    nodes_beside: int = word("nodes of alternate trees", low=0, high="live_nodes")
    trees: int = word("trees that are planted", low=0, high=MOST)
    splits: int = word("splits made", low=0, high=MOST)
    attempts: int = word("attempts to split a leaf", low=0, high=MOST)
    stopped: int = word("1: a split or a tree was left out for lack of bytes", low=0, high=1)
    unreported: int = word("1: there is no event of that yet; 0 between two records", low=0, high=0)
    roots_left: int = word("roots that the record may still begin; 0 between two records", low=0, high=0)
    splits_left: int = word("splits that the record may still make; 0 between two records", low=0, high=0)
    drawn: int = word("attributes that the trees' subsets were drawn from", low=0, high=MOST)
    reckoned: int = word("classes and values that the model had learned", low=0, high=MOST)
    limit: int = word("words that nodes and leaves may take", low=0, high=MOST)
    learned_leaf: int = word("words of a leaf record with the values that the model had learned")

    @property
    def model(self) -> ModelHeader:
        """The header of the model that holds the trees."""
        return ModelHeader(self.ints, self.floats, 0)

    def class_weights(self, plan: PlanRecord) -> Any:
        """Return the weight of the labels of each class, float64[class]."""
        places = BoostPlaces(plan.ints, plan.floats, plan.arrays)
        return Words(self.ints, self.floats, self.start + places.weights_at).cells

    def entry(self, plan: PlanRecord, number: int) -> TreeEntry:
        places = BoostPlaces(plan.ints, plan.floats, plan.arrays)
        start = self.start + places.entries_at + number * places.entry_words
        return TreeEntry(self.ints, self.floats, start)

    def node(self, plan: PlanRecord, number: int) -> BoostNode:
        places = BoostPlaces(plan.ints, plan.floats, plan.arrays)
        return BoostNode(self.ints, self.floats, self.start + places.nodes_at + number * NODE_WORDS)

    def leaf(self, plan: PlanRecord, number: int) -> Words:
        """Return a leaf record by its number."""
        places = BoostPlaces(plan.ints, plan.floats, plan.arrays)
        start = self.start + places.nodes_at + self.node_capacity * NODE_WORDS + number * places.leaf_words
        return Words(self.ints, self.floats, start)


HEADER: Final = Boosting.SIZE


@kernel
def places_of(plan: PlanRecord) -> BoostPlaces:
    return BoostPlaces(plan.ints, plan.floats, plan.arrays)


@kernel
def parameters_of(plan: PlanRecord) -> BoostParameters:
    return BoostParameters(plan.ints, plan.floats, plan.learner_at)


@kernel
def sketch_of(plan: PlanRecord, leaf: Words, number: int) -> NumberSketch:
    """Return the sketch of a numeric attribute in a leaf record, by its number among the numeric ones."""
    bins = places_of(plan).bins
    start = leaf.start + LEAF_FIELDS + number * (SKETCH_FIELDS + bins + (bins + 1) * SUMS)
    return NumberSketch(leaf.ints, leaf.floats, start)


@kernel
def value_sums(plan: PlanRecord, leaf: Words, position: int) -> TargetSums:
    """Return the sums of a nominal value in a leaf record, by its position on the value axis."""
    return TargetSums(leaf.ints, leaf.floats, leaf.start + places_of(plan).values_at + position * SUMS)


def committees(classes: int) -> int:
    """Return the number of committees for this number of classes."""
    return classes if classes > 2 else 1


committees_of = kernel(committees)
"""The same in compiled code. From Python it would be compiled at its first call."""


@kernel
def fitting(boosting: Boosting, planted: int, splits: int, alternates: int) -> tuple[int, int]:
    """Return how many roots, of trees and of alternate trees, and how many splits fit into the block's bytes.

    The trees come first, and the alternate trees last: few of those that may begin do.
    """
    free_nodes = boosting.nodes - boosting.live_nodes
    free_leaves = boosting.leaves - boosting.live_leaves
    leaf_words = boosting.learned_leaf
    spare = boosting.limit - boosting.nodes * NODE_WORDS - boosting.leaves * leaf_words
    nodes, leaves = 0, 0
    for most, of_nodes in ((planted, 1), (splits, 2), (alternates, 1)):
        while most > 0:
            new_nodes = max(nodes + of_nodes * most - free_nodes, 0)
            new_leaves = max(leaves + most - free_leaves, 0)
            if new_nodes * NODE_WORDS + new_leaves * leaf_words <= spare:
                break
            most -= 1
        nodes += of_nodes * most
        leaves += most
    return 2 * leaves - nodes, nodes - leaves


@kernel
def learned(plan: PlanRecord, boosting: Boosting) -> int:
    """Return how many classes and values of nominal attributes the model has learned."""
    model = boosting.model
    count = model.classes
    for j in range(plan.nominal):
        count += model.values_seen(plan)[j]
    return count
