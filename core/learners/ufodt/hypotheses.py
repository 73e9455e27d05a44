"""Hypotheses: strings of outcomes of all features, enumerated or sampled, with weights and decision regions.

They are no state: they follow from an episode's theta and number, and are made in the workspace of a call.

    ints    SPACE_WORDS | outcomes [feature, hypothesis] | region | surviving hypotheses | hash table
    floats  P(outcome | class) [class, outcome of any feature] | posterior of classes | weights
            | masses [outcome, class] | two rows of classes | utilities [feature]
"""

from __future__ import annotations

from typing import Final

from core.kernels.jit import kernel
from core.learners.ufodt import words as w
from core.learners.ufodt.words import feature_at, in_episode
from core.numeric import rng
from core.tree import layout as at

COUNT: Final = 0  # hypotheses
ALIVE: Final = 1  # surviving hypotheses
WANTED: Final = 2
IS_ALL: Final = 3  # 1: all hypotheses are enumerated
REGION_AT: Final = 4
ALIVE_AT: Final = 5
TABLE_AT: Final = 6
TABLE: Final = 7  # entries of the hash table, a power of two
STRING_WIDTH: Final = 8  # outcomes of all features
POSTERIOR_AT: Final = 9
WEIGHT_AT: Final = 10
MASS_AT: Final = 11
ROW_AT: Final = 12
UTILITY_AT: Final = 13
FLOATS: Final = 14  # words of the workspace
INTS: Final = 15
SPACE_WORDS: Final = 16

ENUMERATED: Final = 4096
"""Strings that are always enumerated, for any number of samples: all strings of twelve bits."""
ATTEMPTS: Final = 64
"""Maximum of samples, as a multiple of the hypotheses to be found [D43]."""
PLAIN: Final = 100
"""Features up to which weights are plain products; with more features, each factor is scaled by the largest
of its feature, against underflow.
"""


@kernel
def lay_out(plan, params, episode, e: int, space) -> None:
    """Write the number of hypotheses, and where the parts of the workspace lie."""
    n, m = plan[at.PLAN_ATTRIBUTES], max(episode[e + w.CLASSES], 1)
    wanted = int(w.parameter(plan, params, w.HYPOTHESES))
    strings, most = 1, 1
    for feature in range(n):
        outcomes = max(episode[in_episode(plan, e, w.OUTCOMES) + feature], 1)
        most = max(most, outcomes)
        strings = min(strings * outcomes, 1 << 40)
    enumerates = w.parameter(plan, params, w.ENUMERATE) != 0.0 and strings <= max(wanted, ENUMERATED)
    space[IS_ALL] = 1 if enumerates else 0
    space[WANTED] = strings if enumerates else wanted
    wanted = space[WANTED]
    table = 1
    while table < 2 * wanted:
        table *= 2
    space[COUNT], space[ALIVE] = 0, 0
    space[REGION_AT] = SPACE_WORDS + n * wanted
    space[ALIVE_AT] = space[REGION_AT] + wanted
    space[TABLE_AT] = space[ALIVE_AT] + wanted
    space[TABLE] = table
    space[INTS] = space[TABLE_AT] + table
    space[STRING_WIDTH] = plan[at.PLAN_VALUES] + 2 * plan[at.PLAN_NUMERIC]
    space[POSTERIOR_AT] = m * space[STRING_WIDTH]
    space[WEIGHT_AT] = space[POSTERIOR_AT] + m
    space[MASS_AT] = space[WEIGHT_AT] + wanted
    space[ROW_AT] = space[MASS_AT] + most * m
    space[UTILITY_AT] = space[ROW_AT] + 2 * m
    space[FLOATS] = space[UTILITY_AT] + n


@kernel
def write_shares(plan, episode, numbers, e: int, space, table) -> None:
    """Write P(outcome | class) of hypotheses."""
    m, width = episode[e + w.CLASSES], space[STRING_WIDTH]
    for feature in range(plan[at.PLAN_ATTRIBUTES]):
        first = plan[feature_at(plan, feature) + w.FIRST_OUTCOME]
        for c in range(m):
            for v in range(episode[in_episode(plan, e, w.OUTCOMES) + feature]):
                table[c * width + first + v] = w.mean_share_of(plan, numbers, e, c, feature, v)


@kernel
def write_all(plan, episode, e: int, space) -> None:
    """Write every string, the first feature changing last."""
    n, wanted = plan[at.PLAN_ATTRIBUTES], space[WANTED]
    for h in range(wanted):
        rest = h
        for back in range(n):
            feature = n - 1 - back
            outcomes = max(episode[in_episode(plan, e, w.OUTCOMES) + feature], 1)
            space[SPACE_WORDS + feature * wanted + h] = rest % outcomes
            rest //= outcomes
    space[COUNT] = wanted


@kernel
def is_new(plan, space, h: int) -> bool:
    """Return whether string h differs from all strings before it, and enter it into the hash table."""
    wanted, mask = space[WANTED], space[TABLE] - 1
    found = 0
    for feature in range(plan[at.PLAN_ATTRIBUTES]):
        found = (found * 31 + space[SPACE_WORDS + feature * wanted + h] + 1) & 0xFFFFFFFFFF
    entry = (found ^ (found >> 20)) & mask
    while space[space[TABLE_AT] + entry] >= 0:
        other = space[space[TABLE_AT] + entry]
        same = True
        for feature in range(plan[at.PLAN_ATTRIBUTES]):
            row = SPACE_WORDS + feature * wanted
            if space[row + other] != space[row + h]:
                same = False
                break
        if same:
            return False
        entry = (entry + 1) & mask
    space[space[TABLE_AT] + entry] = h
    return True


@kernel
def draw_some(plan, episode, numbers, e: int, space, table) -> None:
    """Sample distinct strings (Algorithm 4): a class by the prior, then each outcome given the class.

    A string that is already there is sampled again for the same class, as in the authors' code: each class
    gets its share of the strings, even if new strings are rare.
    """
    n, m, wanted, strings = plan[at.PLAN_ATTRIBUTES], episode[e + w.CLASSES], space[WANTED], 1
    for feature in range(n):
        strings = min(strings * max(episode[in_episode(plan, e, w.OUTCOMES) + feature], 1), wanted)
    key = rng.bits(plan[at.PLAN_HYPOTHESIS_KEY], episode[e + w.NUMBER])
    for entry in range(space[TABLE]):
        space[space[TABLE_AT] + entry] = -1
    prior, h, c, is_drawn = in_episode(plan, e, w.PRIOR), 0, 0, False
    for attempt in range(ATTEMPTS * wanted):
        draw = attempt * (n + 1)
        if not is_drawn:
            u, c = rng.uniform(key, draw), 0
            while c < m - 1 and u >= numbers[prior + c]:
                u -= numbers[prior + c]
                c += 1
            is_drawn = True
        for feature in range(n):
            first = c * space[STRING_WIDTH] + plan[feature_at(plan, feature) + w.FIRST_OUTCOME]
            last = episode[in_episode(plan, e, w.OUTCOMES) + feature] - 1
            u, v = rng.uniform(key, draw + 1 + feature), 0
            while v < last and u >= table[first + v]:
                u -= table[first + v]
                v += 1
            space[SPACE_WORDS + feature * wanted + h] = v
        if is_new(plan, space, h):
            h += 1
            is_drawn = False
            if h == strings:  # enough, or all there are
                break
    space[COUNT] = h


@kernel
def weigh(plan, episode, numbers, e: int, space, table) -> None:
    """Write w = Σ P(y)·P(h | y) of each hypothesis and its decision region, argmax P(y)·P(h | y)."""
    n, m, wanted, width = plan[at.PLAN_ATTRIBUTES], episode[e + w.CLASSES], space[WANTED], space[STRING_WIDTH]
    prior = in_episode(plan, e, w.PRIOR)
    for h in range(space[COUNT]):
        total, best, region = 0.0, -1.0, 0
        for c in range(m):
            product = numbers[prior + c]
            for feature in range(n):
                first = plan[feature_at(plan, feature) + w.FIRST_OUTCOME]
                product *= table[c * width + first + space[SPACE_WORDS + feature * wanted + h]]
            total += product
            if product > best:
                best, region = product, c
        table[space[WEIGHT_AT] + h] = total
        space[space[REGION_AT] + h] = region
        space[space[ALIVE_AT] + h] = h
    space[ALIVE] = space[COUNT]


@kernel
def scale(plan, episode, e: int, space, table) -> None:
    """Divide the factors of each feature by the largest of them: all weights change by one factor."""
    m, width = episode[e + w.CLASSES], space[STRING_WIDTH]
    for feature in range(plan[at.PLAN_ATTRIBUTES]):
        first = plan[feature_at(plan, feature) + w.FIRST_OUTCOME]
        outcomes, largest = episode[in_episode(plan, e, w.OUTCOMES) + feature], 0.0
        for c in range(m):
            for v in range(outcomes):
                largest = max(largest, table[c * width + first + v])
        for c in range(m):
            for v in range(outcomes):
                table[c * width + first + v] /= largest


@kernel
def keep_consistent(plan, space, feature: int, outcome: int) -> None:
    """Drop the hypotheses with a different outcome of a feature."""
    row, alive, kept = SPACE_WORDS + feature * space[WANTED], space[ALIVE_AT], 0
    for i in range(space[ALIVE]):
        h = space[alive + i]
        if space[row + h] == outcome:
            space[alive + kept] = h
            kept += 1
    space[ALIVE] = kept


@kernel
def infer(plan, episode, numbers, e: int, space, table, feature: int, outcome: int) -> None:
    """Multiply the posterior of the classes by P(outcome | class), and normalise."""
    threshold = episode[in_episode(plan, e, w.THRESHOLD) + feature]
    first, total = space[POSTERIOR_AT], 0.0
    for c in range(episode[e + w.CLASSES]):
        table[first + c] *= w.share_of(plan, numbers, e, c, feature, threshold, outcome)
        total += table[first + c]
    for c in range(episode[e + w.CLASSES]):
        if total > 0.0:
            table[first + c] /= total
        else:  # all classes exclude it: no information
            table[first + c] = numbers[in_episode(plan, e, w.PRIOR) + c]


@kernel
def infer_all(plan, episode, numbers, e: int, space, table) -> None:
    """Write the posterior of the classes given all observations, in the order of the features.

    The order of purchases must not change a single bit: an episode that is resumed does not store it.
    """
    for c in range(episode[e + w.CLASSES]):
        table[space[POSTERIOR_AT] + c] = numbers[in_episode(plan, e, w.PRIOR) + c]
    for feature in range(plan[at.PLAN_ATTRIBUTES]):
        outcome = episode[in_episode(plan, e, w.OUTCOME) + feature]
        if outcome >= 0:
            infer(plan, episode, numbers, e, space, table, feature, outcome)


@kernel
def build(plan, params, episode, numbers, e: int, space, table) -> None:
    """Make the hypotheses of an episode that fit its observations; the workspace is laid out already."""
    write_shares(plan, episode, numbers, e, space, table)
    if space[IS_ALL] != 0:
        write_all(plan, episode, e, space)
    else:
        draw_some(plan, episode, numbers, e, space, table)
    if plan[at.PLAN_ATTRIBUTES] > PLAIN:
        scale(plan, episode, e, space, table)
    weigh(plan, episode, numbers, e, space, table)
    for feature in range(plan[at.PLAN_ATTRIBUTES]):
        outcome = episode[in_episode(plan, e, w.OUTCOME) + feature]
        if outcome >= 0:
            keep_consistent(plan, space, feature, outcome)
