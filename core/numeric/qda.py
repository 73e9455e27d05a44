"""Quadratic discriminant: the cut where the prior times density of two classes are equal; and its gain.

Class a has the smaller deviation s, b the larger deviation S; in units of S and from the mean of a,

    (1 - r²) u² + 2 r² g u - r² (g² + 2 L) = 0

with r = s/S, g = (mean_b - mean_a)/S and L = ln(prior_a / (prior_b r)) is the equation of equal densities
(Gama, Medas, Rodrigues 2004). A quarter of its discriminant is r² (g² + 2 (1 - r²) L): nothing cancels, even
if the means are far from 0. Which class is a depends on the classes alone, not on the order of the arguments,
so that a swap changes no bit.
"""

from __future__ import annotations

import math
from typing import Final

from core.kernels.jit import kernel
from core.numeric.special import LN2, log2, normal_cdf, x_log2_x

_LINEAR: Final = 1e-12
"""Share of ½ (1/s² + 1/S²) below which the factor of the square counts as 0 [D52]."""
_TIE: Final = 1e-9
"""Difference of two sums of distances, as a share of S plus the sum, up to which they are equal [D52]."""
_NARROW: Final = 1e-300
"""s/S below which the class a is a point."""
_APART: Final = 1e100
"""g beyond which L is negligible beside g², which might be infinite."""
_FAR: Final = 40.0
"""A z whose Φ is 0 or 1 to the last bit."""


@kernel
def cut_of(
    prior_a: float, mean_a: float, sd_a: float, prior_b: float, mean_b: float, sd_b: float
) -> tuple[bool, float]:
    """Return whether two classes have a cut, and the cut: ``x <= cut`` goes left [D52].

    Priors may be weights (only their ratio counts), deviations have the divisor n - 1; callers must leave out
    classes of fewer than two records, which have no deviation. If there are two roots, the cut is the root
    with the smaller sum of distances from the means; if the sums are equal, the smaller root. If one
    deviation is 0, the cut is the midpoint of the means; there is no cut if both are 0 and the means equal,
    if there is no real root, if a prior is 0, or if an argument is not finite.
    """
    has_cut, s = True, sd_a + sd_b + mean_a + mean_b + prior_a + prior_b
    if s - s != 0.0 or not (prior_a > 0.0 and prior_b > 0.0 and sd_a >= 0.0 and sd_b >= 0.0):
        return False, 0.0
    swap = sd_b < sd_a
    if sd_a == sd_b:
        swap = mean_b < mean_a if mean_a != mean_b else prior_b < prior_a
    if swap:
        prior_a, mean_a, sd_a, prior_b, mean_b, sd_b = prior_b, mean_b, sd_b, prior_a, mean_a, sd_a
    if sd_b == 0.0 and mean_a == mean_b:
        return False, 0.0
    if sd_a <= _NARROW * sd_b:
        return True, 0.5 * mean_a + 0.5 * mean_b
    r = sd_a / sd_b
    g = (mean_b - mean_a) / sd_b
    if not abs(g) < _APART:
        share = r / (1.0 + r)
        return True, (1.0 - share) * mean_a + share * mean_b
    odds = LN2 * (log2(prior_a) - log2(prior_b) - log2(r))
    square = (1.0 - r) * (1.0 + r)
    if square < 2.0 * _LINEAR * (1.0 + r * r):
        has_cut = g != 0.0
        cut = mean_a + sd_b * (0.5 * g + odds / g) if has_cut else 0.0
        return has_cut and cut - cut == 0.0, cut
    inside = g * g + 2.0 * square * odds
    if inside < 0.0:
        return False, 0.0
    root = math.sqrt(inside)
    q = -(r * g + root) if g >= 0.0 else root - r * g
    root_a = r * q / square
    # q = 0 only if g and the discriminant are 0: a double root at the mean.
    root_b = -r * (g * g + 2.0 * odds) / q if q != 0.0 else root_a
    smaller = mean_a + sd_b * min(root_a, root_b)
    larger = mean_a + sd_b * max(root_a, root_b)
    to_smaller = abs(smaller - mean_a) + abs(smaller - mean_b)
    to_larger = abs(larger - mean_a) + abs(larger - mean_b)
    slack = _TIE * (sd_b + min(to_smaller, to_larger))
    cut = larger if to_larger < to_smaller - slack else smaller
    return cut - cut == 0.0, cut


@kernel
def left_share(mean: float, sd: float, cut: float) -> float:
    """Return Φ((cut - mean)/sd), the share of a class at or below a cut; 0 or 1 if the class is a point."""
    if sd > 0.0:
        return normal_cdf(min(max((cut - mean) / sd, -_FAR), _FAR))
    return 1.0 if mean <= cut else 0.0


@kernel
def entropy_of(a: float, b: float) -> float:
    """Return the entropy in bits of two masses, times their sum."""
    return x_log2_x(a + b) - (x_log2_x(a) + x_log2_x(b))


@kernel
def gain_of(
    prior_a: float, mean_a: float, sd_a: float, prior_b: float, mean_b: float, sd_b: float, cut: float
) -> float:
    """Return the information gain in bits, from 0 to 1, of a cut between two classes.

    The contingency table contains ``left_share`` and the rest for each class. Priors may be weights.
    """
    total = prior_a + prior_b
    if not (prior_a > 0.0 and prior_b > 0.0):
        return 0.0
    a, b = prior_a / total, prior_b / total
    left_a, left_b = a * left_share(mean_a, sd_a, cut), b * left_share(mean_b, sd_b, cut)
    right_a, right_b = max(a - left_a, 0.0), max(b - left_b, 0.0)
    after = entropy_of(left_a, left_b) + entropy_of(right_a, right_b)
    return max(entropy_of(a, b) - after, 0.0)
