"""Weight per class and value of every nominal attribute."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Final

from core.jit import kernel, part
from core.observers.base import Observer
from core.plugin import flag
from core.special import LN2, log2
from core.tree import layout

_LARGE: Final = 1e150
"""Two numbers below it have a product."""


@dataclass(frozen=True, slots=True)
class Plugin(Observer):
    """Counts ``nom[class, value]`` (ALGORITHMS section 2.5; Domingos and Hulten 2000), the values of all
    attributes side by side.

    Proposes one branch per value (multiway) and each value against the rest (binary); only the latter with
    ``binary_splits``.
    """

    binary_splits: bool = flag(False)
    """Only tests of one value against all others; else also one branch per value."""

    kind: ClassVar[str] = "nominal"
    axes: ClassVar[tuple[str | int, ...]] = ("class", "value")


@kernel
def code_of(value: float, room: int) -> int:
    """Return the code of a value, -1 if it is missing or unknown."""
    return int(value) if 0.0 <= value < room else -1


@kernel
def update_nominal(
    plan: Any, knobs: Any, ints: Any, floats: Any, at: int, label: int, x: Any, weight: float
) -> None:
    """Take in one record; x: float64[column].

    Where all attributes have two values (codes 0 and 1) weight or 0 is added to each: that runs in vectors.
    """
    row = at + label * plan[layout.PLAN_VALUES]
    if plan[layout.PLAN_HALVES] != 0:
        counts = part(floats, row, plan[layout.PLAN_VALUES])
        for j in range(plan[layout.PLAN_NOMINAL]):
            counts[2 * j] += weight if x[j] == 0.0 else 0.0
            counts[2 * j + 1] += weight if x[j] == 1.0 else 0.0
        return
    table = plan[layout.PLAN_NOMINAL_TABLE]
    for j in range(plan[layout.PLAN_NOMINAL]):
        entry = table + j * layout.NOMINAL_FIELDS
        value = x[plan[entry + layout.NOMINAL_COLUMN]]
        if 0.0 <= value < plan[entry + layout.NOMINAL_ROOM]:
            floats[row + plan[entry + layout.NOMINAL_FIRST] + int(value)] += weight


@kernel
def masses_nominal(plan: Any, floats: Any, at: int, k: int, start: int, end: int, out: Any) -> None:
    """Write class masses of the values start … end-1, out: float64[class, value - start]."""
    values = plan[layout.PLAN_VALUES]
    for c in range(k):
        for v in range(end - start):
            out[c, v] = floats[at + c * values + start + v]


@kernel
def log_densities_nominal(
    plan: Any, knobs: Any, ints: Any, floats: Any, at: int, k: int, x: Any, out: Any
) -> None:
    """Add ln of Laplace's ``(n_vc + 1)/(n_c + |V|)`` to out[c]; missing and unknown values add nothing."""
    table = plan[layout.PLAN_NOMINAL_TABLE]
    for c in range(k):
        row = at + c * plan[layout.PLAN_VALUES]
        # One logarithm for as many shares as a float takes the product of.
        above, below, sum_of_logs = 1.0, 1.0, 0.0
        for j in range(plan[layout.PLAN_NOMINAL]):
            entry = table + j * layout.NOMINAL_FIELDS
            code = code_of(x[plan[entry + layout.NOMINAL_COLUMN]], plan[entry + layout.NOMINAL_ROOM])
            values = ints[plan[layout.PLAN_VALUES_SEEN] + j]
            if code < 0 or values == 0:
                continue
            first = row + plan[entry + layout.NOMINAL_FIRST]
            total = float(values)
            for v in range(values):
                total += floats[first + v]
            if total > _LARGE:
                sum_of_logs += log2(floats[first + code] + 1.0) - log2(total)
                continue
            above *= floats[first + code] + 1.0
            below *= total
            if below > _LARGE:
                sum_of_logs += log2(above / below)
                above, below = 1.0, 1.0
        out[c] += LN2 * (sum_of_logs + log2(above / below))


@kernel
def densities_nominal(
    plan: Any, knobs: Any, ints: Any, floats: Any, at: int, k: int, x: Any, out: Any
) -> None:
    """Multiply out[c] with MOA's shares: |V| is the largest value seen with the class, plus one."""
    table = plan[layout.PLAN_NOMINAL_TABLE]
    for j in range(plan[layout.PLAN_NOMINAL]):
        entry = table + j * layout.NOMINAL_FIELDS
        code = code_of(x[plan[entry + layout.NOMINAL_COLUMN]], plan[entry + layout.NOMINAL_ROOM])
        if code >= 0:
            for c in range(k):
                row = at + c * plan[layout.PLAN_VALUES] + plan[entry + layout.NOMINAL_FIRST]
                total = 0.0
                reach = 0
                for v in range(plan[entry + layout.NOMINAL_ROOM]):
                    total += floats[row + v]
                    if floats[row + v] > 0.0:
                        reach = v + 1
                if reach > 0:
                    out[c] *= (floats[row + code] + 1.0) / (total + reach)
                else:
                    out[c] = 0.0
