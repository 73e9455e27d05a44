"""Numbers seen: the lowest and highest number of each attribute in the records a model has answered.

Only models that explain their predictions keep them (``explain`` of a spec): these return to Python for each
record in any case, and annotators see where a value lies in the range. If ``explain`` is set later, the range
covers the records from then on.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from core.kernels.records import offset
from core.layout.model import Floats, Ints, NumbersSeen
from core.plan import Plan

TOLD: Final = 500
"""Number of attributes that are reported: a person does not read more."""


class NumberRange(NamedTuple):
    """The range of an attribute's numbers so far."""

    low: float
    high: float
    n: int
    """Count of numbers, missing values excluded."""


def _rows(plan: Plan, floats: Floats) -> Floats:
    """Return the section as float64[numeric attribute, NumbersSeen]; a view."""
    n = NumbersSeen.SIZE * int(plan.record.numeric)
    return floats[plan.record.numbers_seen :][:n].reshape(-1, NumbersSeen.SIZE)


def _columns(plan: Plan) -> Ints:
    """Return the column of each numeric attribute."""
    return plan.ints[plan.record.numeric_table :][: plan.record.numeric]


def take(plan: Plan, floats: Floats, x: Floats) -> None:
    """Take in a record (x: float64[d]) of a model that explains; a value that is not finite is missing."""
    rows, values = _rows(plan, floats), x[_columns(plan)]
    is_known = np.isfinite(values)
    low, high, count = (rows[:, offset(NumbersSeen, name)] for name in ("low", "high", "count"))
    fresh = is_known & (count == 0.0)
    np.copyto(low, values, where=fresh | (is_known & (values < low)))
    np.copyto(high, values, where=fresh | (is_known & (values > high)))
    count += is_known


def read(plan: Plan, floats: Floats) -> dict[int, NumberRange]:
    """Return the ranges by column, for those of the first TOLD attributes that had a number."""
    if not plan.record.explain:
        return {}
    rows = zip(_columns(plan)[:TOLD].tolist(), _rows(plan, floats)[:TOLD].tolist(), strict=True)
    return {column: NumberRange(low, high, int(n)) for column, (low, high, n) in rows if n > 0}


def copy(old_plan: Plan, old: Ints, plan: Plan, new: Ints) -> None:
    """Copy the section into a buffer whose schema may have grown; it starts empty if there was none."""
    if old_plan.record.explain and plan.record.explain:
        rows = _rows(old_plan, old.view(np.float64))
        _rows(plan, new.view(np.float64))[: len(rows)] = rows
