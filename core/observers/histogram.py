"""Histogram observer: counts per class and bin of a numeric attribute; bin edges are thresholds."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Final

from core.errors import ParameterError
from core.kernels.jit import kernel
from core.numeric import quantiles
from core.numeric.special import LN2, log2
from core.observers.base import Observer
from core.plugin import choice, count, number
from core.tree import layout

# Parameters of the kernels
BINS: Final = 0
WARM_UP: Final = 1
BY_RANGE: Final = 2

# The model's words of one attribute: number of values, edges (ascending, then NaN), first values (sorted)
SEEN: Final = 0
EDGES: Final = 1

PROBLEMS: Final = ("first values of an attribute must be a whole number of them, at most warm_up",)


@dataclass(frozen=True, slots=True)
class Plugin(Observer):
    """``"numeric_observer": "histogram", "bins": 32``: exact branch masses, thresholds chosen early.

    Every leaf of a model counts in the same bins (ALGORITHMS section 2.4b [D3]; Pfahringer, Holmes, Kirkby
    2008). ``edges="quantile"`` (the default) sets the edges of an attribute so that they cut its first
    ``warm_up`` values into equal parts, equal edges merged. These first values are not counted, neither in
    the bins nor in the n of the bound, so that nothing splits before. ``"range"`` spaces the edges evenly in
    the range that the schema declares for an attribute (``{"name": "age", "range": [0, 120]}``), or else
    between ``low`` and ``high``. Values outside count in the first or last bin. Memory:
    8·bins·classes·attributes bytes a leaf, and 8·(warm_up + bins)·attributes a model. Naive Bayes uses
    Laplace's (n_bc + 1)/(n_c + bins).
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

    kind: ClassVar[str] = "numeric"
    axes: ClassVar[tuple[str | int, ...]] = ("class", "bin", "attribute")

    def __post_init__(self) -> None:
        """Check the parameters, and that `low` is below `high`."""
        super(Plugin, self).__post_init__()
        if not self.low < self.high:
            msg = f"low={self.low} must be below high={self.high}"
            raise ParameterError(msg)

    def constants(self) -> tuple[float, ...]:
        """Return the parameters in the order of the kernels' words."""
        return float(self.bins), float(self.warm_up), float(self.edges == "range")

    @property
    def range(self) -> tuple[float, float]:
        return self.low, self.high

    def sizes(self) -> dict[str, int]:
        return {"bin": self.bins}

    def shared(self, attributes: int) -> int:
        """Return the number of words of edges and first values."""
        return attributes * (EDGES + self.bins - 1 + self.warm_up) if self.edges == "quantile" else 0


@kernel
def _block(plan, params, position: int) -> int:
    """Return the first of the model's words of an attribute."""
    first = plan[layout.PLAN_NUMERIC_OBSERVER + 1]
    words = EDGES + int(params[first + BINS]) - 1 + int(params[first + WARM_UP])
    return plan[layout.PLAN_SHARED] + position * words


@kernel
def _edge(plan, params, floats, position: int, i: int) -> float:
    """Return edge number i of an attribute, NaN if it has fewer."""
    first = plan[layout.PLAN_NUMERIC_OBSERVER + 1]
    if params[first + BY_RANGE] != 0.0:
        share = (i + 1.0) / params[first + BINS]
        ends = plan[layout.PLAN_RANGES] + 2 * position
        return params[ends] * (1.0 - share) + params[ends + 1] * share
    return floats[_block(plan, params, position) + EDGES + i]


@kernel
def _is_ready(plan, params, floats, position: int) -> bool:
    """Return whether the edges of an attribute are set."""
    first = plan[layout.PLAN_NUMERIC_OBSERVER + 1]
    if params[first + BY_RANGE] != 0.0:
        return True
    return floats[_block(plan, params, position) + SEEN] >= params[first + WARM_UP]


@kernel
def _bin_of(plan, params, floats, position: int, x: float) -> int:
    """Return the bin of a value: the number of edges below it."""
    low, high = 0, int(params[plan[layout.PLAN_NUMERIC_OBSERVER + 1] + BINS]) - 1
    while low < high:
        middle = (low + high) // 2
        if _edge(plan, params, floats, position, middle) < x:  # never below NaN
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def _prepare(plan, params, floats, position: int, x: float) -> None:
    """Insert a first value in order; after the last first value compute the edges."""
    first = plan[layout.PLAN_NUMERIC_OBSERVER + 1]
    bins, wanted = int(params[first + BINS]), int(params[first + WARM_UP])
    block = _block(plan, params, position)
    edges, values, n = block + EDGES, block + EDGES + bins - 1, int(floats[block + SEEN])
    quantiles.put(floats, values, n, x)
    floats[block + SEEN] = n + 1.0
    if n + 1 < wanted:
        return
    quantiles.cut(floats, values, wanted, bins, edges)
    for i in range(wanted):
        floats[values + i] = 0.0


@kernel
def update_numeric(plan, params, floats, at: int, label: int, xs, weight: float) -> bool:
    """Take in one record; xs: float64[attribute], not finite = missing."""
    whole = True
    d = plan[layout.PLAN_NUMERIC]
    bins = int(params[plan[layout.PLAN_NUMERIC_OBSERVER + 1] + BINS])
    for a in range(d):
        x = xs[a]
        if x - x == 0.0:
            if _is_ready(plan, params, floats, a):
                floats[at + (label * bins + _bin_of(plan, params, floats, a, x)) * d + a] += weight
            else:
                _prepare(plan, params, floats, a, x)
                whole = False
    return whole


@kernel
def candidates_numeric(plan, params) -> int:
    """Return the number of edges per attribute."""
    return int(params[plan[layout.PLAN_NUMERIC_OBSERVER + 1] + BINS]) - 1


@kernel
def propose_numeric(plan, params, floats, at: int, k: int, start: int, end: int, left, right, value) -> None:
    """Write edges and class masses on both sides; left, right: float64[class, (a - start)·edges + i].

    An edge with all weight on one side is no candidate.
    """
    d = plan[layout.PLAN_NUMERIC]
    edges = candidates_numeric(plan, params)
    for a in range(start, end):
        column = (a - start) * edges
        for c in range(k):
            total = 0.0
            for b in range(edges + 1):
                total += floats[at + (c * (edges + 1) + b) * d + a]
            below = 0.0
            for i in range(edges):
                below += floats[at + (c * (edges + 1) + i) * d + a]
                left[c, column + i] = below
                right[c, column + i] = max(total - below, 0.0)
        ready = _is_ready(plan, params, floats, a)
        for i in range(column, column + edges):
            low_side, high_side = 0.0, 0.0
            for c in range(k):
                low_side += left[c, i]
                high_side += right[c, i]
            value[i] = math.nan
            if ready and low_side > 0.0 and high_side > 0.0:
                value[i] = _edge(plan, params, floats, a, i - column)


@kernel
def masses_numeric(plan, params, floats, at: int, k: int, position: int, value: float, left, right) -> None:
    """Write the class masses at or below an edge of attribute ``position`` and above it."""
    d, bins = plan[layout.PLAN_NUMERIC], candidates_numeric(plan, params) + 1
    last = _bin_of(plan, params, floats, position, value)
    for c in range(k):
        left[c], right[c] = 0.0, 0.0
        for b in range(bins):
            mass = floats[at + (c * bins + b) * d + position]
            if b <= last:
                left[c] += mass
            else:
                right[c] += mass
        if left[c] == 0.0:
            left[c] = -1.0
        if right[c] == 0.0:
            right[c] = -1.0


@kernel
def _shares(plan, params, floats, at: int, c: int, a: int, x: float) -> float:
    """Return Laplace's share of a value's bin in a class."""
    d, bins = plan[layout.PLAN_NUMERIC], candidates_numeric(plan, params) + 1
    total = 0.0
    for b in range(bins):
        total += floats[at + (c * bins + b) * d + a]
    own = floats[at + (c * bins + _bin_of(plan, params, floats, a, x)) * d + a]
    return (own + 1.0) / (total + bins)


@kernel
def log_densities_numeric(plan, params, floats, at: int, k: int, xs, scratch, out) -> None:
    """Add ln of the bins' shares to out[c]; missing values and attributes without edges add nothing."""
    for a in range(plan[layout.PLAN_NUMERIC]):
        x = xs[a]
        if x - x == 0.0 and _is_ready(plan, params, floats, a):
            for c in range(k):
                out[c] += LN2 * log2(_shares(plan, params, floats, at, c, a, x))


@kernel
def densities_numeric(plan, params, floats, at: int, k: int, xs, out) -> None:
    """Multiply out[c] by the bins' shares (MOA has no such observer; its votes are products)."""
    for a in range(plan[layout.PLAN_NUMERIC]):
        x = xs[a]
        if x - x == 0.0 and _is_ready(plan, params, floats, a):
            for c in range(k):
                out[c] *= _shares(plan, params, floats, at, c, a, x)


@kernel
def problem_shared(plan, params, floats) -> int:
    """Return the number of the sentence in PROBLEMS that applies to the model's words, 0: none."""
    first = plan[layout.PLAN_NUMERIC_OBSERVER + 1]
    if params[first + BY_RANGE] != 0.0:
        return 0
    for position in range(plan[layout.PLAN_NUMERIC]):
        seen = floats[_block(plan, params, position) + SEEN]
        if not 0.0 <= seen <= params[first + WARM_UP] or seen != math.floor(seen):
            return 1
    return 0
