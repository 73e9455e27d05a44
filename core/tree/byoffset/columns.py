"""Columns of a record, gathered by kind."""

from __future__ import annotations

from typing import Any

from core.kernels.jit import kernel, part
from core.tree import layout as at


@kernel
def behind(plan) -> int:
    """Return the first word of scratch that leaf models do not use; float64[3·d + K] follow."""
    return max(4 * plan[at.PLAN_ATTRIBUTES], 2 * plan[at.PLAN_CLASSES])


@kernel
def gather(plan, x, scratch) -> Any:
    """Return the numeric attributes of a record side by side: part of x if contiguous, else a copy."""
    n = plan[at.PLAN_NUMERIC]
    if plan[at.PLAN_CONTIGUOUS] != 0:
        return part(x, 0, n)
    table = plan[at.PLAN_NUMERIC_TABLE]
    for a in range(n):
        scratch[a] = x[plan[table + a]]
    return part(scratch, 0, n)
