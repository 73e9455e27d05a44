"""Scores of an answer: how unsure the model is of the class that it answers, for query strategies.

A learner writes normalised class shares p for every record (``answer`` in core/learners/protocol.py). The
scores below need nothing else, so that they hold for all learners. K is the number of known classes, p₁ and
p₂ are the two largest shares. Without shares, while no class is known, a score is 1:

    least_confidence   1 - p₁              (Lewis and Gale 1994)
    margin             1 - (p₁ - p₂)       (Scheffer, Decomain and Wrobel 2001)
    entropy            -Σ p ln p / ln K    (Shannon 1948)

Two scores are computed by the learner's kernel ``uncertainty``: ``votes``, the entropy of the votes of a
committee's members (core/learners/forest/committee.py), and ``leaf_share``, 1 minus the largest class share
at the place where the record ended.

Formulas of strategies are written for the largest class share p̂, which lies between 1/K and 1. A score s
whose range is 0 to 1 has the place in them that a share with the same doubt has: p̂ = 1 - s·(1 - 1/K). With
two classes margin and least confidence are the same p̂.
"""

from __future__ import annotations

from typing import Any, Final

from core.kernels.jit import kernel
from core.layout.learning import SHARE, VOTES
from core.numeric.special import log2
from core.plugin import choice

SCORES: Final = ("least_confidence", "margin", "entropy", "votes", "leaf_share")
"""The scores that strategies take, as specs spell them."""

# Kinds of scores that the shares of the answer give: values of PlanRecord.score
NONE: Final = 0
"""The strategy needs no share, or the learner's kernel ``uncertainty`` returns it."""
LEAST_CONFIDENCE: Final = 1
MARGIN: Final = 2
ENTROPY: Final = 3

KINDS: Final = {"least_confidence": LEAST_CONFIDENCE, "margin": MARGIN, "entropy": ENTROPY}
COLUMNS: Final = {"votes": SHARE | VOTES, "leaf_share": SHARE}
"""The columns of ``uncertainty`` that the other scores need."""

LEAST_NORMAL: Final = 2.0**-1022
"""The logarithm of a smaller share is not computed: its part of the entropy is below 1e-304."""


def columns_of(score: str | None) -> int:
    """Return the columns of the learner's ``uncertainty`` that a score needs; 0: none, or no score."""
    return COLUMNS.get(score or "", 0)


def score_parameter(default: str) -> Any:
    """Declare a strategy's parameter ``score``."""
    return choice(default, *SCORES)


@kernel
def least_confidence(shares, classes: int) -> float:
    """Return 1 minus the largest share."""
    largest = 0.0
    for c in range(classes):
        largest = max(largest, shares[c])
    return 1.0 - largest


@kernel
def margin(shares, classes: int) -> float:
    """Return 1 minus the lead of the largest share over the second."""
    largest, second = 0.0, 0.0
    for c in range(classes):
        second = max(second, min(shares[c], largest))
        largest = max(largest, shares[c])
    return 1.0 - (largest - second)


@kernel
def entropy(shares, classes: int, known: float) -> float:
    """Return the entropy of the shares as a part of that of even shares; known: classes, at least 2."""
    total, largest = 0.0, 0.0
    for c in range(classes):
        largest = max(largest, shares[c])
        if shares[c] >= LEAST_NORMAL:
            total -= shares[c] * log2(shares[c])
    return min(max(total / log2(known), 0.0), 1.0) if largest > 0.0 else 1.0


@kernel
def share_of(score: int, shares, classes: int, known: float) -> float:
    """Return p̂ by a score of KINDS.

    shares: float64[class], zeros while no class is known; known: classes, at least 2.
    """
    if score == LEAST_CONFIDENCE:
        share = 1.0 - least_confidence(shares, classes)
        return share if share > 0.0 else 1.0 / known
    doubt = margin(shares, classes) if score == MARGIN else entropy(shares, classes, known)
    return 1.0 - doubt * (1.0 - 1.0 / known)


@kernel
def certainty_of(share: float, known: float) -> float:
    """Return the certainty of p̂ on the scale from 0 (even) to 1; known: classes, at least 2."""
    return max((share - 1.0 / known) / (1.0 - 1.0 / known), 0.0)
