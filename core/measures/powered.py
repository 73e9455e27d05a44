"""Prediction-powered accuracy: the model's own claim on all records narrows the estimate from few labels.

The claim of an answer is its share of the class answered. All records have one; only some have a label. With
weights w of the labels, hits h and claims c (Zrnic and Candès 2024, active inference; λ as in PPI++,
Angelopoulos, Duchi and Zrnic 2023):

    accuracy = Σwh / Σw - λ·(Σwc / Σw - mean claim of all records),   λ = cov(h, c) / var(c), from 0 to 1

Any λ gives an unbiased estimate, this one the smallest variance: 1 - r² of that without claims, where r is
the correlation of hits and claims. The interval is Wilson's, moved to the estimate and narrowed by the square
root of this share, so that it is never wider. Wrong claims cost nothing: λ is near 0 then.

The band ``always`` holds at all times together, with 95 %: an alarm may look at it after every label. It is
an asymptotic confidence sequence (Waudby-Smith, Arbour, Sinha, Kennedy and Ramdas 2024, theorem 2.2),
narrowest at 500 labels.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

from core.layout.measures import MeasureSums
from core.measures.estimate import UNKNOWN, Estimate
from core.numeric.proportions import wilson

LEVEL: Final = 0.05
"""Probability of an error."""
NARROWEST: Final = 500.0
"""Labels at which the band is narrowest."""
RHO_SQUARED: Final = (-2.0 * math.log(LEVEL) + math.log(-2.0 * math.log(LEVEL) + 1.0)) / NARROWEST


class Powered(NamedTuple):
    """The estimate of the accuracy over all records, and a band for all times."""

    accuracy: Estimate
    always_low: float
    always_high: float


NOTHING: Final = Powered(UNKNOWN, math.nan, math.nan)


def powered(sums: MeasureSums, gaps: float, scored: float, share: float, n: float) -> Powered:
    """Return the estimate; NOTHING without labels.

    gaps: sum of the gaps; scored: weight of the labels whose claims are known; share, n: weighted share of
    hits among all labels, and the number of labels of the same weight that vary as these.
    """
    if not (scored > 0.0 and n > 0.0 and sums.answered > 0):
        return NOTHING
    squares = scored - sums.weight + sums.squares
    claim = (sums.claims + sums.weighted_claims) / scored
    hits = gaps + sums.claims + sums.weighted_claims
    right = hits / scored
    square_hits = hits - sums.weighted_hits + sums.square_hits
    square_claims = sums.claims + sums.square_claims
    both = sums.hit_claims + sums.square_hit_claims
    spread = square_hits - 2.0 * right * square_hits + right * right * squares
    of_claims = sums.claim_squares + sums.square_claim_squares
    of_claims += claim * (claim * squares - 2.0 * square_claims)
    together = both - claim * square_hits - right * square_claims + right * claim * squares
    tuned = min(max(together / of_claims, 0.0), 1.0) if of_claims > 0.0 else 0.0
    remaining = 1.0
    if spread > 0.0 and n > 2.0:
        remaining = (
            (spread - 2.0 * tuned * together + tuned * tuned * of_claims) / spread * (n - 1.0) / (n - 2.0)
        )
        remaining = min(max(remaining, 0.0), 1.0)
    if remaining == 1.0:
        tuned = 0.0
    value = min(max(share - tuned * (claim - sums.confidence / sums.answered), 0.0), 1.0)
    low, high = (side - share for side in wilson(share * n, n))
    narrowed = math.sqrt(remaining)
    half = _always(n) * math.sqrt(max(share * (1.0 - share), 1.0 / n) * remaining)
    estimate = Estimate(value, max(value + narrowed * low, 0.0), min(value + narrowed * high, 1.0))
    return Powered(estimate, max(value - half, 0.0), min(value + half, 1.0))


def _always(n: float) -> float:
    """Return the half-width of the band after n labels whose standard deviation is 1."""
    spent = n * RHO_SQUARED + 1.0
    return math.sqrt(2.0 * spent / (n * n * RHO_SQUARED) * math.log(math.sqrt(spent) / LEVEL))
