"""BOCT: splits a leaf when credible bounds show that its branches are less mixed than the leaf."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from core.errors import ParameterError, SchemaError
from core.kernels.jit import kernel, outlined, register, row_of
from core.layout.learning import (
    COUNTS,
    DECISION_DUE,
    GROW_FIRST,
    LEARNED,
    NO_CLASS,
    NO_ROOM,
    NOT_ANSWERED,
    LeafTable,
    Row,
    Work,
)
from core.layout.model import Floats, Ints
from core.layout.plan import PlanRecord
from core.layout.tree import LEAF, Node, Tree
from core.learners.boct import bound_table, soundness
from core.learners.boct import leaf_rows as rows
from core.learners.boct.blocks import BoctLayout
from core.learners.boct.cut_search import is_due, search_here
from core.learners.boct.parameters import BoctParameters
from core.learners.hoeffding.blocks import tree_at
from core.learners.protocol import HasBlocks, Learner
from core.numeric.credible import HETEROGENEITIES, check_delta
from core.plugin import Parameters, choice, count, flag, number
from core.schema.dimensions import Dimensions
from core.schema.schema import Schema
from core.tree import prefetch
from core.tree.routing import UNCOUNTED, arrive
from core.tree.routing import count as count_record

PROBLEMS = soundness.PROBLEMS
block_problem = soundness.block_problem


@dataclass(frozen=True, slots=True)
class Plugin(Learner):
    """Bayesian online classification tree: ``{"name": "boct", "delta": 0.2}`` (Collet and Pietquin 2015).

    A leaf keeps its labelled records. After each label every midpoint of every numeric attribute, and every
    value of every nominal one, is a cut. The best cut is the cut whose branches have the lowest upper bound
    of heterogeneity, weighted by their sizes W. It is installed if its bound lies below the lower bound of
    the leaf; then the branches are searched in the same way. Bounds are exact quantiles of the Beta posterior
    of the class share; the true heterogeneity exceeds them with probability δ. A leaf predicts class 1 if at
    least half of its labels are of class 1.

    ``bound`` replaces the bounds, all else equal: ``hoeffding`` installs the best cut if its information gain
    (bits) exceeds sqrt(ln(1/δ) / 2T), the paper's baseline; ``three-interval`` subtracts that width from the
    leaf's entropy and adds it to the entropy of the branches. ``sizes`` selects W: ``stream`` counts all
    records of a leaf and sizes cuts by the records kept; ``pool`` keeps every record it is given, and all
    records are given before the first label; ``labelled`` counts labels; ``toy`` halves the unit square, for
    the toy problem alone.

    A leaf keeps up to ``capacity`` records, labelled records first (``pool``: up to ``max_bytes``). Beyond
    that it keeps a uniform sample of its labels. The bounds count the labels that are kept, so they are
    wider, and valid.

    There must be two classes: the posterior describes one share, and a bound on the heterogeneity of K shares
    has no exact quantile. A schema with more classes is refused. One tree for each class against the rest is
    K times the work, and the leaves of these trees are no partition that labels could be shared out over;
    benchmarks/boct_classes.py measures how this compares with other learners (docs/benchmarks-core.md). A
    weight other than 1 is refused: T and k are counts.
    """

    delta: float = number(0.2, above=0.0, below=1.0)
    """Probability with which a bound is wrong; from 1e-25 to below ½ if it is credible."""
    bound: str = choice("credible", *bound_table.BOUNDS)
    """Bounds that decide on a split."""
    heterogeneity: str = choice("entropy", *HETEROGENEITIES)
    """How mixed a leaf is: entropy in nats, variance or standard deviation of the class."""
    sizes: str = choice("stream", *rows.SIZE_KINDS)
    """Definition of the size W of a leaf."""
    capacity: int = count(2000, at_least=2, at_most=1_000_000)
    """Maximum of records that a leaf keeps."""
    exhaustive: bool = flag(False)
    """Score all cuts at each label, including those that cannot win: the same trees, slower."""
    max_leaves: int = count(1_000_000, at_least=1)
    """Number of leaves at which the tree stops growing."""
    max_bytes: float = number(float(1 << 30), at_least=1.0)
    """Bytes of a model at which leaves keep no more records and the tree stops growing."""

    unit_weights: ClassVar[bool] = True
    NUMBERS: ClassVar[tuple[str, ...]] = tuple(BoctParameters.FIELDS)

    def __post_init__(self) -> None:
        Parameters.__post_init__(self)
        if self.bound == "credible" and self.delta >= 0.5:
            msg = (
                f"delta={self.delta} must be below 0.5 with bound 'credible': beyond that the upper bound "
                "lies below the lower one, and useless cuts pass"
            )
            raise ParameterError(msg)
        if self.bound == "credible":
            check_delta(self.delta)
        if self.bound != "credible" and self.heterogeneity != "entropy":
            msg = (
                f"heterogeneity={self.heterogeneity!r} must be 'entropy' with bound {self.bound!r}, whose "
                "width is for a gain in bits"
            )
            raise ParameterError(msg)

    @property
    def quirks(self) -> int:
        """Return no quirks: no published code is reproduced."""
        return 0

    def constants(self) -> tuple[float, ...]:
        """Return the parameters in the order of NUMBERS."""
        return (
            self.delta,
            float(bound_table.BOUNDS[self.bound]),
            float(HETEROGENEITIES[self.heterogeneity]),
            bound_table.logarithm(self.delta),
            float(rows.SIZE_KINDS[self.sizes]),
            float(self.capacity),
            float(self.exhaustive),
        )

    @property
    def max_classes(self) -> int | None:
        """Return 2: the posterior describes one share."""
        return 2

    def check_schema(self, schema: Schema) -> None:
        """Refuse a schema that has, or may come to have, more than two classes."""
        classes = schema.max_classes if schema.classes_open else schema.n_classes
        if classes > 2:
            msg = (
                f"classes={classes} must be at most 2 with 'boct', whose bounds are of one class share; "
                "take h-tree or c-tree, or a target of two classes"
            )
            raise SchemaError(msg)
        kinds = [attribute.kind for attribute in schema.attributes]
        if self.sizes == "toy" and kinds != ["numeric", "numeric"]:
            msg = (
                f"sizes='toy' must go with two numeric attributes, the unit square's, not with {len(kinds)} "
                "of any kind; take 'stream', or 'pool' for a pool that is known"
            )
            raise SchemaError(msg)

    @property
    def compiled_with(self) -> tuple[str, ...]:
        return (
            "core.learners.boct.leaf_division",
            "core.learners.boct.leaf_rows",
            "core.learners.boct.cut_search",
        )

    def blocks(self, dims: Dimensions) -> BoctLayout:
        table = bound_table.BoundTable.of(
            bound_table.BOUNDS[self.bound], HETEROGENEITIES[self.heterogeneity], self.delta
        )
        return BoctLayout(self, dims, table)

    def write_plan(self, ints: Ints, floats: Floats, dims: Dimensions, blocks: BoctLayout) -> None:
        """Write the words that kernels of trees branch on."""
        plan = PlanRecord(ints, floats, 0)
        plan.last_of_two = 1
        if not dims.nominal:
            plan.route_ahead = prefetch.THRESHOLDS


@kernel
def route_ahead(plan: PlanRecord, tree: Tree, xs, d: int, ends) -> bool:
    """Write where several records end, routed together (core/tree/prefetch.py)."""
    if tree.nodes <= 1:
        return False
    prefetch.route_ahead(plan.route_ahead, tree, xs, d, ends)
    return True


@kernel("boolean(PlanRecord, Tree, Node, Row)", alone=True)
def take_in(plan: PlanRecord, tree: Tree, node: Node, row: Row) -> bool:
    """Count a record at its leaf, and keep it or not; return whether the block has to grow first."""
    if rows.keep_unlabelled(plan, tree, node, row.x):
        return True
    count_record(tree, node, row.weight)
    rows.write_table_row(plan, node, rows.leaf_of(plan, tree, node))
    return False


take_in_here: Any = outlined(take_in)


@kernel
def answer(
    plan: PlanRecord, tree: Tree, place: int, row: Row, prepared: int, scratch, shares
) -> tuple[int, int, int]:
    """Route a record, keep it unless the model is frozen; return the class of half the labels or more."""
    node = tree.node_of(place)
    if place < 0:
        node = arrive(plan, tree, row.x, prepared != COUNTS, prepared)
        if node.start == UNCOUNTED:
            return NO_CLASS, UNCOUNTED, -1
    if prepared == COUNTS and take_in_here(plan, tree, node, row):
        return NO_CLASS, NO_ROOM, node.start
    leaf, classes = rows.leaf_of(plan, tree, node), tree.model.classes
    best = 0 if classes > 0 else NO_CLASS
    if leaf.labels > 0:
        for c in range(min(classes, 2)):
            shares[c] = (leaf.positives if c == 1 else leaf.labels - leaf.positives) / leaf.labels
    if classes > 1 and 2 * leaf.positives >= leaf.labels and tree.labels > 0:
        best = 1
    return best, node.start, -1


@kernel("int64(PlanRecord, Tree, Node, Row, boolean)", alone=True)
def train(plan: PlanRecord, tree: Tree, node: Node, row: Row, is_new: bool) -> int:
    """Keep a label at the leaf where its record ends, and look for a cut if one may win."""
    if rows.keep_labelled(plan, tree, node, row.x, row.label):
        return GROW_FIRST
    if is_new:
        count_record(tree, node, 1.0)
    leaf = rows.leaf_of(plan, tree, node)
    rows.write_table_row(plan, node, leaf)
    leaf.since += 1
    if tree.stopped != 0 or not is_due(plan, leaf):
        return LEARNED
    return DECISION_DUE if search_here(plan, tree, node) else LEARNED


train_here: Any = outlined(train)


@kernel
def learn(plan: PlanRecord, tree: Tree, place: int, row: Row, hint: int, work: Work) -> tuple[int, int]:
    node = tree.node_of(place)
    if place < 0:
        node = arrive(plan, tree, row.x, False, 0)
    return train_here(plan, tree, node, row, place == NOT_ANSWERED), node.start


@kernel
def uncertainty(
    plan: PlanRecord, tree: Tree, place: int, shares, scratch, columns: int
) -> tuple[float, float, float]:
    """Return share, lead and weight of the labels that the leaf has kept."""
    leaf = rows.leaf_of(plan, tree, tree.node_of(place))
    if leaf.labels == 0:
        return 0.5, 0.0, 0.0
    most = max(leaf.positives, leaf.labels - leaf.positives)
    return most / leaf.labels, (2 * most - leaf.labels) / leaf.labels, float(leaf.labels)


@kernel
def leaf_table(plan: PlanRecord, tree: Tree, place: int) -> LeafTable:
    """Return the table of leaves, and the place's row."""
    node = tree.node_of(place)
    first = rows.leaf_of(plan, tree, node).table_row.start - node.slot * tree.leaf_stride
    return LeafTable(first, tree.leaf_stride, tree.slots, node.slot)


class Leaves(NamedTuple):
    """The leaves of a model by ascending node number; arrays of one entry for each leaf."""

    node: Ints
    size: Floats
    """The sizes W."""
    labels: Ints
    """The numbers of labels T."""
    positives: Ints
    """The numbers of labels k of class 1."""


def leaves(model: HasBlocks) -> Leaves:
    """Return the leaves of the block that answers."""
    blocks = model.plan.blocks
    tree = blocks.view(model.ints, model.block_places[0])
    nodes = np.flatnonzero(tree.nodes.kind[: tree.block.nodes] == LEAF)
    slots, leaf_words = tree.nodes.slot[nodes], blocks.leaf_words(tree)
    return Leaves(
        nodes.astype(np.int64),
        blocks.table_rows(tree).size[slots],
        leaf_words.labels[slots],
        leaf_words.positives[slots],
    )


@kernel("void(PlanRecord, Tree, float64[:, ::1], int64, int64[::1])", alone=True)
def _ends(plan: PlanRecord, tree: Tree, x, routed: int, out) -> None:
    for i in range(len(x)):
        out[i] = tree.leaf_of(arrive(plan, tree, row_of(x, i), True, routed)).node


def leaf_of(model: HasBlocks, x: Any) -> Ints:
    """Return the node number of the leaf of each record (x: float64[n, d]), int64[n]; it counts no record."""
    records, t = np.ascontiguousarray(x, dtype=np.float64), model.block_places[0]
    routed, out = model.plan.blocks.prepare(model.ints, t), np.empty(len(records), dtype=np.int64)
    register(routed)
    _ends(model.plan.record, tree_at(model.ints, t), records, routed.ctypes.data, out)
    return out
