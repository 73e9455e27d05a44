"""Digamma function ψ, the derivative of ln Γ, in plain arithmetic (Abramowitz and Stegun 6.3.5, 6.3.18)."""

from __future__ import annotations

from typing import Final

from core.kernels.jit import kernel
from core.numeric.special import LN2, log2

ASYMPTOTIC: Final = 10.0
"""From this value on the error of the series of Bernoulli numbers, cut at x⁻¹⁰, is below 1e-14."""


@kernel
def digamma(x: float) -> float:
    """Return ψ(x) for x above 0: E[ln θ] of a Beta(a, b) variate θ is ψ(a) - ψ(a + b)."""
    below = 0.0
    while x < ASYMPTOTIC:
        below += 1.0 / x
        x += 1.0
    square = 1.0 / (x * x)
    series = square * (
        1.0 / 12.0 - square * (1.0 / 120.0 - square * (1.0 / 252.0 - square * (1.0 / 240.0 - square / 132.0)))
    )
    return LN2 * log2(x) - 0.5 / x - series - below
