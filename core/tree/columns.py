"""Columns of a record, gathered by kind."""

from __future__ import annotations

from typing import Any

from core.kernels.jit import kernel, part
from core.layout.plan import PlanRecord
from core.numeric.special import LANES


@kernel
def unused_scratch(plan: PlanRecord) -> int:
    """Return the first word of scratch that leaf models leave; 3·d + 2·K + SPARE_WORDS or more follow."""
    return max(4 * plan.attributes + LANES, 2 * plan.classes)


@kernel
def gather(plan: PlanRecord, x, scratch) -> Any:
    """Return the numeric attributes of a record side by side: part of x if contiguous, else a copy."""
    n = plan.numeric
    if plan.contiguous != 0:
        return part(x, 0, n)
    for a in range(n):
        scratch[a] = x[plan.numeric_column(a)]
    return part(scratch, 0, n)
