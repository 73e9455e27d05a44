"""Branch masses: how a test divides the class masses that a leaf has observed."""

from __future__ import annotations

from typing import Any

import numpy as np

from core.kernels.jit import kernel, outlined
from core.layout.plan import PlanRecord
from core.layout.tree import MULTIWAY, NUMERIC, Leaf, Tree
from core.observers import base as observers

masses_numeric = observers.numeric_dispatcher()[3]
masses_nominal = observers.nominal_dispatcher()[1]


@kernel
def is_numeric(plan: PlanRecord, attribute: int) -> bool:
    number = 0
    while number < plan.nominal and plan.nominal_column(number).column != attribute:
        number += 1
    return bool(number == plan.nominal)


@kernel
def nominal_number(plan: PlanRecord, attribute: int) -> int:
    """Return the number of an attribute among the nominal attributes."""
    number = 0
    while plan.nominal_column(number).column != attribute:
        number += 1
    return number


@kernel
def numeric_number(plan: PlanRecord, attribute: int) -> int:
    """Return the number of an attribute among the numeric attributes."""
    number = 0
    while plan.numeric_column(number) != attribute:
        number += 1
    return number


@kernel
def branches_of(plan: PlanRecord, tree: Tree, attribute: int, test: int) -> int:
    """Return the number of branches of a test: two, or the number of values that the model has learned."""
    if test != MULTIWAY:
        return 2
    return tree.model.values_seen(plan)[nominal_number(plan, attribute)]


@kernel("float64[:, ::1](PlanRecord, Tree, Leaf, int64, int64, float64)")
def divide(plan: PlanRecord, tree: Tree, leaf: Leaf, attribute: int, test: int, value: float) -> Any:
    """Return the class masses that a test makes of a leaf, float64[branch, class].

    -1 marks a class that was never seen in a branch.
    """
    masses = np.empty((branches_of(plan, tree, attribute, test), tree.model.classes))
    divide_leaf(plan, tree, leaf, attribute, test, value, masses)
    return masses


divide_here: Any = outlined(divide)
"""``divide`` for other kernels: a call, not inlined."""


@kernel
def divide_leaf(
    plan: PlanRecord, tree: Tree, leaf: Leaf, attribute: int, test: int, value: float, out
) -> None:
    """Write the class masses that a test makes of a leaf, out: float64[branch, class].

    -1 marks a class that was never seen in a branch.
    """
    k = out.shape[1]
    if test == NUMERIC:
        masses_numeric(
            plan.numeric_observer,
            plan,
            plan.parameters(plan.numeric_observer_at),
            tree.numeric_statistics(plan, leaf),
            k,
            numeric_number(plan, attribute),
            value,
            out[0],
            out[1],
        )
        return
    column = plan.nominal_column(nominal_number(plan, attribute))
    counts = np.empty((k, column.room))
    statistics, end = tree.nominal_statistics(leaf), column.first + column.room
    masses_nominal(plan.nominal_observer, plan, statistics, k, column.first, end, counts)
    for c in range(k):
        divide_nominal(counts[c], test, int(value), out, c)


@kernel
def divide_nominal(counts, test: int, value: int, out, c: int) -> None:
    """Write the masses of class c in each branch from its counts (float64[value]).

    MOA's vectors end at the largest value seen with the class, and contain zeros before it. So a class counts
    as seen in every branch below that end.
    """
    end = 0
    for v in range(len(counts)):
        if counts[v] > 0.0:
            end = v + 1
    if test == MULTIWAY:
        for v in range(out.shape[0]):
            out[v, c] = counts[v] if v < end else -1.0
        return
    out[0, c] = counts[value] if value < end else -1.0
    out[1, c] = -1.0
    for v in range(end):
        if v != value:
            out[1, c] = max(out[1, c], 0.0) + counts[v]
