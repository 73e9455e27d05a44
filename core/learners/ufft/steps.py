"""Steps: the smallest difference between two successive labelled values, for each numeric attribute.

A class whose values are all equal has a deviation of 0, and a density of deviation 0 rules out every other
value. On a column of 0 and 1, or of a few codes, such a class is common, and one record of another value is
no surprise. So the naive Bayes of a node takes no deviation below a share of the step (1/6 by default; WEKA's
naive Bayes uses the mean gap between values in the same way). The step has the unit of the attribute: values
of 0 and 255 are treated like values of 0 and 1. Where values have no step, the smallest difference falls
towards 0 with every record, and so does the least deviation.
"""

from __future__ import annotations

from typing import Final

from core.kernels.jit import kernel
from core.learners.ufft import layout as of
from core.tree import layout as at

ROUNDING: Final = 1e-9
"""Share of the larger of two values up to which their difference counts as rounding, not as a step."""
OF_CODES: Final = 1.0
"""The step of a nominal attribute's columns, whose values are 0 and 1."""


@kernel
def note_values(plan, floats, t: int, x) -> None:
    """Update the steps with the values of a labelled record that are not missing (x: float64[attribute])."""
    table = plan[at.PLAN_NUMERIC_TABLE]
    for column in range(plan[at.PLAN_NUMERIC]):
        value = x[plan[table + column]]
        if value - value != 0.0:
            continue
        step = of.step_at(plan, t, column)
        last, smallest = floats[step + of.STEP_LAST], floats[step + of.STEP_SMALLEST]
        difference = abs(value - last)
        is_step = difference > ROUNDING * max(abs(value), abs(last)) and difference - difference == 0.0
        if is_step and not 0.0 < smallest <= difference:
            floats[step + of.STEP_SMALLEST] = difference
        floats[step + of.STEP_LAST] = value


@kernel
def least_deviation(plan, params, floats, t: int, column: int) -> float:
    """Return the least deviation of any class in a column; 0: the step is not known yet."""
    share = of.parameter(plan, params, of.STEP_SHARE)
    if column >= plan[at.PLAN_NUMERIC]:
        return share * OF_CODES
    return share * floats[of.step_at(plan, t, column) + of.STEP_SMALLEST]
