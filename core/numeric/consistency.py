"""Consistency: whether the majority class at a place is certain, given its labels. The only definition."""

from __future__ import annotations

import math

from core.kernels.jit import kernel


@kernel
def epsilon(weight: float, t: int, classes: float, delta: float) -> float:
    """Return ε = sqrt(ln(K·t/δ) / 2m) for m = weight > 0 labels, at record t; delta 0 stands for δ = 1/t.

    De Rosa and Cesa-Bianchi 2017, equation 6; for K classes [D11].
    """
    if delta > 0.0:  # K·t/δ may be beyond the range of floats
        return math.sqrt((math.log(classes * t) - math.log(delta)) / (2.0 * weight))
    return math.sqrt(math.log(classes * t * t) / (2.0 * weight))


@kernel
def is_consistent(lead: float, width: float) -> bool:
    """Return whether the two largest shares lie more than twice ε (width) apart: δ-consistent."""
    return not lead <= 2.0 * width
