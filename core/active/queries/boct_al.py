"""BOCT-AL: labels go to the leaves whose true risk may be largest, distributed over all leaves of a tree."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from core.active.queries.base import AT_RANDOM, NO, UNKNOWN, YES, Query
from core.kernels.jit import called, kernel
from core.numeric import rng
from core.numeric.credible import LEAST_DELTA, largest_risk
from core.numeric.sorting import sort_pairs
from core.plugin import choice, number
from core.tree import layout

DELTA: Final = 0
EXPLORE: Final = 1
EXCESS: Final = 2
"""Words of ``params[at:]``."""

# State: the record at which chances are distributed again, and the number of leaves at the last distribution
DUE: Final = 0
LEAVES: Final = 1

# The strategy's words in a row of the table of leaves: the bound on the leaf's risk, the labels and errors
# that it was computed from, and the chance of a record that ends there
RISK: Final = layout.ROW_NOTES
RISK_LABELS: Final = layout.ROW_NOTES + 1
RISK_ERRORS: Final = layout.ROW_NOTES + 2
CHANCE: Final = layout.ROW_NOTES + 3

PROBLEMS: Final = ("the next sharing out, and leaves of the last one, must be from 0 to 2**53",)
MOST: Final = 1 << 53


@dataclass(frozen=True, slots=True)
class Plugin(Query):
    """Request labels in the leaves whose bound on their share of the true risk is largest.

    ``{"name": "boct_al", "delta": 0.05, "explore": 0.1}`` (Collet and Pietquin 2015, section IV; ALGORITHMS
    section 13) [D30].

    A leaf of size W scores W times the risk that its label exceeds with probability ``delta`` (equation 7).
    With ``risk="mbinomial"`` it scores W times max(0, 2q - 1) for a bound q: the possible cost of its label
    beyond the cost of the better label (Collet and Pietquin 2014). A leaf of two even classes has a high risk
    that no label lowers: its score is high by the bound, and low by the excess. Leaves without excess are
    ordered by the bound.

    The paper draws from the leaf with the highest score. In a stream records cannot be chosen, so the leaves
    with the highest scores get all labels until their share of the records is the budget's rate B; the leaf
    at the boundary gets a part, the remaining leaves none ("water filling"). A part ``explore`` of B goes to
    all leaves, so that a wrong estimate can recover, and every label has an importance. The rate over all
    leaves is exactly B.

    Scores are computed and chances distributed again once in n records, where n is the number of leaves, and
    at once after a split: the cost of a record is logarithmic in the number of leaves. Needs a learner with a
    table of leaves (``boct``).
    """

    delta: float = number(0.05, at_least=LEAST_DELTA, below=1.0)
    """Probability with which a leaf's risk exceeds its bound: the paper's δ₂."""
    explore: float = number(0.1, at_least=0.0, at_most=1.0)
    """Share of the rate that goes to all leaves; with 0 the labels have no importance."""
    risk: str = choice("total", "total", "mbinomial")
    """Score of a leaf: a bound on its risk, or on its risk beyond the least that a label could have."""

    @property
    def columns(self) -> int:
        """Return LEAVES: the strategy looks at all leaves."""
        return layout.LEAVES

    def initial(self) -> tuple[float, ...]:
        return (0.0, 0.0)

    def constants(self) -> tuple[float, ...]:
        """Return the parameters in the order of the kernels' words."""
        return (self.delta, self.explore, float(self.risk == "mbinomial"))


@called
def sort_leaves(order, score, node, n: int) -> None:
    """Sort leaf numbers by descending score, equal scores by node; n entries each."""
    key, other_key, other = np.empty(n), np.empty(n), np.empty(n, dtype=np.int64)
    for k in range(n):
        key[k] = float(node[order[k]])
    sort_pairs(key, order, n, other_key, other)
    sort_again(order, score, n)


@called
def sort_again(order, score, n: int) -> None:
    """Sort leaf numbers by descending score; equal scores keep their order."""
    key, other_key, other = np.empty(n), np.empty(n), np.empty(n, dtype=np.int64)
    for k in range(n):
        key[k] = -score[order[k]]
    sort_pairs(key, order, n, other_key, other)


@called
def fill(order, size, n: int, rate: float, floor: float, chance) -> None:
    """Write the chance of each leaf: floor + (1 - floor)·w, with w from water filling at the rest.

    order: int64[n], leaves by descending score; size: float64[n]; chance: float64[n], by leaf.
    """
    total = 0.0
    for leaf in range(n):
        total += size[leaf]
    left = (rate - floor) / (1.0 - floor) * total if floor < 1.0 else 0.0
    for k in range(n):
        leaf = order[k]
        taken = min(size[leaf], left)
        filled = taken / size[leaf] if size[leaf] > 0.0 else 0.0
        chance[leaf] = floor + (1.0 - floor) * filled
        left -= taken


@kernel
def excess_of(risk: float) -> float:
    """Return the risk of a label beyond the risk of the better label; ``risk``: share of the rarer class."""
    return max(0.0, 2.0 * risk - 1.0)


@called
def share_out(
    floats, ints, table: int, stride: int, n: int, delta: float, excess: bool, rate: float, floor: float
) -> None:
    """Write the chance of each leaf into its row of the table; excess: leaves score by ``excess_of``."""
    score, size, chance = np.empty(n), np.empty(n), np.empty(n)
    order, node = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64)
    for leaf in range(n):
        row = table + leaf * stride
        labels, errors = floats[row + layout.ROW_LABELS], floats[row + layout.ROW_ERRORS]
        is_known = floats[row + RISK] > 0.0 and floats[row + RISK_LABELS] == labels
        if not is_known or floats[row + RISK_ERRORS] != errors:
            floats[row + RISK] = largest_risk(labels, errors, delta)
            floats[row + RISK_LABELS], floats[row + RISK_ERRORS] = labels, errors
        size[leaf] = max(floats[row + layout.ROW_SIZE], 0.0)
        score[leaf] = size[leaf] * floats[row + RISK]
        order[leaf], node[leaf] = leaf, ints[row + layout.ROW_NODE]
    sort_leaves(order, score, node, n)
    if excess:
        for leaf in range(n):
            score[leaf] = size[leaf] * excess_of(floats[table + leaf * stride + RISK])
        sort_again(order, score, n)
    fill(order, size, n, rate, floor, chance)
    for leaf in range(n):
        floats[table + leaf * stride + CHANCE] = chance[leaf]


@kernel
def decide_at_leaf(
    plan,
    params,
    at: int,
    ints,
    floats,
    state: int,
    limit: float,
    table: int,
    stride: int,
    leaves: int,
    leaf: int,
    t: int,
) -> tuple[int, float]:
    """Draw for record t, with the chance of its leaf."""
    floor = params[at + EXPLORE] * limit
    chance = limit
    if leaves > 1:
        row = table + leaf * stride
        chance = floats[row + CHANCE]
        if t >= ints[state + DUE] or leaves != ints[state + LEAVES] or not 0.0 <= chance <= 1.0:
            excess = params[at + EXCESS] != 0.0
            share_out(floats, ints, table, stride, leaves, params[at + DELTA], excess, limit, floor)
            ints[state + DUE], ints[state + LEAVES] = t + leaves, leaves
            chance = floats[row + CHANCE]
        chance = max(chance, floor)
    u = rng.uniform(plan[layout.PLAN_QUERY_KEY], t << rng.DRAW_BITS)
    answer = AT_RANDOM if u < floor or (leaves == 1 and u < limit) else YES if u < chance else NO
    return answer, chance if floor > 0.0 or leaves == 1 else UNKNOWN


@kernel
def problem(params, at: int, ints, floats, state: int) -> int:
    return 0 if 0 <= ints[state + DUE] <= MOST and 0 <= ints[state + LEAVES] <= MOST else 1


def chances(scores: Any, sizes: Any, rate: float, explore: float = 0.1) -> Any:
    """Return the probability of a request per leaf, float64[leaf]; scores, sizes: float64[leaf]."""
    sizes = np.ascontiguousarray(sizes, dtype=np.float64)
    order = np.lexsort((np.arange(len(sizes)), -np.asarray(scores, dtype=np.float64))).astype(np.int64)
    out = np.empty(len(sizes))
    _fill(order, sizes, rate, explore * rate, out)
    return out


@kernel("void(int64[::1], float64[::1], float64, float64, float64[::1])", alone=True)
def _fill(order, size, rate: float, floor: float, out) -> None:
    fill(order, size, len(order), rate, floor, out)
