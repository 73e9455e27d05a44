"""Rate: request all labels that the budget grants, for the least certain of the recent records."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from core import registry
from core.active.budgets.base import returned_requests, spent_requests
from core.active.queries.base import AT_RANDOM, NO, UNKNOWN, YES, Query, Uncertainty, score_dispatcher
from core.kernels.jit import bits, kernel
from core.numeric import rng
from core.plugin import Parameters, choice, count, number
from core.tree import layout

KIND: Final = 0
WINDOW: Final = 1
EXPLORE: Final = 2
"""Words of ``params[at:]``: the kind of the strategy that scores, then the parameters of ``rate``."""

RESERVE: Final = 4.0
"""Labels in reserve: with half of them the budget refuses 6 % of the records at a limit of 0.5."""

# State: labels given up (float64), number of records in the window, position of the next record in it; then
# the counts of codes by octave and by code, and the window, codes of 8 bits
LET_GO: Final = 0
HELD: Final = 1
NEXT: Final = 2
OCTAVES: Final = 16
STEPS: Final = OCTAVES
CODES: Final = OCTAVES * STEPS
BY_OCTAVE: Final = 3
BY_CODE: Final = BY_OCTAVE + OCTAVES
RING: Final = BY_CODE + CODES
PER_WORD: Final = 8

PROBLEMS: Final = (
    "labels let go must be a number of at least 0",
    "records held must be from 0 to the size of the window, and the next place inside of it, after them",
    "counts of codes must equal the numbers of codes in the window",
)

LEADING_BITS: Final = 48
"""Bits of a float64 below its exponent and the four leading bits of its fraction."""
LOWEST: Final = (1022 - OCTAVES + 1) * STEPS
"""Exponent and leading bits of 2^-16, where code 0 begins."""


def scored() -> tuple[str, ...]:
    """Return the names of the strategies with a score: a kernel ``score`` in addition to ``decide``."""
    modules = zip(registry.names("queries"), registry.modules("queries"), strict=True)
    return tuple(name for name, module in modules if hasattr(module, "score"))


@dataclass(frozen=True, slots=True)
class Plugin(Query):
    """Rank a record's score in the last ``window`` records; request its label if in the top share.

    ``{"name": "rate", "score": "variable_uncertainty", "window": 1000, "explore": 0.1}`` (ALGORITHMS section
    9.2) [D69]. Other strategies request without regard to the budget, which then refuses the excess: the
    position of a record decides, not its score. This strategy requests all labels that the budget grants, for
    any scores and any number of equal scores.

    Among n scores in the window, with G above the record's score and E equal to it, the label is requested
    with the chance (q·(n + 1) - G) / (E + 1), clipped to [0, 1]: a smoothed rank (Vovk, Gammerman, Shafer
    2005, section 2.2). If the scores are exchangeable, a record is in the top share q with probability q
    exactly; the record's random number decides between equal scores. A part ``explore`` of the rate B is
    sampled independently of the score. So each record is requested with a known probability, at least
    ``explore``·B, and its label has an importance.

    q follows the reserve, the labels that the budget grants but that were not requested: with c of them the
    rate is B·c/r, r = max(4·(1 - B), B). So c stays near r, the budget is seldom closed, and when all scores
    rise or fall at once, labels are neither spent in a burst nor lost. A reserve so large that every record
    would be requested is cut: times without unlabelled records are not made up for. B is ``budget.limit``
    less ``evaluation.share``. The strategy is made for the budget ``count``; the budget ``window`` counts
    differently.

    Scores are quantised to sixteenths of their octave down to 2^-16 and counted by these codes, so that the
    cost of a record does not depend on the window; a model takes 2.2 kB and a byte for each record of the
    window.
    """

    score: str = choice("variable_uncertainty", *scored())
    """Strategy whose score ranks the records."""
    window: int = count(1000, at_least=10, at_most=100_000)
    """Number of last records among which a record is ranked."""
    explore: float = number(0.1, at_least=0.0, at_most=1.0)
    """Share of the requests that is sampled at random; with 0 the labels have no importance."""

    @property
    def columns(self) -> int:
        found: int = registry.plugin(self.family, self.score)().columns
        return found

    def initial(self) -> tuple[float, ...]:
        return (0.0,) * (RING + -(-self.window // PER_WORD))

    def constants(self) -> tuple[float, ...]:
        """Return the parameters in the order of the kernels' words."""
        return (float(registry.kind(self.family, self.score)), *Query.constants(self))

    def continues(self, before: Parameters) -> bool:
        """Return whether the window under ``before`` stays valid: the same length, and the same scores."""
        return isinstance(before, Plugin) and (before.score, before.window) == (self.score, self.window)


score_of = score_dispatcher()


@kernel
def code_of(score: float) -> int:
    """Return the code of a score, 0 to 255: its octave below 1 and the sixteenth of that."""
    return min(max((bits(score) >> LEADING_BITS) - LOWEST, 0), CODES - 1)


@kernel
def chance_of(ints, state: int, code: int, floor: float, wanted: float) -> float:
    """Return the chance of a record with this code; over exchangeable records the mean is ``wanted``.

    A part ``floor`` goes to all records, the rest to the ranks above (wanted - floor) / (1 - floor).
    """
    octave = code // STEPS
    steps = state + BY_CODE + octave * STEPS
    # Adding 0 is cheaper than loops whose length the processor mispredicts. For a constant length the
    # compiler would make sixteen additions in sequence, not vectors. HELD is never negative: there are 16
    # turns.
    turns = STEPS + min(ints[state + HELD], 0)
    higher = 0
    for each in range(turns):
        higher += ints[state + BY_OCTAVE + each] if each > octave else 0
        higher += ints[steps + each] if each > code - octave * STEPS else 0
    upper = (wanted - floor) * (ints[state + HELD] + 1.0) - (1.0 - floor) * higher
    return floor + min(max(upper / (ints[state + BY_CODE + code] + 1.0), 0.0), 1.0 - floor)


@kernel
def enter(ints, state: int, window: int, code: int) -> None:
    """Put a code into the window, in the place of the oldest if it is full."""
    place = min(max(ints[state + NEXT], 0), window - 1)
    word, shift = state + RING + place // PER_WORD, place % PER_WORD * 8
    oldest = (ints[word] >> shift) & (CODES - 1)
    if ints[state + HELD] < window:
        ints[state + HELD] += 1
    else:
        ints[state + BY_OCTAVE + oldest // STEPS] -= 1
        ints[state + BY_CODE + oldest] -= 1
    ints[word] ^= (oldest ^ code) << shift
    ints[state + BY_OCTAVE + code // STEPS] += 1
    ints[state + BY_CODE + code] += 1
    ints[state + NEXT] = place + 1 if place + 1 < window else 0


@kernel
def wanted_rate(plan, params, ints, floats, state: int, limit: float, rate: float, t: int) -> float:
    """Return the rate that keeps the reserve, at most 1; give up the part of the reserve beyond that."""
    budget_at = plan[layout.PLAN_BUDGETING + 1]
    spent = spent_requests(plan, ints, returned_requests(params, budget_at, ints), t)
    reserve = max(RESERVE * (1.0 - rate), rate)
    in_hand = limit * t - spent - floats[state + LET_GO]
    wanted = rate * in_hand / reserve
    if wanted > 1.0:
        floats[state + LET_GO] += in_hand - reserve / rate
        return 1.0
    return wanted


@kernel
def decide(
    plan,
    params,
    at: int,
    ints,
    floats,
    state: int,
    limit: float,
    share: float,
    lead: float,
    weight: float,
    classes: float,
    t: int,
) -> tuple[int, float]:
    """Rank the record, then draw for it."""
    rate = limit - (1.0 / plan[layout.PLAN_SLICE] if plan[layout.PLAN_SLICE] > 0 else 0.0)
    window, floor = int(params[at + WINDOW]), params[at + EXPLORE] * rate
    if rate <= 0.0:  # the evaluation uses the whole limit
        return NO, UNKNOWN
    wanted = max(wanted_rate(plan, params, ints, floats, state, limit, rate, t), floor)
    code = code_of(score_of(int(params[at + KIND]), Uncertainty(share, lead, weight, classes, t)))
    chance = chance_of(ints, state, code, floor, wanted)
    enter(ints, state, window, code)
    u = rng.uniform(plan[layout.PLAN_QUERY_KEY], t << rng.DRAW_BITS)
    answer = AT_RANDOM if u < floor else YES if u < chance else NO
    return answer, chance if floor > 0.0 else UNKNOWN


@kernel
def problem(params, at: int, ints, floats, state: int) -> int:
    if not 0.0 <= floats[state + LET_GO] < math.inf:
        return 1
    held, following, window = ints[state + HELD], ints[state + NEXT], int(params[at + WINDOW])
    if not 0 <= held <= window or not 0 <= following < window or (held < window and following != held):
        return 2
    counts = np.zeros(CODES, dtype=np.int64)
    for place in range(held):
        counts[(ints[state + RING + place // PER_WORD] >> (place % PER_WORD * 8)) & (CODES - 1)] += 1
    for octave in range(OCTAVES):
        total = 0
        for code in range(octave * STEPS, (octave + 1) * STEPS):
            if ints[state + BY_CODE + code] != counts[code]:
                return 3
            total += counts[code]
        if ints[state + BY_OCTAVE + octave] != total:
            return 3
    return 0
