"""C4.5: a decision tree built from all labelled instances at once, with pessimistic pruning.

The tree of Quinlan's program (1993) with the differences below. Numeric tests are binary, ``value <=
midpoint``; nominal tests have a branch for each value; at least two branches must have ``min_records`` rows.
The test with the highest information gain is taken, or, with ``gain_ratio``, the highest ratio among the
tests whose gain is not below the mean. Ties go to the first attribute and the smallest threshold. Trees grow
until they are pure and are then pruned: subtrees become leaves or are replaced by their largest branch where
the expected errors (U_CF, the upper limit of the error at confidence CF) are not worse.

Differences from the program: missing values are not split into fractions. As in the program, the gain counts
the rows whose value is known and is scaled by their share; but a row with a missing value then follows the
child that most known rows went to. The later correction of release 8 (lg of the number of thresholds is
subtracted from each numeric gain), windowing and rules are left out: BCI and the slides of UFFT compare with
the tree of the book.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from core.batch import _growing as growing
from core.batch import _pruning as pruning
from core.errors import GroveError
from core.kernels.jit import kernel
from core.layout.model import Floats, Ints

FIRST_ROOM = 64
"""Initial room for nodes while growing; it doubles."""


@dataclass(frozen=True, slots=True)
class C45Tree:
    """A grown tree; parents come before children, siblings side by side. Node 0 is the root."""

    attribute: Ints
    """int64[node]: attribute of the test, -1 in a leaf."""
    threshold: Floats
    """float64[node]: threshold of a numeric test; values that are not above it go to the first child."""
    first: Ints
    """int64[node]: first child."""
    children: Ints
    """int64[node]: number of children; a nominal test has one for each value of the attribute."""
    missing: Ints
    """int64[node]: child that missing values follow, counted from the first."""
    label: Ints
    """int64[node]: the class with most rows."""
    counts: Ints
    """int64[node, class]: rows of each class."""
    values: Ints
    """int64[attribute]: number of nominal values, 0: numeric."""

    @property
    def nodes(self) -> int:
        return len(self.attribute)

    @property
    def leaves(self) -> int:
        return int((self.attribute < 0).sum())

    def leaf_of(self, x: Floats) -> Ints:
        """Return int64[n]: the node in which each row of x (float64[n, d]) ends; one node costs one step.

        Missing values and undeclared codes follow the branch of most rows.
        """
        at = np.zeros(len(x), dtype=np.int64)
        route(np.ascontiguousarray(x, dtype=np.float64), self._nodes(), self.threshold, self.values, at)
        return at

    def predict(self, x: Floats) -> Ints:
        """Return int64[n]: class codes of the rows of x (float64[n, d])."""
        return self.label[self.leaf_of(x)]

    def _nodes(self) -> Ints:
        return np.ascontiguousarray(
            np.stack((self.attribute, self.first, self.children, self.missing), axis=1)
        )


@dataclass(frozen=True, slots=True)
class C45:
    """The parameters of C4.5; ``fit`` builds a tree [D33].

    >>> import numpy as np
    >>> x = np.array([[1.0], [2.0], [3.0], [4.0]])
    >>> C45(prune=False).fit(x, np.array([0, 0, 1, 1])).threshold[0]
    np.float64(2.5)
    """

    min_records: int = 2
    """Number of rows that at least two branches of a test must have (C4.5's -m)."""
    gain_ratio: bool = False
    """Choose by gain ratio, C4.5's default; off: by information gain (-g), as in the papers."""
    prune: bool = True
    """Whether the tree is pruned."""
    confidence: float = 0.25
    """CF of the pruning, above 0 and at most 0.5: a lower value prunes more (C4.5's -c, in per cent)."""
    raising: bool = True
    """Whether a subtree may be replaced by its largest branch, too."""

    def __post_init__(self) -> None:
        if self.min_records < 1:
            msg = f"min_records={self.min_records} must be at least 1"
            raise GroveError(msg)
        if not 0.0 < self.confidence <= 0.5:
            msg = f"confidence={self.confidence} must be above 0 and at most 0.5"
            raise GroveError(msg)

    def fit(
        self, x: Floats, y: npt.NDArray[np.integer], values: Sequence[int] = (), classes: int = 0
    ) -> C45Tree:
        """Return the tree of labelled rows.

        x: float64[n, d], NaN: missing; y: int[n], codes from 0; values: number of nominal values of each
        attribute, whose codes the column has, 0: numeric (default: all numeric); classes: least number of
        classes. Raises GroveError for invalid rows.
        """
        x, codes, values_of = _checked(x, y, values)
        n = len(codes)
        k = max(classes, int(codes.max()) + 1, 1)
        columns = np.ascontiguousarray(x.T)
        order = np.ascontiguousarray(np.argsort(columns, axis=1, kind="stable"))
        options = np.array([self.min_records, self.gain_ratio], dtype=np.int64)
        size = np.arange(n + 1.0)
        n_log_n = size * np.log2(np.maximum(size, 1.0))
        room = FIRST_ROOM
        while True:
            tree = np.zeros((room, growing.FIELDS), dtype=np.int64)
            threshold, counts = np.zeros(room), np.zeros((room, k), dtype=np.int64)
            nodes = growing.grow(
                columns, codes, order.copy(), values_of, options, n_log_n, tree, threshold, counts
            )
            if nodes > 0:
                break
            room *= 2
        if self.prune:
            deviation = pruning.squared_deviation(self.confidence)
            how = np.array([self.confidence, deviation, float(self.raising)])
            pruning.prune(columns, codes, values_of, tree, threshold, counts, nodes, how)
        return _compact(tree, threshold, counts, values_of)


def _checked(x: Floats, y: npt.NDArray[np.integer], values: Sequence[int]) -> tuple[Floats, Ints, Ints]:
    """Return x, y and values in the form that the kernels take; raise GroveError for invalid rows."""
    x = np.asarray(x, dtype=np.float64)
    codes: Ints = np.asarray(y, dtype=np.int64)
    if x.ndim != 2 or codes.ndim != 1 or len(x) != len(codes) or not x.size:
        msg = f"x{list(x.shape)} and y{list(codes.shape)} must be [n, d] and [n], with n and d at least 1"
        raise GroveError(msg)
    values_of = np.array(values if len(values) else [0] * x.shape[1], dtype=np.int64)
    if len(values_of) != x.shape[1] or values_of.min() < 0:
        msg = (
            f"values={list(values)} must hold the number of values of each of {x.shape[1]} attributes, "
            "0: numeric"
        )
        raise GroveError(msg)
    if codes.min() < 0:
        msg = f"y={codes.min()} must be a class code from 0 on: leave rows without a label out"
        raise GroveError(msg)
    for a in range(x.shape[1]):
        values_known = x[~np.isnan(x[:, a]), a]
        if np.isinf(values_known).any():
            msg = (
                f"x[:, {a}] must be finite or NaN (missing); it has {values_known[np.isinf(values_known)][0]}"
            )
            raise GroveError(msg)
        if (
            values_of[a]
            and (
                (values_known < 0) | (values_known >= values_of[a]) | (values_known != np.floor(values_known))
            ).any()
        ):
            msg = f"x[:, {a}] must have codes from 0 to {values_of[a] - 1}, or NaN (missing)"
            raise GroveError(msg)
    return x, codes, values_of


def _compact(tree: Ints, threshold: Floats, counts: Ints, values: Ints) -> C45Tree:
    """Return the nodes below the root, level by level."""
    kept = [0]
    for node in kept:
        if tree[node, growing.ATTRIBUTE] >= 0:
            first = tree[node, growing.FIRST]
            kept.extend(range(first, first + tree[node, growing.CHILDREN]))
    nodes = tree[kept]
    children = np.where(nodes[:, growing.ATTRIBUTE] >= 0, nodes[:, growing.CHILDREN], 0)
    inner = children > 0
    return C45Tree(
        attribute=nodes[:, growing.ATTRIBUTE].copy(),
        threshold=np.where(inner, threshold[kept], 0.0),
        first=np.where(inner, 1 + np.cumsum(children) - children, 0),
        children=children,
        missing=np.where(inner, nodes[:, growing.MISSING], 0),
        label=nodes[:, growing.CLASS].copy(),
        counts=counts[kept],
        values=values,
    )


@kernel("void(float64[:, ::1], int64[:, ::1], float64[::1], int64[::1], int64[::1])", alone=True)
def route(x, nodes, threshold, values, at) -> None:
    """Write the leaf of each row; nodes: int64[node, 4]: attribute, first, children, missing."""
    for row in range(len(x)):
        node = 0
        while nodes[node, 0] >= 0:
            a = nodes[node, 0]
            child = growing.branch_of(x[row, a], values[a], threshold[node], nodes[node, 3])
            if not 0 <= child < nodes[node, 2]:
                child = nodes[node, 3]
            node = nodes[node, 1] + child
        at[row] = node
