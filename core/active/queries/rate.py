"""Rate: request all labels that the budget grants, for the least sure of the recent records."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Final

import numpy as np

from core import registry
from core.active.budgets.base import returned_requests, spent_requests
from core.active.queries.base import AT_RANDOM, NO, UNKNOWN, YES, Query, Uncertainty, score_dispatcher
from core.active.scores import SCORES, columns_of
from core.kernels.jit import bits, kernel, stay_apart, sum_after, tail
from core.kernels.records import Record, word, words_after
from core.layout.learning import WEIGHT
from core.layout.model import ACTUAL, HIT, WINDOW, ModelHeader
from core.layout.plan import PlanRecord
from core.numeric import rng
from core.plugin import Parameters, choice, count, number

RESERVE: Final = 4.0
"""Labels in reserve: with half of them the budget refuses 6 % of the records at a limit of 0.5."""

LEAST_PART: Final = 0.5
"""Part of the budget's rate to which random requests may slow down while the reserve runs out.

If all requests are at random, the budget refuses 0.4 % of the records then, 8 % at a constant rate. A smaller
part would give the labels very different weights.
"""

LEAST_LABELS: Final = 100
"""Labels in the window of the evaluation from which their dependence is computed: ± 0.1 by chance."""

OCTAVES: Final = 16
STEPS: Final = OCTAVES
CODES: Final = OCTAVES * STEPS
PER_WORD: Final = 8
"""Codes of the window in a word."""

PROBLEMS: Final = (
    "labels let go must be a number of at least 0",
    "records held must be from 0 to the size of the window, and the next place inside of it, after them",
    "counts of codes must equal the numbers of codes in the window",
)

LEADING_BITS: Final = 48
"""Bits of a float64 below its exponent and the four leading bits of its fraction."""
LOWEST: Final = (1022 - OCTAVES + 1) * STEPS
"""Exponent and leading bits of 2^-16, where code 0 begins."""


RANKING: Final = ("ask", "rate")
"""The strategies of this module, which rank records by a score and have none of their own."""
BY_SHARE: Final = "variable_uncertainty"
"""The strategy whose own score is 1 - p̂, for p̂ by any score of an answer."""


def scored() -> tuple[str, ...]:
    """Return the names of the strategies with a score: a kernel ``score`` in addition to ``decide``."""
    names = [name for name in registry.names("queries") if name not in RANKING]
    return tuple(name for name in names if hasattr(registry.module("queries", name), "score"))


class RateState(Record):
    """The scores of the last records."""

    let_go: float = word("labels given up")
    records: int = word("records in the window")
    next: int = word("position of the next record in the window")
    counts: Any = words_after(int, "counts of codes by octave, counts by code, and the window, in bytes")

    @property
    def by_octave(self) -> Any:
        """The records of each octave, int64[OCTAVES]."""
        return self.counts

    @property
    def by_code(self) -> Any:
        """The records of each code, int64[CODES]."""
        return tail(self.counts, OCTAVES)

    @property
    def codes(self) -> Any:
        """The codes in the window, PER_WORD in a word."""
        return tail(self.counts, OCTAVES + CODES)


FIXED_WORDS: Final = RateState.SIZE + OCTAVES + CODES
"""Words of the state before the codes of the window."""


@dataclass(frozen=True, slots=True)
class Plugin(Query):
    """Rank a record's score in the last ``window`` records; request its label if in the top share.

    ``{"name": "rate", "score": "least_confidence", "window": 1000, "explore": 0.35}`` [D69]. Other strategies
    request without regard to the budget, which then refuses the excess: the position of a record decides, not
    its score. This strategy requests all labels that the budget grants, for any scores and any number of
    equal scores. Records are ranked by 1 - p̂ of the answer by ``score`` (core/active/scores.py) [D71].

    Among n scores in the window, with G above the record's score and E equal to it, the label is requested
    with the chance (q·(n + 1) - G) / (E + 1), clipped to [0, 1]: a smoothed rank (Vovk, Gammerman, Shafer
    2005, section 2.2). If the scores are exchangeable, a record is in the top share q with probability q
    exactly; the record's random number decides between equal scores. A part ``explore`` of the rate max(q, B)
    is sampled independently of the score. So each record is requested with a known probability, at least
    ``explore``·B, and its label has an importance.

    Two guards raise this part where a score is not worth a rank. At a place that has seen m labels it is at
    least 1 - m/``anneal``: at the start, after a rebuild, in the young leaves of an eager tree. And it is at
    least a/``dependence``, where a is the agreement beyond chance (Cohen's kappa) of the last labels with the
    label before each (Žliobaitė, Bifet, Read, Pfahringer and Holmes 2015). Labels that depend on the time of
    their records come from a concept that moves: unsure records hide its moves from model and detector. Where
    the label before is right more often than the answer is, the answer is no guide, and the part is 1.

    q follows the reserve, the labels that the budget grants but that were not requested: with c of them the
    rate is B·c/r, r = max(4·(1 - B), B). So c stays near r, the budget is seldom closed, and when all scores
    rise or fall at once, labels are neither spent in a burst nor lost. A reserve so large that every record
    would be requested is cut: times without unlabelled records are not made up for. Where requests
    are at random, their rate follows q down to B/2, or the reserve would run out. B is ``budget.limit`` less
    ``evaluation.share``. The strategy is made for the budget ``count``; the budget ``window`` counts
    differently.

    Scores are quantised to sixteenths of their octave down to 2^-16 and counted by these codes, so that the
    cost of a record does not depend on the window; a model takes 2.2 kB and a byte for each record of the
    window.
    """

    NUMBERS: ClassVar[tuple[str, ...]] = ("scorer", "window", "explore", "anneal", "dependence")

    score: str = choice("least_confidence", *SCORES, *scored())
    """Measure of doubt about the answer; the name of a strategy: that strategy's own rank of leaves."""
    window: int = count(1000, at_least=10, at_most=100_000)
    """Number of last records among which a record is ranked."""
    explore: float = number(0.35, at_least=0.0, at_most=1.0)
    """Share of the requests that is sampled at random; with 0 the labels have no importance."""
    anneal: int = count(0)
    """Labels of a leaf during which this share falls from 1 to ``explore``; 0: it is ``explore`` at once."""
    dependence: float = number(0.0, at_least=0.0, at_most=1.0)
    """Agreement of successive labels beyond chance at which this share is 1; 0: it has no effect."""

    @property
    def columns(self) -> int:
        """Return the columns of the score, or those of a strategy with its score at the leaf.

        ``anneal`` needs the weight of the labels in addition.
        """
        labels = WEIGHT if self.anneal else 0
        if self.score in SCORES:
            return columns_of(self.score) | labels
        plugin = registry.plugin(self.family, self.score)
        has_score = any(declared.name == "score" for declared in fields(plugin))
        columns: int = plugin(**({"score": "leaf_share"} if has_score else {})).columns
        return columns | labels

    def initial(self) -> tuple[float, ...]:
        return (0.0,) * (FIXED_WORDS + -(-self.window // PER_WORD))

    def constants(self) -> tuple[float, ...]:
        """Return the kind of the strategy whose kernel ranks, and the other parameters."""
        scorer = BY_SHARE if self.score in SCORES else self.score
        return (float(registry.kind(self.family, scorer)), *Query.constants(self))

    def continues(self, before: Parameters) -> bool:
        """Return whether the window under ``before`` stays valid: the same length, and the same scores."""
        return isinstance(before, Plugin) and (before.score, before.window) == (self.score, self.window)


@kernel
def code_of(score: float) -> int:
    """Return the code of a score, 0 to 255: its octave below 1 and the sixteenth of that."""
    return min(max((bits(score) >> LEADING_BITS) - LOWEST, 0), CODES - 1)


@kernel
def chance_of(state: RateState, code: int, floor: float, rate: float) -> float:
    """Return the chance of a record with this code; over exchangeable records the mean is ``rate``.

    A part ``floor`` goes to all records, the rest to the ranks above (rate - floor) / (1 - floor).
    """
    octave = code // STEPS
    steps = tail(state.by_code, octave * STEPS)
    higher = sum_after(state.by_octave, octave) + sum_after(steps, code - octave * STEPS)
    upper = (rate - floor) * (state.records + 1.0) - (1.0 - floor) * higher
    if upper <= 0.0:  # most records, which need no division
        return floor
    return floor + min(upper / (state.by_code[code] + 1.0), 1.0 - floor)


@kernel
def enter(state: RateState, window: int, code: int) -> None:
    """Put a code into the window, in the place of the oldest if it is full."""
    by_octave, by_code, codes = state.by_octave, state.by_code, state.codes
    place = min(max(state.next, 0), window - 1)
    word_number, shift = place // PER_WORD, place % PER_WORD * 8
    oldest = (codes[word_number] >> shift) & (CODES - 1)
    if state.records < window:
        state.records += 1
    else:
        by_octave[oldest // STEPS] -= 1
        by_code[oldest] -= 1
    codes[word_number] ^= (oldest ^ code) << shift
    by_octave[code // STEPS] += 1
    by_code[code] += 1
    state.next = place + 1 if place + 1 < window else 0


@kernel
def rate_of(plan: PlanRecord, model: ModelHeader, state: RateState, limit: float, granted: float) -> float:
    """Return the rate that keeps the reserve, at most 1; give up the part of the reserve beyond that.

    ``granted``: the rate that the budget leaves to the strategy.
    """
    number = model.records
    spent = spent_requests(plan, model, returned_requests(plan, model), number)
    reserve = max(RESERVE * (1.0 - granted), granted)
    unspent = limit * number - spent - state.let_go
    rate = unspent * (granted / reserve)
    if rate > 1.0:
        state.let_go += unspent - reserve / granted
        return 1.0
    return rate


@kernel
def explored(plan: PlanRecord, p, model: ModelHeader, weight: float) -> float:
    """Return the share of the requests that is sampled at random, at a place that has seen labels."""
    share = p.explore
    if p.anneal > 0.0 and weight < p.anneal * (1.0 - share):
        share = min(1.0 - weight / p.anneal, 1.0)
    if p.dependence > 0.0:
        share = dependent_share(plan, model, p.dependence, share)
    return share


@kernel
def dependent_share(plan: PlanRecord, model: ModelHeader, full: float, share: float) -> float:
    """Return a share, raised to agreement / full if that is larger, and at most 1.

    The agreement is that of the evaluated labels in the window with the label before each, beyond chance. It
    counts as ``full`` if the labels before are right more often than the answers, and as 0 for fewer than
    LEAST_LABELS labels, whose agreement is chance, and for labels of one class.
    """
    evaluation, n, hits, squares = model.evaluation(plan), 0, 0, 0
    counts = tail(evaluation.counts, (WINDOW + ACTUAL) * plan.classes)
    right = tail(evaluation.counts, (WINDOW + HIT) * plan.classes)
    if model.classes == 2:  # the commonest case needs no loop
        n, hits = counts[0] + counts[1], right[0] + right[1]
        squares = counts[0] * counts[0] + counts[1] * counts[1]
    else:
        for c in range(model.classes):
            n += counts[c]
            hits += right[c]
            squares += counts[c] * counts[c]
    repeats = evaluation.window_last_hit
    if n < LEAST_LABELS:
        return share
    if repeats > hits:
        return 1.0
    # (p - e) / (1 - e) for the agreement p = repeats / n, and e = squares / n² by chance, without divisions.
    beyond, widest = float(repeats * n - squares), full * (n * n - squares)
    return part_of(beyond, widest) if beyond > share * widest else share


@kernel
def part_of(amount: float, whole: float) -> float:
    """Return the part that an amount is of a whole, at most 1; apart, so that most records do not divide."""
    stay_apart()
    return min(amount / whole, 1.0)


@kernel
def decide(
    plan: PlanRecord, p, model: ModelHeader, state: RateState, limit: float, uncertainty: Uncertainty
) -> tuple[int, float]:
    """Rank the record, then draw for it."""
    granted = limit - (1.0 / plan.slice if plan.slice > 0 else 0.0)
    if granted <= 0.0:  # the evaluation uses the whole limit
        return NO, UNKNOWN
    rate = rate_of(plan, model, state, limit, granted)
    floor = explored(plan, p, model, uncertainty.weight) * max(rate, granted)
    floor = min(floor, max(rate, LEAST_PART * granted))
    rate = max(rate, floor)
    code = code_of(score_of(int(p.scorer), uncertainty))
    chance = chance_of(state, code, floor, rate)
    enter(state, int(p.window), code)
    u = rng.uniform(plan.query_key, uncertainty.number << rng.DRAW_BITS)
    answer = AT_RANDOM if u < floor else YES if u < chance else NO
    return answer, chance if floor > 0.0 else UNKNOWN


@kernel
def problem(p, state: RateState) -> int:
    if not 0.0 <= state.let_go < math.inf:
        return 1
    records, following, window = state.records, state.next, int(p.window)
    if (
        not 0 <= records <= window
        or not 0 <= following < window
        or (records < window and following != records)
    ):
        return 2
    counts = np.zeros(CODES, dtype=np.int64)
    for place in range(records):
        counts[(state.codes[place // PER_WORD] >> (place % PER_WORD * 8)) & (CODES - 1)] += 1
    for octave in range(OCTAVES):
        total = 0
        for code in range(octave * STEPS, (octave + 1) * STEPS):
            if state.by_code[code] != counts[code]:
                return 3
            total += counts[code]
        if state.by_octave[octave] != total:
            return 3
    return 0


# The last statement: the dispatcher imports all strategies, and ``ask`` needs all names above.
score_of = score_dispatcher()
