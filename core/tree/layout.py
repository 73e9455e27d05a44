"""Where everything lies: the only place that knows offsets.

All state of a model is one buffer of 8-byte words, seen as ``ints`` (int64) and ``floats`` (float64):

    model header | detector | query | budget | evaluation | values seen | shared by leaves
    | main tree | background tree

A *tree block* is self-contained; everything in it is found from its first word ``t``:

    tree header | node record × node capacity | leaf record × slot capacity
    node record = NODE_FIELDS words, then the class masses ``cls`` [class]
    leaf record = LEAF_FIELDS words, then ``seen`` [class], the observers' statistics, the schedule's
                  state, and for a learner that revises splits the revision section

so that a swap of main and background tree is an exchange of two header words. What models of one spec and
schema share (counts, kinds, parameters, positions of attributes) lies in a *plan*, a buffer of its own that
is no state: kernels get it beside the model.

Counts and codes are int64 and weights float64 because both then share one alignment, one copy and one
address; a node record of a two-class tree is 1.5 cache lines.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

Ints: TypeAlias = npt.NDArray[np.int64]
Floats: TypeAlias = npt.NDArray[np.float64]

WORD: Final = 8

# Model header
MODEL_WORDS: Final = 0  # words of the buffer in use
MODEL_MAIN: Final = 1  # first word of the tree that answers
MODEL_BACKGROUND: Final = 2  # first word of the tree that trains for its turn; 0: there is none
MODEL_RECORDS: Final = 3  # records answered: t of the papers
MODEL_LABELS: Final = 4  # labels learned: the model's version
MODEL_REQUESTS: Final = 5  # labels asked for
MODEL_REPLIES: Final = 6  # labels learned that had been asked for (and had not expired)
MODEL_CLASSES: Final = 7  # classes declared, or the largest class code learned plus one
MODEL_LEVEL: Final = 8  # the drift detector's level
MODEL_REBUILDS: Final = 9  # trees replaced after a drift
MODEL_BACKGROUND_STALE: Final = 10  # the background tree begins anew at the next warning
MODEL_DECLINED: Final = 11  # requests that nobody will answer
MODEL_EXPIRED: Final = 12  # requests not answered in time
MODEL_RESERVED: Final = 13  # requests made for the evaluation's sake, past the gate of the budget
MODEL_REFUSED: Final = 14  # records that the strategy was not asked about: the budget was closed
MODEL_HEADER: Final = 16

# Evaluation section: counters, then six rows [class], then the window as packed codes
EVALUATION_COUNT: Final = 0  # predictions judged
EVALUATION_NEXT: Final = 1  # window position that is written next
EVALUATION_DRAWN: Final = 2  # judged predictions of records that were drawn at random,
EVALUATION_DRAWN_HIT: Final = 3  # and those of them that were right
# Where the strategy knows how likely it asks (float64; core/asking.py):
EVALUATION_STANDING: Final = 4  # records that the judged predictions of drawn records stand for,
EVALUATION_STANDING_HIT: Final = 5  # and those of them that the right ones do
EVALUATION_REACHED: Final = 6  # records that the strategy was asked about, those it stands in for included,
EVALUATION_SPREAD: Final = 7  # and the sum of their squares divided by their chances
EVALUATION_SHUT: Final = 8  # records that found the budget closed, and that later ones are to stand for
EVALUATION_CHOSEN: Final = 9  # requests with a known chance (int64)
EVALUATION_FIELDS: Final = 10
EVALUATION_ACTUAL: Final = 0  # rows, cumulative: labels per class,
EVALUATION_PREDICTED: Final = 1  # predictions per class,
EVALUATION_HIT: Final = 2  # predictions that were right, per class;
EVALUATION_WINDOW: Final = 3  # the same three over the window
EVALUATION_ROWS: Final = 6

# Tree header
TREE_WORDS: Final = 0
TREE_NODES: Final = 1  # nodes in use
TREE_NODE_CAPACITY: Final = 2
TREE_SLOTS: Final = 3  # leaf records ever used (the free ones among them are chained)
TREE_SLOT_CAPACITY: Final = 4
TREE_FREE: Final = 5  # first free leaf record, -1: none; the chain goes through LEAF_NODE, last freed first
TREE_LEAVES: Final = 6
TREE_DEPTH: Final = 7
TREE_SPLITS: Final = 8
TREE_ATTEMPTS: Final = 9
TREE_LABELS: Final = 10  # labels this tree has learned
TREE_STOPPED: Final = 11  # the leaf cap was reached: no more attempts
TREE_NODE_STRIDE: Final = 12
TREE_LEAF_STRIDE: Final = 13
TREE_LEAVES_AT: Final = 14  # leaf records, relative to the block
TREE_NOMINAL_AT: Final = 15  # nominal statistics, relative to a leaf record
TREE_PATHS: Final = 16  # 1: every node counts what is routed through it; 0: leaves alone
TREE_HEADER: Final = 17

# Node record
NODE_KIND: Final = 0
NODE_ATTRIBUTE: Final = 1
NODE_VALUE: Final = 2  # threshold or category (float64); equality goes to child 0. Leaves: infinity
NODE_CHILD: Final = 3  # first child; children are contiguous. Leaves and absent branches: the node itself
NODE_ROUTED: Final = 4  # weight routed to it (float64), labelled or not; see TREE_PATHS
NODE_CHILDREN: Final = 5
NODE_PARENT: Final = 6  # -1: root
NODE_SLOT: Final = 7  # leaf record, -1: none
NODE_DEPTH: Final = 8
NODE_REACH: Final = 9  # highest class its distribution ever touched, plus one (MOA's range)
NODE_FIELDS: Final = 10

# Kinds of nodes
LEAF: Final = 0
NUMERIC: Final = 1  # x <= value
CATEGORY: Final = 2  # x == value
MULTIWAY: Final = 3  # child number x
ABSENT: Final = 4  # a branch that grows when its value is first learned (compat="moa")

# Leaf record
LEAF_NODE: Final = 0  # its node; in a free record the next free one
LEAF_OBSERVED: Final = 1  # labelled weight since the leaf was made (float64)
LEAF_EVALUATED: Final = 2  # weight at the last attempt (float64)
LEAF_NEXT: Final = 3  # observed weight at which the next attempt is due (float64)
LEAF_ATTEMPTS: Final = 4
LEAF_MAJORITY_RIGHT: Final = 5  # weight that the majority class got right (float64)
LEAF_BAYES_RIGHT: Final = 6  # weight that naive Bayes got right (float64)
LEAF_LEFT_OUT: Final = 7  # observed weight that is not in the numeric statistics (float64)
LEAF_FIELDS: Final = 8

# Revision section, at the end of a leaf record of a learner that revises splits; then the sums of merits
# [attribute] (float64)
REVISION_EVALUATIONS: Final = 0  # what the sums are divided by (float64)
REVISION_OWN: Final = 1  # sum of the merits of the node's own test (float64)
REVISION_NULL: Final = 2  # sum of the merits of not splitting (float64, MOA)
REVISION_FORGETS: Final = 3  # the node knows nothing of the tests above it (1.0, MOA)
REVISION_DUE: Final = 4  # while a record is at hand: the node's schedule asks for an attempt (1.0)
REVISION_FIELDS: Final = 5

# Plan
PLAN_ATTRIBUTES: Final = 0
PLAN_NUMERIC: Final = 1  # numeric attributes
PLAN_NOMINAL: Final = 2  # nominal attributes
PLAN_VALUES: Final = 3  # room for values of all nominal attributes
PLAN_CLASSES: Final = 4
PLAN_CONTIGUOUS: Final = 5  # the numeric attributes are the first columns
PLAN_OPEN_VALUES: Final = 6  # some attribute takes in new values
PLAN_MOA: Final = 7  # compat="moa" or "imac": MOA's quirks
PLAN_NUMERIC_TABLE: Final = 8  # at: column of each numeric attribute
PLAN_NOMINAL_TABLE: Final = 9  # at: NOMINAL_FIELDS words for each nominal attribute
PLAN_DETECTOR: Final = 10  # in the model: sections
PLAN_QUERY: Final = 11
PLAN_BUDGET: Final = 12
PLAN_EVALUATION: Final = 13
PLAN_VALUES_SEEN: Final = 14
PLAN_TREES: Final = 15  # first word behind the sections
PLAN_WINDOW: Final = 16  # records of the evaluation window
PLAN_CODE_BITS: Final = 17  # bits of a class code in it
PLAN_EVERY: Final = 18  # judged predictions between two evaluation events
PLAN_QUERY_KEY: Final = 19  # the random key of query decisions (bits of a uint64)
PLAN_NUMERIC_OBSERVER: Final = 20  # kinds, each followed by where its parameters lie in the plan
PLAN_NOMINAL_OBSERVER: Final = 22
PLAN_CRITERION: Final = 24
PLAN_LEAF_MODEL: Final = 26
PLAN_DRIFT: Final = 28
PLAN_STRATEGY: Final = 30
PLAN_BUDGETING: Final = 32
PLAN_NULL_MERIT: Final = 34  # for MOA, "do not split" has a merit like any other (else minus infinity)
PLAN_COMPILED: Final = 35  # attempts are decided in compiled code (core/verdict.py)
PLAN_CODE_SHIFT: Final = 36  # lg of the bits of a class code
PLAN_SCHEDULE: Final = 37  # kind and parameters as above
PLAN_SCHEDULE_AT: Final = 39  # the schedule's state, relative to a leaf record
PLAN_SCHEDULE_RANKED: Final = 40  # it needs the ranking of an attempt that failed
PLAN_GAP: Final = 41  # what a leaf needs for a split (float64; Learner.limits)
PLAN_TIE: Final = 42
PLAN_INCREMENTAL: Final = 43  # the criterion says what one record adds (core/criteria/base.py)
PLAN_COIN_KEY: Final = 44  # random keys: of the coin between two strategies,
PLAN_THRESHOLD_KEY: Final = 45  # of shaken thresholds,
PLAN_SLICE_KEY: Final = 46  # of the records reserved for the evaluation
PLAN_SLICE: Final = 47  # one record in so many is reserved; 0: none
PLAN_DRAWN_DETECTION: Final = 48  # of labels asked for, the detector sees those drawn at random alone
PLAN_GLANCE: Final = 49  # a rough ranking is possible (core/glance.py)
PLAN_EXPLAIN: Final = 50  # predictions come with their path of branches
PLAN_BOUND: Final = 51  # kind and parameters as above
PLAN_TAU: Final = 53  # tie threshold (float64), 0: ties are never broken
PLAN_SHARED: Final = 54  # in the model: what the numeric observers of all leaves share
PLAN_REVISION: Final = 55  # a node's revision section, relative to its leaf record; 0: splits are final
PLAN_REVISIT: Final = 56  # weight between two evaluations of an inner node (float64)
PLAN_LAST_OF_TWO: Final = 57  # of two classes with equal weight the majority is the second
PLAN_HALVES: Final = 58  # all attributes are nominal, with room for two values each
PLAN_FORESIGHT: Final = 59  # how records go down a tree together (core/tree/foresight.py)
PLAN_RANGES: Final = 60  # at: lower and upper end of each numeric attribute (float64)
PLAN_WATCHES: Final = 61  # the schedule watches inner nodes, too
PLAN_HEADER: Final = 62

# Nominal table
NOMINAL_COLUMN: Final = 0
NOMINAL_FIRST: Final = 1  # first value of the attribute on the value axis
NOMINAL_ROOM: Final = 2  # values there is room for
NOMINAL_FIELDS: Final = 3


@dataclass(frozen=True)
class TreeShape:
    """Sizes of a tree block.

    ``numeric`` and ``nominal`` are the shapes of the two observers' statistics in one leaf, for example
    (class, 5, attribute) and (class, value); ``schedule`` those of the sections of the schedule's
    state, and ``revision`` is the length of the revision section, 0 if splits are final.
    """

    classes: int
    numeric: tuple[int, ...]
    nominal: tuple[int, ...]
    nodes: int
    slots: int
    schedule: tuple[tuple[int, ...], ...] = ()
    revision: int = 0

    @cached_property
    def node_stride(self) -> int:
        """Words of a node record."""
        return NODE_FIELDS + self.classes

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
    def revision_at(self) -> int:
        """First word of the revision section in a leaf record."""
        return self.schedule_at + sum(map(math.prod, self.schedule))

    @cached_property
    def leaf_stride(self) -> int:
        """Words of a leaf record."""
        return self.revision_at + self.revision

    @cached_property
    def leaves_at(self) -> int:
        """First word of the leaf records in the block."""
        return TREE_HEADER + self.nodes * self.node_stride

    @cached_property
    def words(self) -> int:
        """Words of the block."""
        return self.leaves_at + self.slots * self.leaf_stride


class TreeView:
    """numpy views of one tree block: records as rows, statistics in their own shapes."""

    __slots__ = ("floats", "header", "ints", "leaf_floats", "leaf_ints", "node_floats", "node_ints", "shape")

    def __init__(self, ints: Ints, floats: Floats, t: int, shape: TreeShape) -> None:
        """Look at the block at word t."""
        self.shape = shape
        self.ints = ints[t : t + shape.words]
        self.floats = floats[t : t + shape.words]
        self.header = self.ints[:TREE_HEADER]
        rows = (shape.nodes, shape.node_stride)
        self.node_ints = self.ints[TREE_HEADER : shape.leaves_at].reshape(rows)
        self.node_floats = self.floats[TREE_HEADER : shape.leaves_at].reshape(rows)
        rows = (shape.slots, shape.leaf_stride)
        self.leaf_ints = self.ints[shape.leaves_at :].reshape(rows)
        self.leaf_floats = self.floats[shape.leaves_at :].reshape(rows)

    @property
    def routed(self) -> Floats:
        """Weight routed through each node, float64[node], labelled or not.

        A tree that never missed a value counts at its leaves; an inner node has what came before its split.
        """
        routed = self.node_floats[:, NODE_ROUTED].copy()
        if not self.header[TREE_PATHS]:
            for node in range(int(self.header[TREE_NODES]) - 1, 0, -1):
                routed[self.node_ints[node, NODE_PARENT]] += routed[node]
        return routed

    @property
    def masses(self) -> Floats:
        """Class masses of the nodes, float64[node, class]."""
        return self.node_floats[:, NODE_FIELDS:]

    @property
    def seen(self) -> Floats:
        """Labelled weight per class of the leaves, float64[slot, class]."""
        return self.leaf_floats[:, LEAF_FIELDS : self.shape.numeric_at]

    @property
    def numeric(self) -> Floats:
        """Statistics of the numeric attributes, float64[slot, …]."""
        part = self.leaf_floats[:, self.shape.numeric_at : self.shape.nominal_at]
        return part.reshape(self.shape.slots, *self.shape.numeric)

    @property
    def nominal(self) -> Floats:
        """Statistics of the nominal attributes, float64[slot, …]."""
        part = self.leaf_floats[:, self.shape.nominal_at : self.shape.schedule_at]
        return part.reshape(self.shape.slots, *self.shape.nominal)

    @property
    def schedule(self) -> list[Floats]:
        """Sections of the schedule's state, each float64[slot, …] (integers by their bits)."""
        sections, first = [], self.shape.schedule_at
        for shape in self.shape.schedule:
            end = first + math.prod(shape)
            sections.append(self.leaf_floats[:, first:end].reshape(self.shape.slots, *shape))
            first = end
        return sections

    @property
    def revision(self) -> Floats:
        """What evaluations found, float64[slot, REVISION_FIELDS + attribute]."""
        return self.leaf_floats[:, self.shape.revision_at :]


def end_here(tree: TreeView, node: int) -> None:
    """Let a node be where ways end, a leaf or an absent branch: its test leads to itself.

    It is a test of its parent's attribute, so that it asks for no value that was not asked for before.
    """
    parent = tree.node_ints[node, NODE_PARENT]
    tree.node_ints[node, NODE_ATTRIBUTE] = 0 if parent < 0 else tree.node_ints[parent, NODE_ATTRIBUTE]
    tree.node_floats[node, NODE_VALUE] = math.inf
    tree.node_ints[node, NODE_CHILD] = node


def write_tree_header(header: Ints, shape: TreeShape) -> None:
    """Write the sizes of a block into its header."""
    header[TREE_WORDS] = shape.words
    header[TREE_NODE_CAPACITY] = shape.nodes
    header[TREE_SLOT_CAPACITY] = shape.slots
    header[TREE_NODE_STRIDE] = shape.node_stride
    header[TREE_LEAF_STRIDE] = shape.leaf_stride
    header[TREE_LEAVES_AT] = shape.leaves_at
    header[TREE_NOMINAL_AT] = shape.nominal_at


def code_bits(classes: int) -> int:
    """Return the bits of a class code in the window: a power of two, so that no code crosses a word."""
    bits = 1
    while classes > 1 << bits:
        bits *= 2
    return bits


def window_words(window: int, bits: int) -> int:
    """Return the words of a window of (label, prediction) codes."""
    per_word = 64 // (2 * bits)
    return -(-window // per_word)


def evaluation_words(classes: int, window: int) -> int:
    """Return the words of the evaluation section."""
    return EVALUATION_FIELDS + EVALUATION_ROWS * classes + window_words(window, code_bits(classes))


def aligned_words(words: int) -> Ints:
    """Return int64[words] of zeros that begin on a cache line."""
    raw = np.zeros(words + 7, dtype=np.int64)
    skip = (-raw.ctypes.data % 64) // WORD
    return raw[skip : skip + words]
