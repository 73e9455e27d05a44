"""BOCT-AL: labels go to the leaves whose true risk may be largest, distributed over all leaves of a tree."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Final

import numpy as np

from core.active.queries.base import AT_RANDOM, NO, UNKNOWN, YES, Query
from core.kernels.jit import called, kernel
from core.kernels.records import Record, word
from core.layout.learning import LEAVES, NOTES_AT, LeafRow, LeafTable, leaf_row
from core.layout.model import ModelHeader
from core.layout.plan import PlanRecord
from core.numeric import rng
from core.numeric.credible import LEAST_DELTA, largest_risk
from core.numeric.sorting import sort_pairs
from core.plugin import choice, number
from core.problems import MOST, range_problem, range_rules


class ChancesState(Record):
    """The state of the strategy: its last distribution of chances over the leaves."""

    due: int = word("number of the record at which chances are distributed again", low=0, high=MOST)
    leaves: int = word("number of leaves at the last distribution", low=0, high=MOST)


class RiskNotes(Record):
    """The strategy's words in a row of the table of leaves."""

    risk: float = word("bound on the leaf's risk; 0: not computed")
    labels: float = word("number of labels that it was computed from")
    errors: float = word("number of errors that it was computed from")
    chance: float = word("probability of a request for a record that ends in the leaf")


PROBLEMS: Final = range_rules(ChancesState)
state_ranges = range_problem(ChancesState)


@dataclass(frozen=True, slots=True)
class Plugin(Query):
    """Request labels in the leaves whose bound on their share of the true risk is largest.

    ``{"name": "boct_al", "delta": 0.05, "explore": 0.1}`` (Collet and Pietquin 2015, section IV) [D30].

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

    NUMBERS: ClassVar[tuple[str, ...]] = ("delta", "explore", "is_mbinomial")

    delta: float = number(0.05, at_least=LEAST_DELTA, below=1.0)
    """Probability with which a leaf's risk exceeds its bound: the paper's δ₂."""
    explore: float = number(0.1, at_least=0.0, at_most=1.0)
    """Share of the rate that goes to all leaves; with 0 the labels have no importance."""
    risk: str = choice("total", "total", "mbinomial")
    """Score of a leaf: a bound on its risk, or on its risk beyond the least that a label could have."""

    @property
    def columns(self) -> int:
        """Return LEAVES: the strategy looks at all leaves."""
        return LEAVES

    def initial(self) -> tuple[float, ...]:
        return (0.0, 0.0)

    def constants(self) -> tuple[float, ...]:
        """Return the parameters in the order of NUMBERS."""
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
    mass_left = (rate - floor) / (1.0 - floor) * total if floor < 1.0 else 0.0
    for k in range(n):
        leaf = order[k]
        mass = min(size[leaf], mass_left)
        filled = mass / size[leaf] if size[leaf] > 0.0 else 0.0
        chance[leaf] = floor + (1.0 - floor) * filled
        mass_left -= mass


@kernel
def excess_of(risk: float) -> float:
    """Return the risk of a label beyond the risk of the better label; ``risk``: share of the rarer class."""
    return max(0.0, 2.0 * risk - 1.0)


@kernel
def notes_of(row: LeafRow) -> RiskNotes:
    """Return the strategy's words in a row of the table of leaves."""
    return RiskNotes(row.ints, row.floats, row.start + NOTES_AT)


@called
def distribute(p, model: ModelHeader, leaves: LeafTable, rate: float, floor: float) -> None:
    """Write the chance of each leaf into its row of the table; the mean chance of a record is ``rate``."""
    n = leaves.rows
    score, size, chance = np.empty(n), np.empty(n), np.empty(n)
    order, node = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64)
    for leaf in range(n):
        row = leaf_row(model, leaves, leaf)
        notes = notes_of(row)
        is_known = notes.risk > 0.0 and notes.labels == row.labels
        if not is_known or notes.errors != row.errors:
            notes.risk = largest_risk(row.labels, row.errors, p.delta)
            notes.labels, notes.errors = row.labels, row.errors
        size[leaf] = max(row.size, 0.0)
        score[leaf] = size[leaf] * notes.risk
        order[leaf], node[leaf] = leaf, row.node
    sort_leaves(order, score, node, n)
    if p.is_mbinomial != 0.0:
        for leaf in range(n):
            score[leaf] = size[leaf] * excess_of(notes_of(leaf_row(model, leaves, leaf)).risk)
        sort_again(order, score, n)
    fill(order, size, n, rate, floor, chance)
    for leaf in range(n):
        notes_of(leaf_row(model, leaves, leaf)).chance = chance[leaf]


@kernel
def decide_at_leaf(
    plan: PlanRecord,
    p,
    model: ModelHeader,
    state: ChancesState,
    limit: float,
    leaves: LeafTable,
    number: int,
) -> tuple[int, float]:
    """Draw for a record by its number, with the chance of its leaf."""
    floor = p.explore * limit
    chance = limit
    if leaves.rows > 1:
        notes = notes_of(leaf_row(model, leaves, leaves.row))
        is_due = number >= state.due or leaves.rows != state.leaves
        if is_due or not 0.0 <= notes.chance <= 1.0:
            distribute(p, model, leaves, limit, floor)
            state.due, state.leaves = number + leaves.rows, leaves.rows
        chance = max(notes.chance, floor)
    u = rng.uniform(plan.query_key, number << rng.DRAW_BITS)
    is_at_random = u < floor or (leaves.rows == 1 and u < limit)
    answer = AT_RANDOM if is_at_random else YES if u < chance else NO
    return answer, chance if floor > 0.0 or leaves.rows == 1 else UNKNOWN


@kernel
def problem(p, state: ChancesState) -> int:
    return state_ranges(state)


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
