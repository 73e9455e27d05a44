"""Numbers seen: the lowest and highest number of each attribute in the records a model has answered.

Only models that explain their predictions keep them (``explain`` of a spec): these return to Python for each
record in any case, and annotators see where a value lies in the range. If ``explain`` is set later, the range
covers the records from then on.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from core.plan import Plan
from core.tree import layout as at
from core.tree.layout import Floats, Ints

TOLD: Final = 500
"""Number of attributes that are reported: a person does not read more."""


class NumbersSeen(NamedTuple):
    """The range of an attribute's numbers so far."""

    low: float
    high: float
    n: int
    """Count of numbers, missing values excluded."""


def _rows(plan: Plan, floats: Floats) -> Floats:
    """Return the section as float64[numeric attribute, SEEN_FIELDS]; a view."""
    start = int(plan.ints[at.PLAN_NUMBERS_SEEN])
    end = start + at.SEEN_FIELDS * int(plan.ints[at.PLAN_NUMERIC])
    return floats[start:end].reshape(-1, at.SEEN_FIELDS)


def _columns(plan: Plan) -> Ints:
    """Return the column of each numeric attribute."""
    first = int(plan.ints[at.PLAN_NUMERIC_TABLE])
    return plan.ints[first : first + int(plan.ints[at.PLAN_NUMERIC])]


def take(plan: Plan, floats: Floats, x: Floats) -> None:
    """Take in a record (x: float64[d]) of a model that explains; a value that is not finite is missing."""
    rows, values = _rows(plan, floats), x[_columns(plan)]
    known = np.isfinite(values)
    fresh = known & (rows[:, at.SEEN_COUNT] == 0.0)
    low, high = rows[:, at.SEEN_LOW], rows[:, at.SEEN_HIGH]
    np.copyto(low, values, where=fresh | (known & (values < low)))
    np.copyto(high, values, where=fresh | (known & (values > high)))
    rows[:, at.SEEN_COUNT] += known


def read(plan: Plan, floats: Floats) -> dict[int, NumbersSeen]:
    """Return the ranges by column, for those of the first TOLD attributes that had a number."""
    if not plan.ints[at.PLAN_EXPLAIN]:
        return {}
    rows = zip(_columns(plan)[:TOLD].tolist(), _rows(plan, floats)[:TOLD].tolist(), strict=True)
    return {column: NumbersSeen(low, high, int(n)) for column, (low, high, n) in rows if n > 0}


def copy(old_plan: Plan, old: Ints, plan: Plan, new: Ints) -> None:
    """Copy the section into a buffer whose schema may have grown; it starts empty if there was none."""
    if old_plan.ints[at.PLAN_EXPLAIN] and plan.ints[at.PLAN_EXPLAIN]:
        rows = _rows(old_plan, old.view(np.float64))
        _rows(plan, new.view(np.float64))[: len(rows)] = rows
