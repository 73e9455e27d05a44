"""Incremental delta-bar-delta: a linear unit that learns a step size for each of its inputs.

Sutton 1992 [D55]. A unit of n inputs is 3·n words: weights w, logarithms β of the step sizes, and traces h of
earlier steps. ``inputs`` is float64[n], the first usually 1, the rest within ±5
(``core/numeric/moments.py:standard_score``).
"""

from __future__ import annotations

import math
from typing import Final

from core.kernels.jit import kernel
from core.numeric.special import LN2, exp, log2

META_RATE: Final = 0.01
"""θ, the step size of the step sizes."""
START: Final = math.log(0.05)
"""β of a unit that has learned nothing."""
LOWEST: Final = -10.0
HIGHEST: Final = 0.0
"""Limits of β."""


@kernel
def idbd_start(floats, start: int, n: int) -> None:
    """Write a unit that has learned nothing."""
    for i in range(n):
        floats[start + i] = 0.0
        floats[start + n + i] = START
        floats[start + 2 * n + i] = 0.0


@kernel
def idbd_inherit(floats, start: int, parent: int, n: int) -> None:
    """Write the unit of a child: weights and step sizes of the parent's unit, and zero traces."""
    for i in range(n):
        floats[start + i] = floats[parent + i]
        floats[start + n + i] = floats[parent + n + i]
        floats[start + 2 * n + i] = 0.0


@kernel
def idbd_output(floats, start: int, inputs, n: int) -> float:
    """Return w·x. The output of a unit in several parts, each laid out as a unit, is their sum."""
    total = 0.0
    for i in range(n):
        total += floats[start + i] * inputs[i]
    return total


@kernel
def idbd_predict(floats, start: int, inputs, n: int) -> float:
    """Return the probability of the class whose target is 1: w·x clipped to [0, 1]."""
    return min(max(idbd_output(floats, start, inputs, n), 0.0), 1.0)


@kernel
def idbd_update(floats, start: int, inputs, n: int, target: float, share: float) -> None:
    """Learn a record with its target, 0 or 1; share, from 0 to 1: the part of the record (1: all).

    ``δ = y - w·x; β += θ·δ·x·h; a = e^β; w += a·δ·x; h = h·max(0, 1 - a·x²) + a·δ·x`` for each input. If the
    steps would overshoot the target of this record (Σ a·x² > 1, as at the start with more than 20
    standardised inputs), all a of inputs other than 0 are divided by Σ a·x², as in Autostep (Mahmood et al.
    2012): otherwise the weights grow without limit.
    """
    delta = target - idbd_output(floats, start, inputs, n)
    reach = idbd_tune(floats, start, inputs, n, delta, share)
    idbd_step(floats, start, inputs, n, delta, share, reach)


@kernel
def idbd_tune(floats, start: int, inputs, n: int, delta: float, share: float) -> float:
    """Move the step sizes for an error δ; return Σ a·x², which is added up over the parts of a unit."""
    reach = 0.0
    for i in range(n):
        x = inputs[i]
        beta = floats[start + n + i] + share * META_RATE * delta * x * floats[start + 2 * n + i]
        beta = min(max(beta, LOWEST), HIGHEST)
        floats[start + n + i] = beta
        reach += exp(beta) * x * x
    return reach


@kernel
def idbd_step(floats, start: int, inputs, n: int, delta: float, share: float, reach: float) -> None:
    """Move weights and traces for an error δ; reach: Σ a·x² of the whole unit."""
    shrink = 1.0 if reach <= 1.0 else 1.0 / reach
    lower = 0.0 if reach <= 1.0 else LN2 * log2(reach)
    for i in range(n):
        x = inputs[i]
        if x == 0.0:
            continue
        beta = floats[start + n + i]
        a = share * shrink * exp(beta)
        step = a * delta * x
        floats[start + i] += step
        floats[start + n + i] = max(beta - lower, LOWEST)
        floats[start + 2 * n + i] = floats[start + 2 * n + i] * max(0.0, 1.0 - a * x * x) + step
