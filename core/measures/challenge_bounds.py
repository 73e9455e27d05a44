"""Comparison of a challenger with the champion, by bounds that hold after every label.

A compared label i has the outcome d_i = 1 (the challenger is right), -1 (the champion is) or 0 (neither is),
and the weight w_i = 1 / chance. Both models learn and the concept may drift, so the expectation θ_i of d_i,
given the outcomes before it, changes. The bounds are for its running mean (as in Choe and Ramdas 2024):

    θ̄ = Σ w_i θ_i / Σ w_i,   and θ̄ · disagreements / records for the accuracy over all records.

For a bet λ with λ·w_i < 1, the product of (1 + λ w_i d_i) / (1 + λ w_i θ_i) is a martingale with mean 1. Its
denominators multiply to at most (1 + λ θ̄ Σw_i / n)^n: a product of n factors is largest if all are equal. So

    E(θ) = mean over λ of  Π (1 + λ w_i d_i) / (1 + λ θ Σw_i / n)^n

reaches 2/α at θ = θ̄, at any time, with a probability of α/2 at most (Ville 1939): θ̄ is above each θ with
E(θ) ≥ 2/α. This is a bet against each mean (Waudby-Smith and Ramdas 2024) that also holds for a mean that
moves, and it needs the counts of wins and losses alone. The upper bound is the same with models exchanged.

The bounds assume that neither the delay nor the loss of a label depends on which model is right, and that
labels of later records do not reveal it. Nothing is assumed about records, concepts and models.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any, Final, NamedTuple

import numpy as np

from core.errors import ParameterError
from core.kernels.jit import kernel
from core.layout.challenge_counts import (
    CHALLENGE_WORDS,
    DROPPED,
    OCTAVES,
    OPEN,
    PROMOTED,
    UNDECIDED,
    ChallengeCounts,
)
from core.layout.model import Floats, Ints
from core.problems import range_rules

BETS: Final = (7 / 8, 7 / 16, 7 / 32, 7 / 64, 7 / 128, 7 / 256)
"""λ times the weight of the first label compared; a bet that a heavier label could ruin is lost."""

DECISIONS: Final = ("open", "promoted", "dropped", "undecided")
"""Words of the decisions OPEN, PROMOTED, DROPPED and UNDECIDED."""

LEAST_LABELS: Final = 20
"""Labels before a challenger is dropped that is not surely worse: first answers may agree by chance."""

STEPS: Final = 50
"""Halvings in the search of a bound: it is exact to within 2^-49."""


class Rules(NamedTuple):
    """When a challenge ends; differences are challenger minus champion, in accuracy over all records."""

    alpha: float = 0.05
    """Probability that a bound is ever wrong; of a wrong promotion half of it."""
    margin: float = 0.0
    """Promoted: the lower bound of the difference is above this."""
    worth: float = 0.005
    """Dropped: the upper bound of the difference is below this, or below 0 before LEAST_LABELS labels.

    At least ``margin``.
    """
    max_labels: int = 2000
    """Undecided: after so many labels neither is the case."""

    def check(self) -> None:
        """Raise ParameterError for a value out of its range."""
        ranges = {
            "alpha": (1e-9 <= self.alpha <= 0.5, "from 1e-9 to 0.5"),
            "margin": (0.0 <= self.margin < 1.0, "at least 0 and below 1"),
            "worth": (self.margin <= self.worth < 1.0, f"at least margin={self.margin:g} and below 1"),
            "max_labels": (1 <= self.max_labels <= 10**12, "from 1 to 1000000000000"),
        }
        for name, (is_valid, rule) in ranges.items():
            if not is_valid:
                msg = f"{name}={getattr(self, name)} must be {rule}"
                raise ParameterError(msg)

    def array(self) -> Floats:
        """Return the rules as kernels take them."""
        return np.array(self, dtype=np.float64)


@dataclass(frozen=True, slots=True)
class Comparison:
    """A challenger beside its champion, as far as labels show."""

    records: int
    """Records that both models answered."""
    disagreements: int
    """Records that they answered differently."""
    drawn: int
    """Disagreements whose label is to be compared."""
    charged: int
    """Labels among these that would not have come otherwise."""
    labels: int
    """Labels compared."""
    wins: int
    """Labels compared that the challenger answered right."""
    losses: int
    """Labels compared that the champion answered right."""
    difference: float
    """Estimate of the accuracy of the challenger over all records, minus that of the champion.

    NaN without labels, as both bounds.
    """
    low: float
    """Lower bound of the difference; both bounds hold at all times together, with 1 - alpha."""
    high: float
    decision: str
    """open, promoted, dropped or undecided"""

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def read(words: Ints, rules: Rules) -> Comparison:
    """Return the state of a comparison; words: int64[CHALLENGE_WORDS]."""
    counts = ChallengeCounts.over(words)
    wins, losses = counts.wins[: 2 * OCTAVES].reshape(2, OCTAVES).tolist()
    difference = low = high = math.nan
    if counts.labels > 0:
        share = float(counts.disagreements / counts.records)
        led = sum((win - loss) << octave for octave, (win, loss) in enumerate(zip(wins, losses, strict=True)))
        difference = share * float(led / counts.weight)
        level = math.log(2.0 / rules.alpha)
        low = share * _bound(counts, level, 1)
        high = -share * _bound(counts, level, -1)
    return Comparison(
        records=int(counts.records),
        disagreements=int(counts.disagreements),
        drawn=int(counts.drawn),
        charged=int(counts.charged),
        labels=int(counts.labels),
        wins=sum(wins),
        losses=sum(losses),
        difference=difference,
        low=low,
        high=high,
        decision=DECISIONS[counts.decision],
    )


def problem(words: Ints) -> str:
    """Return the rule that foreign words break, or an empty text if they are the state of a comparison."""
    if len(words) != CHALLENGE_WORDS:
        return f"a challenge must have {CHALLENGE_WORDS} words, not {len(words)}"
    counts = ChallengeCounts.over(words)
    rules = range_rules(ChallengeCounts)
    for (name, field), rule in zip(ChallengeCounts.FIELDS.items(), rules, strict=True):
        low, high = (
            getattr(counts, limit) if isinstance(limit, str) else limit for limit in (field.low, field.high)
        )
        if not low <= getattr(counts, name) <= high:
            return rule
    sides = counts.wins[: 2 * OCTAVES]
    if sides.min() < 0 or sides.max() > counts.labels or sides.sum() > counts.labels:
        return "wins and losses must be at least 0 and at most the labels compared"
    if sides.reshape(2, OCTAVES)[:, counts.largest + 1 :].any():
        return "wins and losses must have no octave above the highest of a label compared"
    if counts.weight > counts.labels << counts.largest:
        return "weight must be at most the highest weight for each label compared"
    return ""


def _bound(counts: ChallengeCounts, level: float, side: int) -> float:
    """Return the lower bound of the mean per disagreement; side -1: with the models exchanged."""
    low, high = -1.0, 1.0
    if log_evidence(counts, low, side) < level:
        return low
    for _ in range(STEPS):
        middle = 0.5 * (low + high)
        if log_evidence(counts, middle, side) >= level:
            low = middle
        else:
            high = middle
    return low


@kernel("float64(ChallengeCounts, float64, int64)", alone=True)
def log_evidence(counts: ChallengeCounts, mean: float, side: int) -> float:
    """Return the logarithm of E(mean), the evidence that the mean per disagreement is above ``mean``.

    side -1: with the models exchanged. Before the first label: 0.
    """
    return weigh_evidence(counts, mean, side)


@kernel
def weigh_evidence(counts: ChallengeCounts, mean: float, side: int) -> float:
    """Return ``log_evidence`` within other kernels."""
    ahead, behind = counts.wins, counts.losses()
    if side < 0:
        ahead, behind = behind, ahead
    n = counts.labels
    if n == 0:
        return 0.0
    weight = counts.weight / n
    top, total = -math.inf, 0.0
    for bet in BETS:
        fraction = bet / (1 << counts.reference)
        if fraction * (1 << counts.largest) >= 1.0:
            continue
        wealth = -n * math.log1p(fraction * weight * mean)
        for octave in range(counts.largest + 1):
            stake = fraction * (1 << octave)
            wealth += ahead[octave] * math.log1p(stake) + behind[octave] * math.log1p(-stake)
        if wealth > top:
            total = total * math.exp(top - wealth) + 1.0
            top = wealth
        else:
            total += math.exp(wealth - top)
    return top + math.log(total / len(BETS)) if total > 0.0 else -math.inf


@kernel
def decide(counts: ChallengeCounts, rules) -> int:
    """Return the decision by the counts; rules: float64[4], ``Rules.array``."""
    alpha, margin, worth, max_labels = rules[0], rules[1], rules[2], rules[3]
    level = math.log(2.0 / alpha)
    share = counts.disagreements / counts.records
    if margin < share and weigh_evidence(counts, margin / share, 1) >= level:
        return PROMOTED
    enough = worth if counts.labels >= LEAST_LABELS else 0.0
    if enough > share or weigh_evidence(counts, -enough / share, -1) >= level:
        return DROPPED
    return UNDECIDED if counts.labels >= max_labels else OPEN


@kernel
def compare(counts: ChallengeCounts, rules, label: int, champion: int, challenger: int, octave: int) -> int:
    """Count a label of a drawn disagreement; return the decision. After a decision nothing is counted."""
    if counts.decision == OPEN:
        counts.reference = octave if counts.labels == 0 else counts.reference
        counts.largest = max(octave, counts.largest)
        counts.labels += 1
        counts.weight += 1 << octave
        if label == challenger:
            counts.wins[octave] += 1
        elif label == champion:
            counts.losses()[octave] += 1
        counts.decision = decide(counts, rules)
    return counts.decision


@kernel(
    "int64(ChallengeCounts, float64[::1], int32[::1], int32[::1], int32[::1], int8[::1])",
    alone=True,
)
def compare_rows(counts: ChallengeCounts, rules, label, champion, challenger, octave) -> int:
    """Compare rows of labels in order; return the row of the decision plus 1, or 0 without a decision.

    label, champion, challenger: int32[n], the classes of label and answers; octave: int8[n], as drawn. Rows
    without a label (below 0) or not drawn are left out.
    """
    if counts.decision != OPEN:
        return 0
    for row in range(len(label)):
        if label[row] >= 0 and octave[row] >= 0:
            sides = int(label[row]), int(champion[row]), int(challenger[row])
            if compare(counts, rules, sides[0], sides[1], sides[2], int(octave[row])) != OPEN:
                return row + 1
    return 0
