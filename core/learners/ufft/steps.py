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
from core.layout.plan import PlanRecord
from core.learners.ufft.layout import PairForest, parameters_of

ROUNDING: Final = 1e-9
"""Share of the larger of two values up to which their difference counts as rounding, not as a step."""
OF_CODES: Final = 1.0
"""The step of a nominal attribute's columns, whose values are 0 and 1."""


@kernel
def note_values(plan: PlanRecord, forest: PairForest, x) -> None:
    """Update the steps with the values of a labelled record that are not missing (x: float64[attribute])."""
    for column in range(plan.numeric):
        value = x[plan.numeric_column(column)]
        if value - value != 0.0:
            continue
        step = forest.step(plan, column)
        last, smallest = step.last, step.smallest
        difference = abs(value - last)
        is_step = difference > ROUNDING * max(abs(value), abs(last)) and difference - difference == 0.0
        if is_step and not 0.0 < smallest <= difference:
            step.smallest = difference
        step.last = value


@kernel
def least_deviation(plan: PlanRecord, forest: PairForest, column: int) -> float:
    """Return the least deviation of any class in a column; 0: the step is not known yet."""
    share = parameters_of(plan).step_share
    if column >= plan.numeric:
        return share * OF_CODES
    return share * forest.step(plan, column).smallest
