"""Comparison of a window with the reference: distances of each feature, and p-values of their sizes.

A feature has up to two tests: of the distribution of its values, and of the share of records without a value.
The distribution of numbers is tested by its largest difference, with the two-sample inequality of Dvoretzky,
Kiefer and Wolfowitz, and cell by cell; the two share the p-value by Bonferroni's inequality. Wei and Dudley
(2012) prove the inequality with the constant e for windows of equal size and conjecture it for others; the
exact distribution is below it for all sizes that the tests compute. Categories are tested cell by cell alone.
Their p-values assume that all records are independent draws from one distribution. A test counts only if the
values of both windows taken together could show a difference. This is a property of both together, so that
the choice of tests does not depend on which window has which values.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

from core.inputs.input.rows import cells_of, feature_row, row_at, steps
from core.kernels.jit import called, kernel
from core.kernels.records import name_tuple
from core.layout.inputs import FeatureRow, InputState
from core.layout.plan import PlanRecord

KS: Final = 0
PSI: Final = 1
HELLINGER: Final = 2

UNTESTED: Final = 2.0
"""The p-value of a test that does not count."""


class Shift(NamedTuple):
    """How the values of a feature differ between reference and window."""

    ks: float
    """Largest difference of the distribution functions; of a category, of the share of one cell."""
    psi: float
    """Population stability index; an empty cell counts as half a value."""
    hellinger: float
    """Hellinger distance, 0 to 1."""
    p: float
    """p-value of the distribution of the values, 1 if one window has none, UNTESTED if neither has."""
    missing_p: float
    """p-value of the share of records without a value, UNTESTED if all or no records have one."""
    before: int
    """Values in the reference."""
    now: int
    """Values in the window."""
    unseen: int
    """Values of the window in cells that the reference does not have; numbers have no such cells."""


name_tuple(Shift, *["float64"] * 5, *["int64"] * 3)


@kernel
def share_p_value(before: int, all_before: int, now: int, all_now: int) -> float:
    """Return a bound of the two-sided p-value of a difference of two shares; UNTESTED: they cannot differ.

    Given how many records of both windows together are of the kind, their number in one window is
    hypergeometric, and Chernoff's bound of the binomial variate holds for it (Hoeffding 1963, section 6).
    """
    both, all_records = before + now, all_before + all_now
    if both == 0 or both == all_records:
        return UNTESTED
    if 2 * both > all_records:  # the bound is sharper for the rarer kind
        both, now = all_records - both, all_now - now
    share, expected = now / both, all_now / all_records
    divergence = 0.0
    if share > 0.0:
        divergence += share * math.log(share / expected)
    if share < 1.0:
        divergence += (1.0 - share) * math.log((1.0 - share) / (1.0 - expected))
    return min(1.0, 2.0 * math.exp(-both * divergence))


@called
def compare(p, row: FeatureRow, is_category: bool) -> Shift:
    """Return how the values of a row differ."""
    cells = cells_of(row, int(p.bins), is_category)
    before, now = 0, 0
    for i in range(cells.n):
        before += cells.before[i]
        now += cells.now[i]
    reference, window = int(p.reference), int(p.window)
    missing_p = share_p_value(reference - before, reference, window - now, window)
    if before == 0 or now == 0:
        # The number of tests must not depend on which of both windows has the values.
        p_value = UNTESTED if before + now == 0 else 1.0
        return Shift(0.0, 0.0, 0.0, p_value, missing_p, before, now, now if is_category else 0)
    ks, largest, below, psi, squares = 0.0, 0.0, 0.0, 0.0, 0.0
    used, unseen, cell_p = 0, 0, 1.0
    for i in range(cells.n):
        a, b = cells.before[i], cells.now[i]
        if a + b == 0:
            continue
        used += 1
        unseen += b if a == 0 else 0
        difference = b / now - a / before
        below += difference
        ks = max(ks, abs(below))
        largest = max(largest, abs(difference))
        share, earlier = max(b, 0.5) / now, max(a, 0.5) / before
        psi += (share - earlier) * math.log(share / earlier)
        squares += (math.sqrt(b / now) - math.sqrt(a / before)) ** 2
        cell_p = min(cell_p, share_p_value(a, before, b, now))
    hellinger = math.sqrt(0.5 * squares)
    cells_p = used * cell_p
    if is_category:
        return Shift(largest, psi, hellinger, min(1.0, cells_p), missing_p, before, now, unseen)
    size = before * now / (before + now)
    ks_p = math.exp(1.0 - 2.0 * size * ks * ks)
    return Shift(ks, psi, hellinger, min(1.0, 2.0 * min(ks_p, cells_p)), missing_p, before, now, 0)


@kernel
def is_large(p, shift: Shift) -> bool:
    """Return whether the chosen distance of a feature is at least ``least``."""
    if p.distance == PSI:
        return shift.psi >= p.least
    if p.distance == HELLINGER:
        return shift.hellinger >= p.least
    return shift.ks >= p.least


@kernel
def smallest_p_value(plan: PlanRecord, p, state: InputState) -> tuple[float, int]:
    """Return the smallest p-value of a full window that may raise an alarm, and the number of all tests."""
    smallest, tests = UNTESTED, 0
    for step in range(steps(plan, p)):
        number, is_category = row_at(plan, p, step)
        if number >= 0:
            shift = compare(p, feature_row(p, state, number), is_category)
            tests += int(shift.p < UNTESTED) + int(shift.missing_p < UNTESTED)
            smallest = min(smallest, shift.missing_p)
            if is_large(p, shift):
                smallest = min(smallest, shift.p)
    return smallest, tests


@kernel
def level_of(p, comparisons: int) -> float:
    """Return the part of ``alpha`` for a comparison, by its number from 1 on; all parts add up to alpha."""
    return p.alpha / (comparisons * (comparisons + 1.0))
