"""Layout of a forest's block: header, pairs, classes, events, steps of attributes, nodes, pages of rows.

    header | pair × K(K-1)/2 | class × K | event × K | step × numeric attribute
           | node record × capacity | page × capacity

The pair of classes i < j has the entry j(j-1)/2 + i, so that a new class appends entries. Node records are
one arena for all trees, with a chain of free records; a page is PAGE_ROWS rows of the ring of a class
(core/learners/ufft/memory.py).

Nodes keep statistics for each *column*: the numeric attributes in their order, then the values of the nominal
attributes, each a number that is 1 where a record has the value and 0 where it has another [D51]. The *step*
of a numeric attribute is the smallest difference between two successive labelled values.
"""

from __future__ import annotations

from typing import Final

from core.kernels.jit import kernel
from core.tree import layout as at

# Header
BLOCK_WORDS: Final = at.BLOCK_WORDS
CLASSES: Final = 1  # number of classes that there is room for
NODE_CAPACITY: Final = 2
NODES: Final = 3  # node records ever used, including free records
FREE: Final = 4  # first free record, -1: none; the chain goes through NODE_PARENT, last freed first
LIVE: Final = 5  # nodes of trees
PAGE_CAPACITY: Final = 6
PAGES: Final = 7  # pages in use
ARRIVALS: Final = 8  # labels learned, which is the arrival number of the next label
TREES: Final = 9  # pairs that have a root
SPLITS: Final = 10
ATTEMPTS: Final = 11  # evaluations of leaves
RESTARTS: Final = 12  # nodes that became leaves again after drifts
STOPPED: Final = 13  # a split or a tree was left out for lack of bytes
EVENTS: Final = 14  # events that wait; none between two records
VISITS: Final = 15  # nodes on the paths of records to learn
REPLAYS: Final = 16  # rows of memories that were read; with VISITS a measure of the cost of learning
# Computed from the classes and values that the model has learned, and again when their number grows; never
# from the schema, so that the cut of runs does not matter. All 0, as in every snapshot: not computed.
RECKONED: Final = 17  # classes and values learned at that time
LIMIT: Final = 18  # words that nodes and pages may take
LEARNED_NODE: Final = 19  # words of a node record with these values
HEADER: Final = 20

# Pair
ROOT: Final = 0  # number of its root, -1: not planted
PLANTED: Final = 1  # arrival number of the first record it learned
PAIR_FIELDS: Final = 2

# Class
CLASS_WEIGHT: Final = 0  # weight of its labels (float64)
CLASS_RECORDS: Final = 1  # number of labels; 0: no record of the class was seen yet
RING_ROWS: Final = 2  # rows it keeps
RING_NEXT: Final = 3  # where the next row goes
RING_PAGES: Final = 4
CLASS_FIELDS: Final = 5  # words before the numbers of its pages

# Event
EVENT_KIND: Final = 0
EVENT_PAIR: Final = 1
EVENT_NODE: Final = 2
EVENT_DEPTH: Final = 3
EVENT_COLUMN: Final = 4
EVENT_CUT: Final = 5  # (float64, like all words after it)
EVENT_BEST: Final = 6  # gains
EVENT_SECOND: Final = 7
EVENT_BOUND: Final = 8
EVENT_WEIGHT: Final = 9
EVENT_FIELDS: Final = 10

SPLIT: Final = 1
TIE: Final = 2
PRUNED: Final = 3
RESTARTED: Final = 4
NO_ROOM: Final = 5

# Node record
NODE_PARENT: Final = 0  # -1: a root; in a free record the next free one
NODE_LEFT: Final = 1  # child of x <= cut; LEAF, or FREED
NODE_RIGHT: Final = 2
NODE_DEPTH: Final = 3
NODE_PAIR: Final = 4
NODE_COLUMN: Final = 5
NODE_CUT: Final = 6  # (float64)
NODE_ROUTED: Final = 7  # weight of labelled and replayed records that came (float64)
NODE_WEIGHT: Final = 8  # n of the two classes (float64 × 2)
NODE_DUE: Final = 10  # weight at which the leaf is evaluated next (float64)
NODE_WARNING: Final = 11  # arrival number of the record that began the warning, -1: in control
NODE_INPUTS: Final = 12  # predictions of its naive Bayes since the detector started again
NODE_ERRORS: Final = 13  # wrong predictions among them
NODE_FIELDS: Final = 14  # words before the detector's state, the statistics, and the unit of an IDBD leaf

LEAF: Final = -1
FREED: Final = -2

# Statistics of a column: weight, mean, squared deviations of the first class, then of the second
STATISTICS: Final = 3
COLUMN_WORDS: Final = 2 * STATISTICS

# Step of a numeric attribute (both float64)
STEP_LAST: Final = 0  # the last labelled value, NaN: none yet
STEP_SMALLEST: Final = 1  # the step, 0: all values so far were equal
STEP_FIELDS: Final = 2

# Page
PAGE_ROWS: Final = 16
ROW_ARRIVAL: Final = 0
ROW_WEIGHT: Final = 1  # (float64)
ROW_FIELDS: Final = 2  # words before the values of all attributes (float64, missing NaN)

# Words of the plan from PLAN_ARRAYS on
COLUMNS: Final = 0
NODE_WORDS: Final = 1
STATISTICS_AT: Final = 2  # in a node record
UNIT_AT: Final = 3
CLASSES_AT: Final = 4  # in the block
CLASS_WORDS: Final = 5
EVENTS_AT: Final = 6
NODES_AT: Final = 7
PAGE_WORDS: Final = 8
STEPS_AT: Final = 9  # in the block
PLACES: Final = 10

# Parameters of the learner
DELTA: Final = 0
TAU: Final = 1
MEMORY: Final = 2
LEAF_MODEL: Final = 3
SLIDE: Final = 4
DETECTS: Final = 5
STEP_SHARE: Final = 6
PARAMETERS: Final = 7

MAJORITY: Final = 0
BAYES: Final = 1
UNIT: Final = 2


@kernel
def place(plan, which: int) -> int:
    """Return a size or a place of the layout."""
    return plan[plan[at.PLAN_ARRAYS] + which]


@kernel
def parameter(plan, params, which: int) -> float:
    return params[plan[at.PLAN_LEARNER + 1] + which]


@kernel
def learned(plan, ints) -> int:
    """Return how many classes and values of nominal attributes the model has learned."""
    found = ints[at.MODEL_CLASSES]
    for j in range(plan[at.PLAN_NOMINAL]):
        found += ints[plan[at.PLAN_VALUES_SEEN] + j]
    return found


@kernel
def pair_number(i: int, j: int) -> int:
    """Return the number of the pair of classes i < j."""
    return j * (j - 1) // 2 + i


@kernel
def pair_at(t: int, pair: int) -> int:
    """Return the first word of a pair."""
    return t + HEADER + pair * PAIR_FIELDS


@kernel
def class_at(plan, t: int, label: int) -> int:
    """Return the first word of a class."""
    return t + place(plan, CLASSES_AT) + label * place(plan, CLASS_WORDS)


@kernel
def step_at(plan, t: int, attribute: int) -> int:
    """Return the first word of the step of a numeric attribute, by its number among numeric attributes."""
    return t + place(plan, STEPS_AT) + attribute * STEP_FIELDS


@kernel
def node_at(plan, t: int, number: int) -> int:
    """Return the first word of a node record."""
    return t + place(plan, NODES_AT) + number * place(plan, NODE_WORDS)


@kernel
def page_at(plan, ints, t: int, number: int) -> int:
    """Return the first word of a page."""
    pages = t + place(plan, NODES_AT) + ints[t + NODE_CAPACITY] * place(plan, NODE_WORDS)
    return pages + number * place(plan, PAGE_WORDS)


@kernel
def add_event(
    plan,
    ints,
    floats,
    t: int,
    kind: int,
    node: int,
    column: int,
    cut: float,
    best: float,
    second: float,
    bound: float,
    weight: float,
) -> None:
    """Append an event of a node (by its number; -1: of none) to the events that wait."""
    event = t + place(plan, EVENTS_AT) + ints[t + EVENTS] * EVENT_FIELDS
    ints[t + EVENTS] += 1
    ints[event + EVENT_KIND] = kind
    ints[event + EVENT_NODE] = node
    if node >= 0:
        record = node_at(plan, t, node)
        ints[event + EVENT_PAIR] = ints[record + NODE_PAIR]
        ints[event + EVENT_DEPTH] = ints[record + NODE_DEPTH]
    ints[event + EVENT_COLUMN] = column
    floats[event + EVENT_CUT] = cut
    floats[event + EVENT_BEST] = best
    floats[event + EVENT_SECOND] = second
    floats[event + EVENT_BOUND] = bound
    floats[event + EVENT_WEIGHT] = weight
