"""Nominal observer: weight per class and value of every nominal attribute."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from core.errors import ParameterError
from core.kernels.jit import kernel, part
from core.kernels.records import Record, words_after
from core.layout.model import model_of
from core.numeric.special import LN2, log2
from core.observers.base import Observer
from core.plugin import count, flag

PROBLEMS: Final = ("counts of values must be finite numbers of at least 0",)

_LARGE: Final = 1e150
"""Two numbers below it have a finite product."""

_WHOLE: Final = 2.0**33
"""Sums of counts below it are exact, for the largest number of values."""


@dataclass(frozen=True, slots=True)
class Plugin(Observer):
    """Counts ``nom[class, value]`` of all attributes side by side.

    Proposes one branch per value (multiway) and each value against the rest (binary) (Domingos and Hulten
    2000). Only binary tests are proposed with ``binary_splits``, and for attributes with more than
    ``max_branches`` known values: in many branches with few records each, the estimated gain is too high by
    chance.
    """

    binary_splits: bool = flag(False)
    """Only tests of one value against the rest; else also one branch per value."""
    max_branches: int = count(0)
    """Most values of an attribute that gets one branch per value, from 2 on; 0: any number."""

    def __post_init__(self) -> None:
        Observer.__post_init__(self)
        if self.max_branches == 1:
            msg = "max_branches=1 must be 0 (no limit) or at least 2; binary_splits is without such tests"
            raise ParameterError(msg)

    kind: ClassVar[str] = "nominal"
    axes: ClassVar[tuple[str | int, ...]] = ("class", "value")


class NominalCounts(Record):
    """The statistics of the nominal attributes at a leaf."""

    words: Any = words_after(float, "weight [class][value]; the values of all attributes one after another")

    def of_class(self, plan: Any, c: int) -> Any:
        """Return the weights of one class, float64[value]."""
        return part(self.words, c * plan.values, plan.values)


@kernel
def may_be_multiway(plan, p, values: int) -> bool:
    """Return whether an attribute with this number of values may get one branch per value."""
    return bool(p.binary_splits == 0.0 and (p.max_branches == 0.0 or values <= p.max_branches))


@kernel
def code_of(value: float, room: int) -> int:
    """Return the code of a value, -1 if it is missing or unknown."""
    return int(value) if 0.0 <= value < room else -1


@kernel
def update_nominal(plan, p, statistics: NominalCounts, label: int, x, weight: float) -> None:
    """Take in one record; x: float64[column].

    If all attributes have two values (codes 0 and 1), weight or 0 is added to each count: this runs in
    vectors.
    """
    counts = statistics.of_class(plan, label)
    if plan.halves != 0:
        for j in range(plan.nominal):
            counts[2 * j] += weight if x[j] == 0.0 else 0.0
            counts[2 * j + 1] += weight if x[j] == 1.0 else 0.0
        return
    for j in range(plan.nominal):
        column = plan.nominal_column(j)
        value = x[column.column]
        if 0.0 <= value < column.room:
            counts[column.first + int(value)] += weight


@kernel
def masses_nominal(plan, statistics: NominalCounts, k: int, start: int, end: int, out) -> None:
    """Write class masses of the values start … end-1, out: float64[class, value - start]."""
    for c in range(k):
        counts = statistics.of_class(plan, c)
        for v in range(end - start):
            out[c, v] = counts[start + v]


@kernel
def log_densities_nominal(plan, p, statistics: NominalCounts, k: int, x, scratch, out) -> None:
    """Add ln of Laplace's ``(n_vc + 1)/(n_c + |V|)`` to out[c]; missing and unknown values add nothing.

    A class that is impossible already (minus infinity) stays so for any shares.
    """
    ratio, logs = part(scratch, 0, k), part(scratch, k, k)
    halves = plan.halves != 0
    if halves:
        multiply_halves(plan, statistics, k, x, ratio, logs)
    for c in range(k):
        if out[c] == -math.inf:
            ratio[c], logs[c] = 1.0, 0.0
        elif halves and logs[c] <= _LARGE:
            ratio[c], logs[c] = ratio[c] / logs[c], 0.0
        else:
            ratio[c], logs[c] = product_of_shares(plan, statistics, c, x)
    for c in range(k):
        out[c] += LN2 * (logs[c] + log2(ratio[c]))


@kernel
def multiply_halves(plan, statistics: NominalCounts, k: int, x, above, below) -> None:
    """Write the products of the shares' numerators and denominators, for attributes of two values.

    The loop over classes is the inner one, so that no multiplication waits for the previous one. ``below``,
    which never shrinks, shows whether a product exceeds the range of floats.
    """
    for c in range(k):
        above[c], below[c] = 1.0, 1.0
    counts, values, model = statistics.words, plan.values, model_of(statistics)
    for j in range(plan.nominal):
        code, n_values = code_of(x[j], 2), model.values_seen(plan)[j]
        if code < 0 or n_values == 0:
            continue
        for c in range(k):
            first = c * values + 2 * j
            above[c] *= counts[first + code] + 1.0
            below[c] *= float(n_values) + counts[first] + counts[first + 1]


@kernel
def product_of_shares(plan, statistics: NominalCounts, c: int, x) -> tuple[float, float]:
    """Return the product of the shares of class c.

    Beyond the range of floats the result is a part of the product and the binary logarithm of the rest, else
    the logarithm is 0.
    """
    counts, model = statistics.of_class(plan, c), model_of(statistics)
    # One logarithm for each product that fits into a float.
    above, below, logs = 1.0, 1.0, 0.0
    for j in range(plan.nominal):
        column = plan.nominal_column(j)
        code = code_of(x[column.column], column.room)
        values = model.values_seen(plan)[j]
        if code < 0 or values == 0:
            continue
        total = sum_of_counts(counts, column.first, values, float(values))
        if total > _LARGE:
            logs += log2(counts[column.first + code] + 1.0) - log2(total)
            continue
        above *= counts[column.first + code] + 1.0
        below *= total
        if below > _LARGE:
            logs += log2(above / below)
            above, below = 1.0, 1.0
    return above / below, logs


@kernel
def sum_of_counts(floats, first: int, n: int, start: float) -> float:
    """Return ``start`` plus n counts, rounded after each addition.

    Sums of integers are not rounded, so that they can be added in any order: as integers, in vectors.
    ``start`` is an integer.
    """
    whole, other = 0, 0
    for v in range(n):
        count = floats[first + v]
        small = int(min(count, _WHOLE))
        whole += small
        other |= int(float(small) != count)
    if other == 0:
        return start + float(whole)
    total = start
    for v in range(n):
        total += floats[first + v]
    return total


@kernel
def densities_nominal(plan, p, statistics: NominalCounts, k: int, x, out) -> None:
    """Multiply out[c] by MOA's shares: |V| is the largest value seen with the class, plus one."""
    for j in range(plan.nominal):
        column = plan.nominal_column(j)
        code = code_of(x[column.column], column.room)
        if code >= 0:
            for c in range(k):
                counts = statistics.of_class(plan, c)
                total = 0.0
                reach = 0
                for v in range(column.first, column.first + column.room):
                    total += counts[v]
                    if counts[v] > 0.0:
                        reach = v + 1 - column.first
                if reach > 0:
                    out[c] *= (counts[column.first + code] + 1.0) / (total + reach)
                else:
                    out[c] = 0.0


@kernel
def problem(plan, p, statistics: NominalCounts, k: int) -> int:
    """Check the counts of all classes, known or not: sums of counts pass through integers."""
    counts = statistics.words
    for position in range(plan.classes * plan.values):
        if not 0.0 <= counts[position] < math.inf:
            return 1
    return 0
