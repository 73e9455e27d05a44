"""BOCT: splits a leaf when credible bounds show that its branches are less mixed than the leaf."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from core.errors import ParameterError, SchemaError
from core.kernels.jit import WORDS, address_of, kernel, outlined, register, row_of, words_at
from core.layout.learning import LeafTable
from core.layout.plan import PlanRecord
from core.layout.tree import LEAF_FIELDS, Tree
from core.learners.boct import bound_table, soundness
from core.learners.boct import leaf_rows as rows
from core.learners.boct.blocks import BoctLayout
from core.learners.boct.cut_search import is_due, search_here
from core.learners.protocol import HasBlocks, Learner
from core.numeric.credible import HETEROGENEITIES, check_delta
from core.plugin import Parameters, choice, count, flag, number
from core.schema.dimensions import Dimensions
from core.schema.schema import Schema
from core.tree import layout as at
from core.tree.byoffset import prefetch
from core.tree.byoffset.routing import UNCOUNTED, arrive, leaf_at
from core.tree.byoffset.routing import count as count_record
from core.tree.layout import Floats, Ints

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
        """Return the parameters in the order of the kernels' words."""
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
        ints[at.PLAN_LAST_OF_TWO] = 1
        if not dims.nominal:
            ints[at.PLAN_ROUTE_AHEAD] = prefetch.THRESHOLDS


@kernel
def route_ahead(plan, ints, floats, t: int, xs, d: int, ends) -> bool:
    """Write where several records end, routed together (core/tree/prefetch.py)."""
    if ints[t + at.TREE_NODES] <= 1:
        return False
    prefetch.route_ahead(plan[at.PLAN_ROUTE_AHEAD], ints, floats, t, xs, d, ends)
    return True


@kernel(f"boolean({WORDS}, int64, int64, CPointer(float64), float64)", alone=True)
def take_in(plan, params, ints, floats, t: int, node: int, x, weight: float) -> bool:
    """Count a record at its leaf, and keep it or not; return whether the block has to grow first."""
    if rows.keep_unlabelled(plan, params, ints, floats, t, node, x):
        return True
    count_record(ints, floats, t, node, weight)
    rows.write_table_row(plan, params, ints, floats, node, rows.own_at(plan, ints, t, node))
    return False


take_in_here: Any = outlined(take_in)


@kernel
def answer(
    plan,
    params,
    ints,
    floats,
    t: int,
    place: int,
    x,
    xs,
    weight: float,
    prepared: int,
    scratch,
    shares,
) -> tuple[int, int, int]:
    """Route a record, keep it unless the model is frozen; return the class of half the labels or more."""
    node = place
    if node < 0:
        node = arrive(plan, ints, floats, t, x, prepared != at.COUNTS, prepared)
        if node == UNCOUNTED:
            return -1, node, -1
    if prepared == at.COUNTS and take_in_here(plan, params, ints, floats, t, node, x, weight):
        return -1, at.NO_ROOM, node
    own = rows.own_at(plan, ints, t, node)
    labels, positives = ints[own + rows.LABELS], ints[own + rows.POSITIVES]
    best = 0 if ints[at.MODEL_CLASSES] > 0 else -1
    if labels > 0:
        for c in range(min(ints[at.MODEL_CLASSES], 2)):
            shares[c] = (positives if c == 1 else labels - positives) / labels
    if ints[at.MODEL_CLASSES] > 1 and 2 * positives >= labels and ints[t + at.TREE_LABELS] > 0:
        best = 1
    return best, node, -1


@kernel(f"int64({WORDS}, int64, int64, CPointer(float64), int64, boolean)", alone=True)
def train(plan, params, ints, floats, t: int, node: int, x, label: int, is_new: bool) -> int:
    """Keep a label at the leaf where its record ends, and look for a cut if one may win."""
    if rows.keep_labelled(plan, params, ints, floats, t, node, x, label):
        return at.GROW_FIRST
    if is_new:
        count_record(ints, floats, t, node, 1.0)
    own = rows.own_at(plan, ints, t, node)
    rows.write_table_row(plan, params, ints, floats, node, own)
    ints[own + rows.SINCE] += 1
    if ints[t + at.TREE_STOPPED] != 0 or not is_due(plan, params, ints, floats, own):
        return at.LEARNED
    wins = search_here(address_of(plan), address_of(ints), t, node)
    return at.DECISION_DUE if wins else at.LEARNED


train_here: Any = outlined(train)


@kernel
def learn(
    plan,
    params,
    ints,
    floats,
    t: int,
    place: int,
    x,
    xs,
    label: int,
    weight: float,
    hint: int,
    scratch,
    vote_buffer,
) -> tuple[int, int]:
    node = place
    if node < 0:
        node = arrive(plan, ints, floats, t, x, False, 0)
    outcome = train_here(plan, params, ints, floats, t, node, x, label, place == at.NOT_ANSWERED)
    return outcome, node


@kernel
def uncertainty(
    plan, params, ints, floats, t: int, place: int, shares, scratch, columns: int
) -> tuple[float, float, float]:
    """Return share, lead and weight of the labels that the leaf has kept."""
    own = rows.own_at(plan, ints, t, place)
    labels, positives = ints[own + rows.LABELS], ints[own + rows.POSITIVES]
    if labels == 0:
        return 0.5, 0.0, 0.0
    most = max(positives, labels - positives)
    return most / labels, (2 * most - labels) / labels, float(labels)


@kernel
def leaf_table(plan: PlanRecord, tree: Tree, place: int) -> LeafTable:
    """Return the table of leaves, and the place's row."""
    first = tree.leaf(0).start + LEAF_FIELDS + plan.classes
    return LeafTable(first, tree.leaf_stride, tree.slots, tree.node_of(place).slot)


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
    t = model.block_places[0]
    tree = model.plan.blocks.view(model.ints, t)
    nodes = np.flatnonzero(tree.node_ints[: int(tree.header[at.TREE_NODES]), at.NODE_KIND] == at.LEAF)
    slots, own = tree.node_ints[nodes, at.NODE_SLOT], model.plan.blocks.own_word
    return Leaves(
        nodes.astype(np.int64),
        tree.leaf_floats[slots, own + at.ROW_SIZE],
        tree.leaf_ints[slots, own + rows.LABELS],
        tree.leaf_ints[slots, own + rows.POSITIVES],
    )


@kernel("void(int64, int64, int64, float64[:, ::1], int64, int64[::1])", alone=True)
def _ends(plan_address: int, address: int, t: int, x, routed: int, out) -> None:
    plan, _ = words_at(plan_address)
    ints, floats = words_at(address)
    for i in range(len(x)):
        node = arrive(plan, ints, floats, t, row_of(x, i), True, routed)
        out[i] = ints[leaf_at(ints, t, ints[node + at.NODE_SLOT]) + at.LEAF_NODE]


def leaf_of(model: HasBlocks, x: Any) -> Ints:
    """Return the node number of the leaf of each record (x: float64[n, d]), int64[n]; it counts no record."""
    records, t = np.ascontiguousarray(x, dtype=np.float64), model.block_places[0]
    routed, out = model.plan.blocks.prepare(model.ints, t), np.empty(len(records), dtype=np.int64)
    register(routed)
    _ends(model.plan.address, model.ints.ctypes.data, t, records, routed.ctypes.data, out)
    return out
