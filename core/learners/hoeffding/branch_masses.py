"""Branch masses: how a test divides the class masses that a leaf has observed."""

from __future__ import annotations

from typing import Any

import numpy as np

from core.kernels.jit import kernel, outlined, words_at
from core.kernels.records import Words
from core.layout.plan import PlanRecord
from core.observers import base as observers
from core.tree import layout as at
from core.tree.byoffset.routing import leaf_at, node_at

masses_numeric = observers.numeric_dispatcher()[3]
masses_nominal = observers.nominal_dispatcher()[1]


@kernel
def is_numeric(plan, attribute: int) -> bool:
    table = plan[at.PLAN_NOMINAL_TABLE]
    for j in range(plan[at.PLAN_NOMINAL]):
        if plan[table + j * at.NOMINAL_FIELDS + at.NOMINAL_COLUMN] == attribute:
            return False
    return True


@kernel
def nominal_entry(plan, attribute: int) -> int:
    """Return where the entry of a nominal attribute lies in the plan."""
    entry = plan[at.PLAN_NOMINAL_TABLE]
    while plan[entry + at.NOMINAL_COLUMN] != attribute:
        entry += at.NOMINAL_FIELDS
    return entry


@kernel
def numeric_position(plan, attribute: int) -> int:
    """Return the position of an attribute among the numeric attributes."""
    position = 0
    while plan[plan[at.PLAN_NUMERIC_TABLE] + position] != attribute:
        position += 1
    return position


@kernel
def branches_of(plan, ints, attribute: int, test: int) -> int:
    """Return the number of branches of a test: two, or the number of values that the model has learned."""
    if test != at.MULTIWAY:
        return 2
    position = (nominal_entry(plan, attribute) - plan[at.PLAN_NOMINAL_TABLE]) // at.NOMINAL_FIELDS
    return ints[plan[at.PLAN_VALUES_SEEN] + position]


@kernel("float64[:, ::1](int64, int64, int64, int64, int64, int64, float64)")
def divide(
    plan_address: int, address: int, t: int, node: int, attribute: int, test: int, value: float
) -> Any:
    """Return the class masses that a test of leaf number ``node`` makes, float64[branch, class].

    -1 marks a class that was never seen in a branch.
    """
    plan, params = words_at(plan_address)
    ints, floats = words_at(address)
    masses = np.empty((branches_of(plan, ints, attribute, test), ints[at.MODEL_CLASSES]))
    leaf = leaf_at(ints, t, ints[node_at(ints, t, node) + at.NODE_SLOT])
    divide_leaf(plan, params, ints, floats, t, leaf, attribute, test, value, masses)
    return masses


divide_here: Any = outlined(divide)
"""``divide`` for other kernels: a call, not inlined."""


@kernel
def divide_leaf(
    plan, params, ints, floats, t: int, leaf: int, attribute: int, test: int, value: float, out
) -> None:
    """Write the class masses that a test makes of a leaf, out: float64[branch, class].

    -1 marks a class that was never seen in a branch.
    """
    k = out.shape[1]
    if test == at.NUMERIC:
        position = numeric_position(plan, attribute)
        statistics = leaf + at.LEAF_FIELDS + plan[at.PLAN_CLASSES]
        kind = plan[at.PLAN_NUMERIC_OBSERVER]
        masses_numeric(
            kind,
            PlanRecord(plan, params, 0),
            Words(plan, params, plan[at.PLAN_NUMERIC_OBSERVER + 1]),
            Words(ints, floats, statistics),
            k,
            position,
            value,
            out[0],
            out[1],
        )
        return
    entry = nominal_entry(plan, attribute)
    first, room = plan[entry + at.NOMINAL_FIRST], plan[entry + at.NOMINAL_ROOM]
    counts = np.empty((k, room))
    statistics = leaf + ints[t + at.TREE_NOMINAL_AT]
    kind = plan[at.PLAN_NOMINAL_OBSERVER]
    masses_nominal(
        kind, PlanRecord(plan, params, 0), Words(ints, floats, statistics), k, first, first + room, counts
    )
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
    if test == at.MULTIWAY:
        for v in range(out.shape[0]):
            out[v, c] = counts[v] if v < end else -1.0
        return
    out[0, c] = counts[value] if value < end else -1.0
    out[1, c] = -1.0
    for v in range(end):
        if v != value:
            out[1, c] = max(out[1, c], 0.0) + counts[v]
