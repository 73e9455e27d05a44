"""Layout of a forest's block: header, pairs, classes, events, steps of attributes, nodes, pages of rows.

    PairForest | PairEntry × K(K-1)/2 | class × K | WaitingEvent × K | AttributeStep × numeric attribute
               | node record × capacity | page × capacity
    class = ClassEntry, then the numbers of the pages of its ring
    node record = PairNode, then the detector's state, the NodeStatistics, and the unit of an IDBD leaf
    page = PAGE_ROWS × (RingRow, then the values of all attributes)

The pair of classes i < j has the entry j(j-1)/2 + i, so that a new class appends entries. Node records are
one arena for all trees, with a chain of free records; a page is PAGE_ROWS rows of the ring of a class
(core/learners/ufft/memory.py).

Nodes keep statistics for each *column*: the numeric attributes in their order, then the values of the nominal
attributes, each a number that is 1 where a record has the value and 0 where it has another [D51]. The *step*
of a numeric attribute is the smallest difference between two successive labelled values.
"""

from __future__ import annotations

import math
from typing import Any, Final, NamedTuple

from core.kernels.jit import kernel
from core.kernels.records import Record, Words, word, words_after
from core.layout.model import ModelHeader
from core.layout.plan import PlanRecord
from core.problems import MOST

LEAF: Final = -1
"""Value of ``PairNode.left`` and ``right`` in a leaf."""
FREED: Final = -2
"""Value of the same words in a free node record."""

# Kinds of events
SPLIT: Final = 1
TIE: Final = 2
PRUNED: Final = 3
RESTARTED: Final = 4
NO_ROOM: Final = 5

# Leaf models
MAJORITY: Final = 0
BAYES: Final = 1
UNIT: Final = 2

PAGE_ROWS: Final = 16


class PairForestParameters(Record):
    """The parameters of the learner."""

    delta: float = word("probability that a split is not the best one")
    tau: float = word("bound below which the best split is made regardless of the second best gain")
    memory: float = word("records that a tree remembers")
    leaf_model: float = word("MAJORITY, BAYES or UNIT")
    slide: float = word("1: leaves are evaluated at equal distances")
    detects: float = word("1: a detector watches each node")
    step_share: float = word("least deviation of a class for naive Bayes, as a share of the step")
    new_detector: Any = words_after(float, "state of a new detector")


class PairForestPlaces(Record):
    """The sizes and places of the layout, in the plan (``UfftLayout.offsets``)."""

    columns: int = word("columns of a node's statistics")
    node_words: int = word("words of a node record")
    statistics_at: int = word("first word of the statistics in a node record")
    unit_at: int = word("first word of the unit in a node record")
    classes_at: int = word("first word of the classes in the block")
    class_words: int = word("words of a class")
    events_at: int = word("first word of the events in the block")
    nodes_at: int = word("first word of the node records in the block")
    page_words: int = word("words of a page")
    steps_at: int = word("first word of the steps in the block")

    @property
    def inputs(self) -> int:
        """Number of inputs of a unit: 1 and the columns."""
        return 1 + self.columns

    @property
    def ring_pages(self) -> int:
        """Largest number of pages of a ring."""
        return self.class_words - CLASS_FIELDS


class PairEntry(Record):
    """A pair of classes."""

    root: int = word("number of the node that is its root, -1: not planted")
    planted: int = word("arrival number of the first record that its tree learned")


PAIR_FIELDS: Final = PairEntry.SIZE


class ClassEntry(Record):
    """A class, and the ring of its last rows."""

    weight: float = word("weight of the class's labels", low=0.0)
    records: int = word("labels of the class; 0: no record of it was seen yet", low=0)
    ring_rows: int = word("rows that the ring keeps")
    ring_next: int = word("position in the ring where the next row goes")
    ring_pages: int = word("pages of the ring")
    pages: Any = words_after(int, "numbers of the ring's pages")


CLASS_FIELDS: Final = ClassEntry.SIZE


class PairTree(NamedTuple):
    """The tree of a pair, and the classes whose rings form its memory."""

    entry: PairEntry
    first: ClassEntry
    second: ClassEntry


class WaitingEvent(Record):
    """An event that waits until the record is learned; all zeros else."""

    kind: int = word("SPLIT, TIE, PRUNED, RESTARTED or NO_ROOM")
    pair: int = word("number of the pair")
    node: int = word("number of the node, -1: none")
    depth: int = word("depth of the node")
    column: int = word("column of the split, -1: none")
    cut: float = word("cut of the split")
    best: float = word("gain of the split")
    second: float = word("second best gain")
    bound: float = word("bound of the gap between the two gains")
    weight: float = word("weight of the node; after a drift the error rate of its naive Bayes")


EVENT_FIELDS: Final = WaitingEvent.SIZE


class AttributeStep(Record):
    """The step of a numeric attribute."""

    last: float = word("the last labelled value, NaN: none yet")
    smallest: float = word("the step of an attribute, 0: all values so far were equal", low=0.0)


STEP_FIELDS: Final = AttributeStep.SIZE


class RingRow(Record):
    """A row of a ring."""

    arrival: int = word("arrival number of the record")
    weight: float = word("weight of the record")
    values: Any = words_after(float, "values of all attributes, missing ones NaN")


ROW_FIELDS: Final = RingRow.SIZE


class ColumnMoments(Record):
    """The statistics of a column in one class of the pair."""

    n: float = word("weight of the values")
    mean: float = word("mean of the values")
    m2: float = word("sum of the squared deviations from the mean")


STATISTICS: Final = ColumnMoments.SIZE
COLUMN_WORDS: Final = 2 * STATISTICS


class NodeStatistics(Record):
    """The statistics of a node: for each column the moments of the first class, then of the second."""

    def moments(self, column: int, side: int) -> ColumnMoments:
        """Return the moments of a column in the first (side 0) or the second class of the pair."""
        return ColumnMoments(self.ints, self.floats, self.start + column * COLUMN_WORDS + side * STATISTICS)


class PairNode(Record):
    """A node record."""

    parent: int = word("number of the parent, -1: a root; in a free record the next free record")
    left: int = word("child of x <= cut, LEAF or FREED")
    right: int = word("the other child, LEAF or FREED")
    depth: int = word("tests between the root and the node")
    pair: int = word("number of the pair")
    column: int = word("column that the test reads")
    cut: float = word("threshold of the test")
    routed: float = word("weight of the labelled and replayed records that came to the node", low=0.0)
    first_weight: float = word("weight that the node learned of the pair's first class", low=0.0)
    second_weight: float = word("weight that the node learned of the pair's second class", low=0.0)
    due: float = word("weight at which the leaf is evaluated next")
    warning: int = word("arrival number of the record that began the warning, -1: in control", low=-1)
    inputs: int = word("predictions of its naive Bayes since the detector started again", low=0, high=MOST)
    errors: int = word("wrong predictions among them", low=0, high="inputs")

    @property
    def weight(self) -> float:
        """Weight that the node has learned."""
        return self.first_weight + self.second_weight

    @property
    def detector(self) -> Words:
        """The state of the detector that watches the node."""
        return Words(self.ints, self.floats, self.start + NODE_FIELDS)

    def add_weight(self, side: int, weight: float) -> None:
        """Add a weight to the class of a side (0: the first)."""
        if side == 0:
            self.first_weight += weight
        else:
            self.second_weight += weight

    def statistics(self, plan: PlanRecord) -> NodeStatistics:
        start = self.start + PairForestPlaces(plan.ints, plan.floats, plan.arrays).statistics_at
        return NodeStatistics(self.ints, self.floats, start)

    def unit_start(self, plan: PlanRecord) -> int:
        """Return the first word of the linear unit of the node."""
        return self.start + PairForestPlaces(plan.ints, plan.floats, plan.arrays).unit_at


NODE_FIELDS: Final = PairNode.SIZE


class PairForest(Record):
    """The header of a forest.

    ``reckoned``, ``limit`` and ``learned_node`` are computed from the classes and values that the model has
    learned, and again when their number grows; never from the schema, so that the cut of runs does not
    matter. All three are 0, as in every snapshot, if they are not computed yet.
    """

    words: int = word("words of the block")
    classes: int = word("classes that there is room for")
    node_capacity: int = word("nodes that there is room for")
    nodes: int = word("node records ever used, including free records", low=0, high="node_capacity")
    free: int = word("first free node record, -1: none; the chain goes through parent, last freed first")
    live: int = word("nodes of trees")
    page_capacity: int = word("pages that there is room for")
    pages: int = word("pages in use", low=0, high="page_capacity")
    arrivals: int = word("labels learned, which is the arrival number of the next label", low=0, high=MOST)
    trees: int = word("pairs that have a root", low=0, high=MOST)
    splits: int = word("splits made", low=0, high=MOST)
    attempts: int = word("evaluations of leaves", low=0, high=MOST)
    restarts: int = word("nodes that became leaves again after drifts", low=0, high=MOST)
    stopped: int = word("1: a split or a tree was left out for lack of bytes", low=0, high=1)
    events: int = word("events that wait; none between two records", low=0, high=0)
    visits: int = word("nodes on the paths of records to learn", low=0, high=MOST)
    replays: int = word(
        "rows of memories that were read; with visits a measure of the cost of learning", low=0, high=MOST
    )
    reckoned: int = word("classes and values that the model had learned", low=0, high=MOST)
    limit: int = word("words that nodes and pages may take", low=0, high=MOST)
    learned_node: int = word("words of a node record with the values that the model had learned")

    @property
    def model(self) -> ModelHeader:
        """The header of the model that holds the forest."""
        return ModelHeader(self.ints, self.floats, 0)

    def pair(self, number: int) -> PairEntry:
        return PairEntry(self.ints, self.floats, self.start + HEADER + number * PAIR_FIELDS)

    def class_entry(self, plan: PlanRecord, label: int) -> ClassEntry:
        places = PairForestPlaces(plan.ints, plan.floats, plan.arrays)
        start = self.start + places.classes_at + label * places.class_words
        return ClassEntry(self.ints, self.floats, start)

    def step(self, plan: PlanRecord, attribute: int) -> AttributeStep:
        """Return the step of a numeric attribute, by its number among the numeric attributes."""
        places = PairForestPlaces(plan.ints, plan.floats, plan.arrays)
        start = self.start + places.steps_at + attribute * STEP_FIELDS
        return AttributeStep(self.ints, self.floats, start)

    def node(self, plan: PlanRecord, number: int) -> PairNode:
        places = PairForestPlaces(plan.ints, plan.floats, plan.arrays)
        start = self.start + places.nodes_at + number * places.node_words
        return PairNode(self.ints, self.floats, start)

    def row(self, plan: PlanRecord, page: int, number: int) -> RingRow:
        """Return a row of a page, both by number."""
        places = PairForestPlaces(plan.ints, plan.floats, plan.arrays)
        pages = self.start + places.nodes_at + self.node_capacity * places.node_words
        start = pages + page * places.page_words + number * (ROW_FIELDS + plan.attributes)
        return RingRow(self.ints, self.floats, start)


HEADER: Final = PairForest.SIZE


@kernel
def places_of(plan: PlanRecord) -> PairForestPlaces:
    return PairForestPlaces(plan.ints, plan.floats, plan.arrays)


@kernel
def parameters_of(plan: PlanRecord) -> PairForestParameters:
    return PairForestParameters(plan.ints, plan.floats, plan.learner_at)


@kernel
def learned(plan: PlanRecord, forest: PairForest) -> int:
    """Return how many classes and values of nominal attributes the model has learned."""
    model = forest.model
    count = model.classes
    for j in range(plan.nominal):
        count += model.values_seen(plan)[j]
    return count


@kernel
def pair_number(i: int, j: int) -> int:
    """Return the number of the pair of classes i < j."""
    return j * (j - 1) // 2 + i


def pair_of(number: int) -> tuple[int, int]:
    """Return the classes i < j of a pair's number."""
    j = (1 + math.isqrt(1 + 8 * number)) // 2
    return number - j * (j - 1) // 2, j


@kernel
def add_event(plan: PlanRecord, forest: PairForest, kind: int, number: int) -> WaitingEvent:
    """Append an event of a node (by its number; -1: of none) to the events that wait, and return it."""
    start = forest.start + places_of(plan).events_at + forest.events * EVENT_FIELDS
    event = WaitingEvent(forest.ints, forest.floats, start)
    forest.events += 1
    event.kind = kind
    event.node = number
    event.column = -1
    if number >= 0:
        node = forest.node(plan, number)
        event.pair = node.pair
        event.depth = node.depth
    return event
