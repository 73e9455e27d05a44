"""Layout of a model's words: the only module with offsets.

All state of a model is one buffer of 8-byte words, seen as ``ints`` (int64) and ``floats`` (float64):

    model header | detector | query | budget | evaluation | values seen | numbers seen | shared by blocks
    | block | block | …

A *block* is the state of one instance of the learner. The first block answers, any other block only learns.
Each begins with the number of its words; the learner defines the rest (core/learners/protocol.py). In the
Hoeffding family a block is a tree; everything in it is found from its first word ``t``:

    tree header | node record × node capacity | leaf record × slot capacity
    node record = NODE_FIELDS words, then the class masses ``cls`` [class], and in a tree that adapts the
                  state of its subtree
    leaf record = LEAF_FIELDS words, then ``seen`` [class], the observers' statistics, the schedule's
                  state, the leaf model's, and for a learner that revises splits the revision section

The data that models of one spec and schema share (counts, kinds, parameters, positions of attributes) is in a
*plan*, a separate buffer that is not state: kernels get it together with the model.

Counts and codes are int64 and weights float64 because both then share one alignment, one copy and one
address; a node record of a two-class tree is 1.5 cache lines.
"""

from __future__ import annotations

import math
import operator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

Ints: TypeAlias = npt.NDArray[np.int64]
Floats: TypeAlias = npt.NDArray[np.float64]

WORD: Final = 8

# Model header
MODEL_WORDS: Final = 0  # words of the buffer in use
MODEL_FIRST: Final = 1  # first word of the block that answers
MODEL_SECOND: Final = 2  # first word of the next block, which only learns; 0: there is none
MODEL_RECORDS: Final = 3  # records answered: t of the papers
MODEL_LABELS: Final = 4  # labels learned: the model's version
MODEL_REQUESTS: Final = 5  # labels requested
MODEL_REPLIES: Final = 6  # labels learned that had been requested (and had not expired)
MODEL_CLASSES: Final = 7  # classes declared, or the largest class code learned plus one
MODEL_LEVEL: Final = 8  # the drift detector's level
MODEL_REBUILDS: Final = 9  # blocks replaced after a drift
MODEL_BACKGROUND_STALE: Final = 10  # the background block starts again at the next warning
MODEL_DECLINED: Final = 11  # requests that will not be answered
MODEL_EXPIRED: Final = 12  # requests not answered in time
MODEL_RESERVED: Final = 13  # requests made for the evaluation, past the budget
MODEL_REFUSED: Final = 14  # records that the strategy did not score: the budget was closed
MODEL_HEADER: Final = 16

# Evaluation section: counters, then six rows [class], the window as packed codes, and a bit for each of its
# records: whether its label was the majority class of the window at that time
EVALUATION_COUNT: Final = 0  # predictions evaluated
EVALUATION_NEXT: Final = 1  # window position that is written next
EVALUATION_SAMPLED: Final = 2  # evaluated predictions of records that were sampled at random,
EVALUATION_SAMPLED_HIT: Final = 3  # and the hits among them
# If the strategy has known probabilities (float64; core/active/label_query.py):
EVALUATION_IMPORTANCE: Final = 4  # sum of the importance of the sampled records that were evaluated,
EVALUATION_IMPORTANCE_HIT: Final = 5  # and of the hits among them
EVALUATION_REPRESENTED: Final = 6  # records that the strategy scored, with the records they represent,
EVALUATION_SQUARES: Final = 7  # and the sum of their squares divided by their probabilities
EVALUATION_UNREPRESENTED: Final = 8  # records that met a closed budget, not yet represented
EVALUATION_CHOSEN: Final = 9  # requests with a known probability (int64)
# Two baselines on the same predictions: the last label, and the class with most labels so far
EVALUATION_LAST: Final = 10  # label of the last prediction evaluated (0 at first)
EVALUATION_LAST_HIT: Final = 11  # labels that were equal to the label before
EVALUATION_MAJORITY: Final = 12  # class with most labels, the lowest code of equal counts
EVALUATION_MAJORITY_HIT: Final = 13  # labels of the class with most labels, with this label counted
EVALUATION_WINDOW_LAST_HIT: Final = 14  # the same three over the window
EVALUATION_WINDOW_MAJORITY: Final = 15
EVALUATION_WINDOW_MAJORITY_HIT: Final = 16
EVALUATION_BEFORE: Final = 17  # label before the oldest of the window (0: none)
EVALUATION_UNCOMPARED: Final = 18  # predictions evaluated before baselines were counted (state version 5),
EVALUATION_UNCOMPARED_HIT: Final = 19  # and the hits among them
EVALUATION_FIELDS: Final = 20
EVALUATION_ACTUAL: Final = 0  # rows, cumulative: labels per class,
EVALUATION_PREDICTED: Final = 1  # predictions per class,
EVALUATION_HIT: Final = 2  # hits per class;
EVALUATION_WINDOW: Final = 3  # the same three over the window
EVALUATION_ROWS: Final = 6

# Numbers seen, if the model explains: for each numeric attribute (float64)
SEEN_LOW: Final = 0
SEEN_HIGH: Final = 1
SEEN_COUNT: Final = 2  # count of numbers; if 0, low and high are not set
SEEN_FIELDS: Final = 3

# First word of any block
BLOCK_WORDS: Final = 0

# Results of learning
LEARNED: Final = 0
DECISION_DUE: Final = 1  # learned; the learner has a decision to take before the next record
GROW_FIRST: Final = 2  # nothing was learned: the learner has to grow first, then it is tried again
GREW: Final = 3  # learned and grown; the growth is written to the caller's words

# Values for the place of a record in a block that is not known
FORGOTTEN: Final = -1  # the block has answered the record, or another record like it: it is not counted
NOT_ANSWERED: Final = -2  # the block meets the record for the first time
NO_ROOM: Final = -3  # the block has to grow before it can answer; the hint is the place

# Whether an answer counts the record
COUNTS: Final = -1  # else the address of the result of `BlockLayout.prepare`, 0: none yet

# Columns of the uncertainty at a place, as bits
SHARE: Final = 1
LEAD: Final = 2  # and the weight that it is based on
WEIGHT: Final = 4
LEAVES: Final = 8  # a table of all leaves, instead of columns of one leaf

# Tree header
TREE_WORDS: Final = BLOCK_WORDS
TREE_NODES: Final = 1  # nodes in use
TREE_NODE_CAPACITY: Final = 2
TREE_SLOTS: Final = 3  # leaf records ever used (free records are chained)
TREE_SLOT_CAPACITY: Final = 4
TREE_FREE: Final = 5  # first free leaf record, -1: none; the chain goes through LEAF_NODE, last freed first
TREE_LEAVES: Final = 6
TREE_DEPTH: Final = 7
TREE_SPLITS: Final = 8
TREE_ATTEMPTS: Final = 9
TREE_LABELS: Final = 10  # labels this tree has learned
TREE_STOPPED: Final = 11  # a limit was reached: no more attempts until a revision or a review makes room
LACKS_ROOM: Final = 1  # value of TREE_STOPPED: max_bytes, or without reviews any limit
LACKS_LEAVES: Final = 2  # value of TREE_STOPPED: max_leaves, in forests with reviews
TREE_NODE_STRIDE: Final = 12
TREE_LEAF_STRIDE: Final = 13
TREE_LEAVES_AT: Final = 14  # leaf records, relative to the block
TREE_NOMINAL_AT: Final = 15  # nominal statistics, relative to a leaf record
TREE_PATHS: Final = 16  # 1: every node counts the weight routed through it; 0: only leaves do
TREE_HEADER: Final = 17

# Node record
NODE_KIND: Final = 0
NODE_ATTRIBUTE: Final = 1
NODE_VALUE: Final = 2  # threshold or category (float64); equality goes to child 0. Leaves: infinity
NODE_CHILD: Final = 3  # first child; children are contiguous. Leaves and absent branches: the node itself
NODE_ROUTED: Final = 4  # weight routed to the node (float64), labelled or not; see TREE_PATHS
NODE_CHILDREN: Final = 5
NODE_PARENT: Final = 6  # -1: root
NODE_SLOT: Final = (
    7  # leaf record, -1: none; a leaf without one is inactive (hoeffding/growth/deactivation.py)
)
NODE_DEPTH: Final = 8
NODE_REACH: Final = 9  # highest class that ever reached the node, plus one (MOA's range)
NODE_FIELDS: Final = 10

# State of the subtree at a node of a tree that adapts, at the end of the node record
# (core/learners/hat/kernels.py)
SUBTREE_ALTERNATE: Final = 0  # number of the root of the node's alternate tree, 0: none
SUBTREE_BESIDE: Final = 1  # root of an alternate tree: number of the node that it may replace, plus one
SUBTREE_DRAWS: Final = 2  # leaf: state of MOA's generator, exclusive or with the state of a new one
SUBTREE_DUE: Final = 3  # while a record is learned: the due reaction (core/learners/hat/kernels.py), else 0
SUBTREE_NEXT: Final = 4  # while a record is learned: root of the tree that comes next, else 0
SUBTREE_DETECTOR: Final = 5  # then the detector's state

# Kinds of nodes
LEAF: Final = 0
NUMERIC: Final = 1  # x <= value
CATEGORY: Final = 2  # x == value
MULTIWAY: Final = 3  # child number x
ABSENT: Final = 4  # a branch that grows when its value is first learned (compat="moa")

# Leaf record
LEAF_NODE: Final = 0  # its node; in a free record the next free record
LEAF_OBSERVED: Final = 1  # labelled weight since the leaf was made (float64)
LEAF_EVALUATED: Final = 2  # weight at the last attempt (float64)
LEAF_NEXT: Final = 3  # observed weight at which the next attempt is due (float64)
LEAF_ATTEMPTS: Final = 4  # attempts with more than one class, in which tests were ranked
LEAF_MAJORITY_RIGHT: Final = 5  # weight of the hits of the majority class (float64)
LEAF_BAYES_RIGHT: Final = 6  # weight of the hits of naive Bayes (float64)
LEAF_LEFT_OUT: Final = 7  # observed weight that is not in the numeric statistics (float64)
LEAF_FIELDS: Final = 8

# Revision section, at the end of a leaf record of a learner that revises splits; then the sums of merits
# [attribute] (float64)
REVISION_EVALUATIONS: Final = 0  # divisor of the sums (float64)
REVISION_OWN: Final = 1  # sum of the merits of the node's test (float64)
REVISION_NULL: Final = 2  # sum of the merits of not splitting (float64, MOA)
REVISION_FORGETS: Final = 3  # the node ignores the tests above it (1.0, MOA)
REVISION_DUE: Final = 4  # while a record is learned: an attempt is due by the node's schedule (1.0)
REVISION_FIELDS: Final = 5

# Plan
PLAN_ATTRIBUTES: Final = 0
PLAN_NUMERIC: Final = 1  # numeric attributes
PLAN_NOMINAL: Final = 2  # nominal attributes
PLAN_VALUES: Final = 3  # room for values of all nominal attributes
PLAN_CLASSES: Final = 4
PLAN_CONTIGUOUS: Final = 5  # the numeric attributes are the first columns
PLAN_OPEN_VALUES: Final = 6  # some attribute takes in new values
PLAN_QUIRKS: Final = 7  # bits of the active quirks (core/tree/quirks.py)
PLAN_NUMERIC_TABLE: Final = 8  # position: column of each numeric attribute
PLAN_NOMINAL_TABLE: Final = 9  # position: NOMINAL_FIELDS words for each nominal attribute
PLAN_DETECTOR: Final = 10  # in the model: sections
PLAN_QUERY: Final = 11
PLAN_BUDGET: Final = 12
PLAN_EVALUATION: Final = 13
PLAN_VALUES_SEEN: Final = 14
PLAN_BLOCKS: Final = 15  # first word after the sections
PLAN_WINDOW: Final = 16  # records of the evaluation window
PLAN_CODE_BITS: Final = 17  # bits of a class code in the window
PLAN_EVERY: Final = 18  # labels between two evaluation events
PLAN_QUERY_KEY: Final = 19  # the random key of query decisions (bits of a uint64)
PLAN_NUMERIC_OBSERVER: Final = 20  # kinds, each followed by the position of its parameters in the plan
PLAN_NOMINAL_OBSERVER: Final = 22
PLAN_CRITERION: Final = 24
PLAN_LEAF_MODEL: Final = 26
PLAN_DRIFT: Final = 28
PLAN_STRATEGY: Final = 30
PLAN_BUDGETING: Final = 32
PLAN_NULL_MERIT: Final = 34  # for MOA, "do not split" has a merit like any test (else minus infinity)
PLAN_COMPILED: Final = 35  # attempts are decided in compiled code (core/learners/hoeffding/split_decision.py)
PLAN_CODE_SHIFT: Final = 36  # lg of the bits of a class code
PLAN_SCHEDULE: Final = 37  # kind and parameters as above
PLAN_SCHEDULE_AT: Final = 39  # the schedule's state, relative to a leaf record
PLAN_SCHEDULE_RANKED: Final = 40  # the schedule needs the ranking of an attempt that failed
PLAN_GAP: Final = 41  # gap that a leaf needs for a split (float64; Learner.limits)
PLAN_TIE: Final = 42
PLAN_INCREMENTAL: Final = 43  # the criterion can update an impurity by one record (core/criteria/base.py)
PLAN_COIN_KEY: Final = 44  # random keys: of the coin between two strategies,
PLAN_THRESHOLD_KEY: Final = 45  # of randomised thresholds,
PLAN_SLICE_KEY: Final = 46  # of the records reserved for the evaluation
PLAN_SLICE: Final = 47  # block length of reserved records, one per block; 0: none
PLAN_SAMPLED_DETECTION: Final = 48  # the detector sees only requested labels that were sampled at random
PLAN_QUICK_REJECT: Final = 49  # an approximate ranking is possible (core/learners/hoeffding/quick_reject.py)
PLAN_EXPLAIN: Final = 50  # predictions come with their path of branches
PLAN_BOUND: Final = 51  # kind and parameters as above
PLAN_TAU: Final = 53  # tie threshold (float64), 0: ties are never broken
PLAN_SHARED: Final = 54  # in the model: the words that all blocks share
PLAN_REVISION: Final = 55  # a node's revision section, relative to its leaf record; 0: splits are final
PLAN_REVISIT: Final = 56  # weight between two evaluations of an inner node (float64)
PLAN_LAST_OF_TWO: Final = 57  # of two classes with equal weight the majority is the second
PLAN_HALVES: Final = 58  # all attributes are nominal, with room for two values each
PLAN_ROUTE_AHEAD: Final = 59  # kind of tests for routing ahead (core/tree/prefetch.py)
PLAN_RANGES: Final = 60  # position: lower and upper end of each numeric attribute (float64)
PLAN_WATCHES: Final = 61  # the schedule watches inner nodes, too
PLAN_INHERITED: Final = 62  # bounds count inherited weight, too [D8]
PLAN_COUNTED: Final = 63  # number of attributes in bounds; CDT's code also counts the class
PLAN_SORTS: Final = 64  # the criterion leaves the class masses of branches sorted (core/criteria/base.py)
PLAN_LEARNER: Final = 65  # kind of the learner's kernels, and its parameters
PLAN_COLUMNS: Final = 67  # bits of the columns that the query strategy uses
PLAN_WINDOW_BITS: Final = 69  # first word of the bits of the evaluation window, in the model
PLAN_ARRAYS: Final = 68  # position: offsets in the learner's blocks (BlockLayout.offsets)
PLAN_RESERVOIR_KEY: Final = 70  # random key of the reservoirs in which leaves keep records
PLAN_NODE_DETECTOR: Final = 71  # kind and parameters of the detectors that watch nodes
PLAN_LEAF_MODEL_AT: Final = 73  # the leaf model's state, relative to a leaf record
PLAN_THETA_KEY: Final = 74  # random keys: of posterior samples,
PLAN_HYPOTHESIS_KEY: Final = 75  # of sampled hypotheses,
PLAN_EXPLORATION_KEY: Final = 76  # of other exploration
PLAN_SURE_WORDS: Final = 77  # words of a block that is surely within max_bytes, for any names in the schema
PLAN_MAX_LEAVES: Final = 78  # number of leaves at which a tree stops growing
PLAN_PLAIN_SPLITS: Final = 79  # splits are made in compiled code (core/learners/hoeffding/plain_split.py)
PLAN_FIRST_ATTEMPT: Final = 80  # observed weight before which no new leaf is due (float64)
PLAN_BLANK_LEAF: Final = 81  # address of an unused leaf record
PLAN_SUBSPACE_KEY: Final = 82  # random keys: of the attributes that a leaf or a member sees,
PLAN_BAGGING_KEY: Final = 83  # and of the number of times that a member learns a record
PLAN_WARNING_DETECTOR: Final = 84  # kind and parameters of the detectors that warn of a member
PLAN_STRETCH: Final = 86  # most rows that the learner takes at once (BlockLayout.play); 0: none
PLAN_NUMBERS_SEEN: Final = 87  # in the model: lowest and highest number of each numeric attribute
PLAN_SUBTREES: Final = 88  # the state of the subtree at a node, relative to its record; 0: none
PLAN_SUBTREE_DETECTOR: Final = 89  # kind and parameters of the detectors that watch subtrees
PLAN_LEAF_BAGGING: Final = 91  # number of times that a leaf learns a record: one of BAGGED_…
PLAN_LEAF_BAGGING_KEY: Final = 92  # random key of these numbers
PLAN_SWITCH_LOGARITHM: Final = 93  # ln(2/δ) of the comparison with an alternate tree (float64),
PLAN_SWITCH_RECORDS: Final = 94  # and the records that both windows must exceed (float64)
PLAN_REVIEW: Final = 95  # labels between two reviews of the leaves' sizes (BlockLayout.review); 0: none
PLAN_HEADER: Final = 96

# Number of times that a leaf learns a record
BAGGED_ONCE: Final = 0
BAGGED_POISSON: Final = 1  # a Poisson variate of mean 1, at least 1
BAGGED_MOA: Final = 2  # the same, from MOA's generator

# Nominal table
NOMINAL_COLUMN: Final = 0
NOMINAL_FIRST: Final = 1  # first value of the attribute on the value axis
NOMINAL_ROOM: Final = 2  # number of values that there is room for
NOMINAL_FIELDS: Final = 3


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


def node_at(ints: Any, t: int, node: int) -> int:
    """Return the first word of a node's record; kernels use core/tree/routing.py."""
    return t + TREE_HEADER + node * int(ints[t + TREE_NODE_STRIDE])


def leaf_at(ints: Any, t: int, slot: int) -> int:
    """Return the first word of a leaf's record; kernels use core/tree/routing.py."""
    return t + int(ints[t + TREE_LEAVES_AT]) + slot * int(ints[t + TREE_LEAF_STRIDE])


def number_of(ints: Ints, t: int, record: int) -> int:
    """Return the number of the node whose record begins at word ``record``."""
    return (record - t - TREE_HEADER) // ints.item(t + TREE_NODE_STRIDE)


def leaf_of(ints: Ints, t: int, record: int) -> int:
    """Return the first word of the leaf record that belongs to a node record."""
    return leaf_at(ints, t, ints.item(record + NODE_SLOT))


def write_tree_header(header: Ints, shape: TreeShape) -> None:
    """Write the sizes of a block into its header."""
    for word, size in zip(_SIZE_WORDS, _sizes(shape), strict=True):
        header[word] = size


def says_sizes(header: Ints, shape: TreeShape) -> bool:
    """Return whether a block's header has the sizes of a shape."""
    return _size_words(header.tolist()) == _sizes(shape)


_SIZE_WORDS: Final = (
    TREE_WORDS,
    TREE_NODE_CAPACITY,
    TREE_SLOT_CAPACITY,
    TREE_NODE_STRIDE,
    TREE_LEAF_STRIDE,
    TREE_LEAVES_AT,
    TREE_NOMINAL_AT,
)
_size_words = operator.itemgetter(*_SIZE_WORDS)


def _sizes(shape: TreeShape) -> tuple[int, ...]:
    return (
        shape.words,
        shape.nodes,
        shape.slots,
        shape.node_stride,
        shape.leaf_stride,
        shape.leaves_at,
        shape.nominal_at,
    )


def code_bits(classes: int) -> int:
    """Return the bits of a class code in the window: a power of two, so that no code crosses a word."""
    bits = 1
    while classes > 1 << bits:
        bits *= 2
    return bits


def window_words(window: int, bits: int) -> int:
    """Return the number of words of a window of (label, prediction) codes."""
    per_word = 64 // (2 * bits)
    return -(-window // per_word)


def evaluation_words(classes: int, window: int) -> int:
    """Return the number of words of the evaluation section."""
    return window_bits_at(classes, window) + -(-window // 64)


def window_bits_at(classes: int, window: int) -> int:
    """Return the first word of the window's bits in the evaluation section."""
    return EVALUATION_FIELDS + EVALUATION_ROWS * classes + window_words(window, code_bits(classes))
