"""Histogram observer: counts per class and bin of a numeric attribute; bin edges are thresholds."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from core.errors import ParameterError
from core.kernels.jit import kernel, tail
from core.kernels.records import Record, word, words_after
from core.numeric import quantiles
from core.numeric.special import LN2, log2
from core.observers.base import Observer
from core.plugin import choice, count, number

PROBLEMS: Final = ("first values of an attribute must be a whole number of them, at most warm_up",)


@dataclass(frozen=True, slots=True)
class Plugin(Observer):
    """``"numeric_observer": "histogram", "bins": 32``: exact branch masses, thresholds chosen early.

    Every leaf of a model counts in the same bins [D3] (Pfahringer, Holmes, Kirkby 2008). ``edges="quantile"``
    (the default) sets the edges of an attribute so that they cut its first ``warm_up`` values into equal
    parts, equal edges merged. These first values are not counted, neither in the bins nor in the n of the
    bound, so that nothing splits before. ``"range"`` spaces the edges evenly in the range that the schema
    declares for an attribute (``{"name": "age", "range": [0, 120]}``), or else between ``low`` and ``high``.
    Values outside count in the first or last bin. Memory: 8·bins·classes·attributes bytes a leaf, and
    8·(warm_up + bins)·attributes a model. Naive Bayes uses Laplace's (n_bc + 1)/(n_c + bins).
    """

    bins: int = count(32, at_least=2, at_most=1024)
    """Number of bins of each attribute."""
    warm_up: int = count(1000, at_least=2, at_most=100_000)
    """Number of first values of an attribute, from which quantiles are computed."""
    edges: str | None = choice("quantile", "quantile", "range")
    """Source of the edges: quantiles of the first values, or even steps from `low` to `high`."""
    low: float = number(0.0)
    """Lower end of the range of attributes whose schema declares none."""
    high: float = number(1.0)
    """Upper end of the range of attributes whose schema declares none."""

    NUMBERS: ClassVar[tuple[str, ...]] = ("bins", "warm_up", "is_by_range")

    kind: ClassVar[str] = "numeric"
    axes: ClassVar[tuple[str | int, ...]] = ("class", "bin", "attribute")

    def __post_init__(self) -> None:
        """Check the parameters, and that `low` is below `high`."""
        super(Plugin, self).__post_init__()
        if not self.low < self.high:
            msg = f"low={self.low} must be below high={self.high}"
            raise ParameterError(msg)

    def constants(self) -> tuple[float, ...]:
        """Return the two sizes, and 1.0 if the edges are evenly spaced in a range, else 0.0."""
        return float(self.bins), float(self.warm_up), float(self.edges == "range")

    @property
    def range(self) -> tuple[float, float]:
        return self.low, self.high

    def sizes(self) -> dict[str, int]:
        return {"bin": self.bins}

    def shared(self, attributes: int) -> int:
        """Return the number of words of edges and first values."""
        return attributes * (Edges.SIZE + self.bins - 1 + self.warm_up) if self.edges == "quantile" else 0


class BinCounts(Record):
    """The statistics of the numeric attributes at a leaf."""

    words: Any = words_after(float, "[class][bin][attribute]")

    def of_class(self, plan: Any, p: Any, c: int) -> Any:
        """Return the counts of one class, float64[bin][attribute]."""
        return tail(self.words, c * int(p.bins) * plan.numeric)


class Edges(Record):
    """The model's words of one numeric attribute."""

    seen: float = word("number of first values")
    edges: Any = words_after(
        float, "edges, ascending, then NaN; after bins - 1 of them the first values, sorted"
    )


SEEN_WORDS: Final = Edges.SIZE


@kernel
def _edges_of(plan, p, statistics: Record, position: int) -> Edges:
    """Return the words of an attribute in the model that holds a leaf's statistics."""
    size = SEEN_WORDS + int(p.bins) - 1 + int(p.warm_up)
    return Edges(statistics.ints, statistics.floats, plan.shared + position * size)


@kernel
def _edge(plan, p, attribute: Edges, position: int, i: int) -> float:
    """Return edge number i of an attribute, NaN if it has fewer."""
    if p.is_by_range != 0.0:
        share = (i + 1.0) / p.bins
        ends = plan.numeric_range(position)
        return ends.low * (1.0 - share) + ends.high * share
    return attribute.edges[i]


@kernel
def _is_ready(p, attribute: Edges) -> bool:
    """Return whether the edges of an attribute are set."""
    return bool(p.is_by_range != 0.0 or attribute.seen >= p.warm_up)


@kernel
def _bin_of(plan, p, attribute: Edges, position: int, x: float) -> int:
    """Return the bin of a value: the number of edges below it."""
    low, high = 0, int(p.bins) - 1
    while low < high:
        middle = (low + high) // 2
        if _edge(plan, p, attribute, position, middle) < x:  # never below NaN
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def _prepare(p, attribute: Edges, x: float) -> None:
    """Insert a first value in order; after the last first value compute the edges."""
    bins, last = int(p.bins), int(p.warm_up)
    words, first_value, n = attribute.edges, bins - 1, int(attribute.seen)
    quantiles.put(words, first_value, n, x)
    attribute.seen = n + 1.0
    if n + 1 < last:
        return
    quantiles.cut(words, first_value, last, bins, 0)
    for i in range(last):
        words[first_value + i] = 0.0


@kernel
def update_numeric(plan, p, statistics: BinCounts, label: int, xs, weight: float) -> bool:
    """Take in one record; xs: float64[attribute], not finite = missing."""
    whole = True
    d = plan.numeric
    counts = statistics.of_class(plan, p, label)
    for a in range(d):
        x = xs[a]
        if x - x == 0.0:
            attribute = _edges_of(plan, p, statistics, a)
            if _is_ready(p, attribute):
                counts[_bin_of(plan, p, attribute, a, x) * d + a] += weight
            else:
                _prepare(p, attribute, x)
                whole = False
    return whole


@kernel
def candidates_numeric(plan, p) -> int:
    """Return the number of edges per attribute."""
    return int(p.bins) - 1


@kernel
def propose_numeric(plan, p, statistics: BinCounts, k: int, start: int, end: int, candidates) -> None:
    """Write edges and class masses on both sides; columns (a - start)·edges + i.

    An edge with all weight on one side is no candidate.
    """
    d = plan.numeric
    edges = candidates_numeric(plan, p)
    left, right, thresholds = candidates.left, candidates.right, candidates.value
    for a in range(start, end):
        column = (a - start) * edges
        for c in range(k):
            counts = statistics.of_class(plan, p, c)
            total = 0.0
            for b in range(edges + 1):
                total += counts[b * d + a]
            below = 0.0
            for i in range(edges):
                below += counts[i * d + a]
                left[c, column + i] = below
                right[c, column + i] = max(total - below, 0.0)
        attribute = _edges_of(plan, p, statistics, a)
        ready = _is_ready(p, attribute)
        for i in range(column, column + edges):
            low_side, high_side = 0.0, 0.0
            for c in range(k):
                low_side += left[c, i]
                high_side += right[c, i]
            thresholds[i] = math.nan
            if ready and low_side > 0.0 and high_side > 0.0:
                thresholds[i] = _edge(plan, p, attribute, a, i - column)


@kernel
def masses_numeric(plan, p, statistics: BinCounts, k: int, position: int, value: float, left, right) -> None:
    """Write the class masses at or below an edge of attribute ``position`` and above it."""
    d, bins = plan.numeric, int(p.bins)
    last = _bin_of(plan, p, _edges_of(plan, p, statistics, position), position, value)
    for c in range(k):
        counts = statistics.of_class(plan, p, c)
        left[c], right[c] = 0.0, 0.0
        for b in range(bins):
            mass = counts[b * d + position]
            if b <= last:
                left[c] += mass
            else:
                right[c] += mass
        if left[c] == 0.0:
            left[c] = -1.0
        if right[c] == 0.0:
            right[c] = -1.0


@kernel
def _share(plan, p, statistics: BinCounts, c: int, a: int, in_bin: int) -> float:
    """Return Laplace's share of a bin of numeric attribute a in a class."""
    d, bins = plan.numeric, int(p.bins)
    counts = statistics.of_class(plan, p, c)
    total = 0.0
    for b in range(bins):
        total += counts[b * d + a]
    return (counts[in_bin * d + a] + 1.0) / (total + bins)


@kernel
def log_densities_numeric(plan, p, statistics: BinCounts, k: int, xs, scratch, out) -> None:
    """Add ln of the bins' shares to out[c]; missing values and attributes without edges add nothing."""
    for a in range(plan.numeric):
        x = xs[a]
        attribute = _edges_of(plan, p, statistics, a)
        if x - x == 0.0 and _is_ready(p, attribute):
            in_bin = _bin_of(plan, p, attribute, a, x)
            for c in range(k):
                out[c] += LN2 * log2(_share(plan, p, statistics, c, a, in_bin))


@kernel
def densities_numeric(plan, p, statistics: BinCounts, k: int, xs, out) -> None:
    """Multiply out[c] by the bins' shares (MOA has no such observer; its votes are products)."""
    for a in range(plan.numeric):
        x = xs[a]
        attribute = _edges_of(plan, p, statistics, a)
        if x - x == 0.0 and _is_ready(p, attribute):
            in_bin = _bin_of(plan, p, attribute, a, x)
            for c in range(k):
                out[c] *= _share(plan, p, statistics, c, a, in_bin)


@kernel
def problem_shared(plan, p, model) -> int:
    """Return the number of the sentence in PROBLEMS that applies to the model's words, 0: none."""
    if p.is_by_range != 0.0:
        return 0
    for position in range(plan.numeric):
        seen = _edges_of(plan, p, model, position).seen
        if not 0.0 <= seen <= p.warm_up or seen != math.floor(seen):
            return 1
    return 0
