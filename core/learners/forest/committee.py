"""Committee: how far the members of a forest disagree about a record, for query strategies.

While the members answer, their hard votes are counted and the least certain leaf is noted, in words of
scratch: COMMITTEE_FIELDS and one for each class. These words are no state.
"""

from __future__ import annotations

import math
from typing import Final

from core.kernels.jit import kernel

LEAD: Final = 0  # least certain leaf: lead of its largest class share over the second
WEIGHT: Final = 1  # least certain leaf: labels that the lead rests on
VOTES: Final = 2  # members that vote for each class
COMMITTEE_FIELDS: Final = 2


@kernel
def begin(committee, classes: int) -> None:
    """Clear the votes and the leaf of the last record."""
    committee[LEAD], committee[WEIGHT] = 1.0, math.inf
    for c in range(classes):
        committee[VOTES + c] = 0.0


@kernel
def count_vote(committee, classes: int, best: int, shares) -> None:
    """Count a member's vote; a member that has seen nothing has no shares and does not vote."""
    for c in range(classes):
        if shares[c] > 0.0:
            committee[VOTES + best] += 1.0
            return


@kernel
def note_leaf(committee, lead: float, weight: float, mean: float) -> None:
    """Note the leaf where a member ends, if it is less certain than the noted leaf; mean: of the resampling.

    A leaf is δ-consistent iff lead > 2ε, and ε is c/sqrt(m), with the same c for all leaves: the leaf with
    the smallest lead·sqrt(m) is consistent iff all leaves are. If a leaf has mass M from n labels, each
    counted Poisson(λ) times, then m is M²/(sum of squares) = M/(1 + λ), the number of equal weights with the
    same variance (Kish 1965).
    """
    labels = weight / (1.0 + mean) if weight > 0.0 else 0.0
    known_lead = lead if labels > 0.0 else 0.0
    if known_lead * math.sqrt(labels) < committee[LEAD] * math.sqrt(committee[WEIGHT]):
        committee[LEAD], committee[WEIGHT] = known_lead, labels


@kernel
def vote_entropy(committee, classes: int, known: float) -> float:
    """Return the entropy of the hard votes as a share of that of an even vote: 0 all agree, 1 none do.

    Source: Dagan and Engelson 1995. known: number of known classes, at least 2.
    """
    total, entropy = 0.0, 0.0
    for c in range(classes):
        total += committee[VOTES + c]
    for c in range(classes):
        if committee[VOTES + c] > 0.0:
            share = committee[VOTES + c] / total
            entropy -= share * math.log(share)
    return min(entropy / math.log(known), 1.0)
