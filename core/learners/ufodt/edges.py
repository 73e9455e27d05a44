"""Edges of EC2: pairs of surviving hypotheses of different decision regions (Golovin, Krause, Ray 2010)."""

from __future__ import annotations

from core.kernels.jit import kernel


@kernel
def cut_weight(masses, classes: int) -> float:
    """Return the weight of all edges between regions of these masses: ½[(ΣR)² - ΣR²], never negative."""
    total, weight = 0.0, 0.0
    for c in range(classes):
        weight += masses[c] * total
        total += masses[c]
    return weight


@kernel
def regions(masses, classes: int) -> int:
    """Return how many regions have a mass."""
    n = 0
    for c in range(classes):
        n += 1 if masses[c] > 0.0 else 0
    return n
