"""CART with the defaults of R's rpart: Gini, 20 rows to split, 7 to a leaf, cp = 0.01.

A tree built from all its labelled instances at once (Breiman, Friedman, Olshen, Stone 1984; Therneau and
Atkinson, *An Introduction to Recursive Partitioning Using the RPART Routines*). Tests are ``value <=
midpoint``; the test with the largest decrease of the Gini impurity is taken, ties go to the first attribute
and the smallest threshold. The grown tree is pruned by the cost complexity of its training errors: the result
is the smallest of the subtrees with the least ``errors + cp · root errors · leaves``. No missing values,
hence no surrogates; no nominal attributes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from core.errors import GroveError
from core.layout.model import Floats, Ints

MAX_DEPTH: Final = 30
"""rpart's limit of the depth."""
MIN_GAIN: Final = 1e-12
"""Least gain of a split, as a share of the node's impurity: above rounding errors of a gain of 0."""


@dataclass(frozen=True, slots=True)
class CartTree:
    """A pruned tree; parents come before children, siblings side by side. Node 0 is the root."""

    attribute: Ints
    """int64[node]: attribute of the test, -1 in a leaf."""
    threshold: Floats
    """float64[node]: threshold; values that are not above it go to the first child."""
    first: Ints
    """int64[node]: first child; the second follows it."""
    counts: Ints
    """int64[node, class]: training rows."""

    @property
    def leaves(self) -> int:
        return int((self.attribute < 0).sum())

    def predict(self, x: Floats) -> Ints:
        """Return int64[n]: class codes of the rows of x (float64[n, d]), the first of equal classes."""
        at = np.zeros(len(x), dtype=np.int64)
        rows = np.arange(len(x))
        while len(rows):
            rows = rows[self.attribute[at[rows]] >= 0]
            node = at[rows]
            right = x[rows, self.attribute[node]] > self.threshold[node]
            at[rows] = self.first[node] + right
        codes: Ints = self.counts.argmax(axis=1)[at]
        return codes


@dataclass(frozen=True, slots=True)
class Cart:
    """The parameters of CART; ``fit`` builds a tree.

    >>> import numpy as np
    >>> x = np.repeat(np.array([[1.0], [2.0]]), 10, axis=0)
    >>> Cart().fit(x, np.repeat([0, 1], 10)).threshold[0]
    np.float64(1.5)
    """

    min_split: int = 20
    """Least number of rows of a node that is split."""
    min_bucket: int = 7
    """Least number of rows of a leaf."""
    cp: float = 0.01
    """Cost of a leaf, as a share of the errors of the root."""

    def __post_init__(self) -> None:
        if self.min_split < 2 or self.min_bucket < 1:
            msg = f"min_split={self.min_split} must be at least 2, min_bucket={self.min_bucket} at least 1"
            raise GroveError(msg)
        if not 0.0 <= self.cp <= 1.0:
            msg = f"cp={self.cp} must be from 0 to 1"
            raise GroveError(msg)

    def fit(self, x: Floats, y: npt.NDArray[np.integer]) -> CartTree:
        """Return the tree of labelled rows: x float64[n, d], finite; y int[n], codes from 0.

        Raises GroveError for invalid rows.
        """
        x, codes = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.int64)
        if x.ndim != 2 or codes.shape != (len(x),) or not x.size:
            msg = f"x{list(x.shape)} and y{list(codes.shape)} must be [n, d] and [n], with n and d at least 1"
            raise GroveError(msg)
        if not np.isfinite(x).all() or codes.min() < 0:
            msg = "x must be finite and y have codes from 0 on: this tree takes no missing values"
            raise GroveError(msg)
        classes = int(codes.max()) + 1
        members = np.eye(classes, dtype=np.int64)[codes]
        rows = [np.arange(len(codes))]
        depth, attribute, threshold, first, counts = [0], [-1], [0.0], [0], [members.sum(axis=0)]
        for node, here in enumerate(rows):  # grows during the loop
            test = self._best(x[here], members[here]) if depth[node] < MAX_DEPTH else None
            if test is None:
                continue
            attribute[node], threshold[node] = test
            first[node] = len(rows)
            goes_right = x[here, attribute[node]] > threshold[node]
            for part in (here[~goes_right], here[goes_right]):
                rows.append(part)
                depth.append(depth[node] + 1)
                attribute.append(-1)
                threshold.append(0.0)
                first.append(0)
                counts.append(members[part].sum(axis=0))
        return _pruned(np.array(attribute), np.array(threshold), np.array(first), np.array(counts), self.cp)

    def _best(self, x: Floats, members: Ints) -> tuple[int, float] | None:
        """Return attribute and threshold of the best test, None without one; members: int64[n, class]."""
        n, totals = len(x), members.sum(axis=0)
        if n < max(self.min_split, 2 * self.min_bucket) or totals.max() == n:
            return None
        # Σ n_k²/n over both sides: n times the Gini impurity is n less that.
        best, test = (totals**2).sum() / n + MIN_GAIN * n, None
        sizes = np.arange(1, n)
        for a in range(x.shape[1]):
            order = np.argsort(x[:, a], kind="stable")
            values = x[order, a]
            left = np.cumsum(members[order], axis=0)[:-1]
            purity = (left**2).sum(axis=1) / sizes + ((totals - left) ** 2).sum(axis=1) / (n - sizes)
            allowed = (values[:-1] < values[1:]) & (np.minimum(sizes, n - sizes) >= self.min_bucket)
            purity[~allowed] = -1.0
            i = int(purity.argmax())
            if purity[i] > best:
                middle = 0.5 * values[i] + 0.5 * values[i + 1]
                best, test = purity[i], (a, float(middle if middle < values[i + 1] else values[i]))
        return test


def _pruned(attribute: Ints, threshold: Floats, first: Ints, counts: Ints, cp: float) -> CartTree:
    """Return the smallest subtree of the least cost complexity; children come after their parents."""
    errors = counts.sum(axis=1) - counts.max(axis=1)
    leaf_cost = cp * errors[0]
    cost = errors + leaf_cost
    stays = np.zeros(len(attribute), dtype=bool)
    for node in range(len(attribute) - 1, -1, -1):
        if attribute[node] >= 0:
            below = cost[first[node]] + cost[first[node] + 1]
            stays[node] = below < cost[node] - 1e-9 * max(cost[node], 1.0)
            cost[node] = min(cost[node], below)
    kept = [0]
    for node in kept:
        if stays[node]:
            kept += [first[node], first[node] + 1]
    inner = stays[kept]
    return CartTree(
        attribute=np.where(inner, attribute[kept], -1),
        threshold=np.where(inner, threshold[kept], 0.0),
        first=np.where(inner, 2 * np.cumsum(inner) - 1, 0),
        counts=counts[kept],
    )
