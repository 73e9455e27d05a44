"""Episode: values, questions and answer of UFODT for one record; kernels on plain words (Algorithm 3).

    begin     theta of the episode from the present posterior, thresholds, the features it may ask for
    tell      take in a value that was known before, or bought
    plan_next the best question, or the reason to stop
    answer    class and shares given the observations
    learn     the label: posterior, thresholds, feature selection

``ints, floats`` and ``t`` are a model and its block; ``episode, numbers`` and ``e`` are the words of an
episode in any buffer, as int64 and float64. Only ``begin`` reads the model and only ``learn`` changes it, so
that several episodes may be open at once.
"""

from __future__ import annotations

import numpy as np

from core.kernels.jit import kernel
from core.learners.ufodt import gathering, hypotheses, posterior, scores, selection, thresholds
from core.learners.ufodt import hypotheses as space_at
from core.learners.ufodt import words as w
from core.learners.ufodt.edges import regions
from core.learners.ufodt.words import feature_at, in_episode
from core.numeric import rng
from core.tree import layout as at

CHOICE = 4 << 32
"""First random number of an episode's exploration that ranks features for the criterion `random`."""


@kernel
def exploration_key(plan, episode, e: int) -> np.uint64:
    """Return the key of the random numbers of an episode's exploration."""
    return rng.bits(plan[at.PLAN_EXPLORATION_KEY], episode[e + w.NUMBER])


@kernel
def begin(plan, params, ints, floats, t: int, episode, numbers, e: int, number: int, budget: float) -> None:
    """Open an episode without questions; number: the episode's; budget: maximum of its cost, 0: unlimited."""
    for word in range(w.EPISODE_WORDS):
        episode[e + word] = 0
    m = min(max(ints[at.MODEL_CLASSES], 0), plan[at.PLAN_CLASSES])
    episode[e + w.NUMBER], episode[e + w.CLASSES] = number, m
    episode[e + w.STATE], episode[e + w.VERSION] = w.OPEN, ints[at.MODEL_LABELS]
    episode[e + w.ASKED], episode[e + w.REGION], episode[e + w.PREDICTED] = -1, -1, -1
    episode[e + w.REASON] = w.FINISHED
    numbers[e + w.BUDGET] = budget
    for c in range(m):
        numbers[in_episode(plan, e, w.PRIOR) + c] = posterior.prior(plan, params, floats, t, m, c)
    for feature in range(plan[at.PLAN_ATTRIBUTES]):
        described = feature_at(plan, feature)
        outcomes = 2
        if plan[described + w.KIND] == 0:
            outcomes = max(posterior.values_known(plan, ints, plan[described + w.ORDER]), 1)
            outcomes = min(outcomes, plan[described + w.ROOM])
        episode[in_episode(plan, e, w.OUTCOMES) + feature] = outcomes
        episode[in_episode(plan, e, w.STATUS) + feature] = w.UNKNOWN
        episode[in_episode(plan, e, w.OUTCOME) + feature] = -1
        episode[in_episode(plan, e, w.EXPLOITED) + feature] = 0
        numbers[in_episode(plan, e, w.VALUE) + feature] = 0.0
        numbers[in_episode(plan, e, w.GAIN) + feature] = 0.0
    gathering.begin(plan, floats, episode, numbers, e)
    key = exploration_key(plan, episode, e)
    thresholds.choose(plan, params, ints, floats, t, episode, numbers, e, key)
    selection.select(plan, params, ints, floats, t, episode, numbers, e, key)
    posterior.sample(plan, ints, floats, t, episode, numbers, e)


@kernel
def tell(plan, params, episode, numbers, e: int, feature: int, value: float, status: int) -> bool:
    """Take in the value of a feature (status KNOWN or BOUGHT_ONE); return whether the value is available.

    A value without an outcome in the episode is unavailable: it costs nothing and teaches nothing.
    """
    outcome = w.outcome_of(plan, params, episode, numbers, e, feature, value)
    if outcome < 0:
        episode[in_episode(plan, e, w.STATUS) + feature] = w.UNAVAILABLE
        episode[e + w.UNAVAILABLE_COUNT] += 1
        return False
    episode[in_episode(plan, e, w.STATUS) + feature] = status
    episode[in_episode(plan, e, w.OUTCOME) + feature] = outcome
    numbers[in_episode(plan, e, w.VALUE) + feature] = value
    if status == w.BOUGHT_ONE:
        episode[e + w.BOUGHT] += 1
        numbers[e + w.COST] += params[feature_at(plan, feature) + w.PRICE]
    return True


@kernel
def is_affordable(plan, params, numbers, e: int, feature: int) -> bool:
    """Return whether the budget of an episode allows another feature."""
    budget = numbers[e + w.BUDGET]
    price = params[feature_at(plan, feature) + w.PRICE]
    return bool(budget <= 0.0 or numbers[e + w.COST] + price <= budget + 1e-9 * budget)


@kernel
def best_score(
    plan, params, episode, numbers, e: int, space, table, feature: int, most: float
) -> tuple[float, int]:
    """Return the best score of a feature and its threshold there."""
    criterion = w.parameter(plan, params, w.CRITERION)
    threshold = episode[in_episode(plan, e, w.THRESHOLD) + feature]
    if criterion == w.RANDOM:
        return 1.0 - rng.uniform(exploration_key(plan, episode, e), CHOICE + feature), threshold
    if criterion != w.IG:
        scores.gather_masses(plan, params, episode, e, space, table, feature)
    described = feature_at(plan, feature)
    if plan[described + w.KIND] == 0 or w.parameter(plan, params, w.EXP3) != 0.0:
        found = scores.score(plan, params, episode, numbers, e, space, table, feature, threshold, most)
        return found, threshold
    best = -1.0
    for number in range(plan[described + w.ROOM]):
        cut = w.threshold_of(plan, params, numbers, e, feature, number)
        if cut != cut:  # NaN: it has no further thresholds
            break
        found = scores.score(plan, params, episode, numbers, e, space, table, feature, number, most)
        if found > best + w.TIE * abs(best):
            best, threshold = found, number
    return best, threshold


@kernel
def first_gathered(plan, params, episode, numbers, e: int, space, table) -> int:
    """Return the first attribute without thresholds that may be requested; -1: none.

    If there is one, the utility of each such attribute is written as 0, and all further utilities as -1.
    """
    first = -1
    for feature in range(plan[at.PLAN_ATTRIBUTES]):
        table[space[space_at.UTILITY_AT] + feature] = -1.0
        is_unknown = episode[in_episode(plan, e, w.STATUS) + feature] == w.UNKNOWN
        if not is_unknown or not w.is_gathering(plan, episode, e, feature):
            continue
        if is_affordable(plan, params, numbers, e, feature):
            table[space[space_at.UTILITY_AT] + feature] = 0.0
            first = feature if first < 0 else first
    return first


@kernel
def plan_next(plan, params, episode, numbers, e: int, space, table) -> int:
    """Return the feature with the best score per cost; or -1, and write the reason.

    The workspace holds the surviving hypotheses. The utility of each candidate is written to it, and -1 for
    features that are no candidates. An attribute without thresholds comes before the rest: its values are
    needed to make thresholds.
    """
    m, n = episode[e + w.CLASSES], plan[at.PLAN_ATTRIBUTES]
    episode[e + w.ASKED] = -1
    numbers[e + w.UTILITY] = 0.0
    first = first_gathered(plan, params, episode, numbers, e, space, table)
    if first >= 0:
        episode[e + w.ASKED] = first
        return first
    if m == 0:
        episode[e + w.REASON] = w.ONE_REGION
        return -1
    hypotheses.infer_all(plan, episode, numbers, e, space, table)
    most = scores.potential(plan, params, episode, e, space, table)
    left = regions(table, space[space_at.ROW_AT], m)
    if left <= 1:
        episode[e + w.REASON] = w.NONE_LEFT if space[space_at.ALIVE] == 0 else w.ONE_REGION
        return -1
    criterion = w.parameter(plan, params, w.CRITERION)
    learns = w.parameter(plan, params, w.EXP3) != 0.0 and criterion != w.RANDOM
    is_first = episode[e + w.PLANNED] == 0
    best, best_ratio, unasked = -1, -1.0, 0
    for feature in range(n):
        table[space[space_at.UTILITY_AT] + feature] = -1.0
        if episode[in_episode(plan, e, w.STATUS) + feature] != w.UNKNOWN:
            continue
        unasked += 1
        is_numeric = plan[feature_at(plan, feature) + w.KIND] == 1
        if not is_affordable(plan, params, numbers, e, feature):
            continue
        found, threshold = best_score(plan, params, episode, numbers, e, space, table, feature, most)
        episode[in_episode(plan, e, w.THRESHOLD) + feature] = threshold
        if is_first and learns and is_numeric and most > 0.0:
            gain = min(max(found / most, 0.0), 1.0)
            numbers[in_episode(plan, e, w.GAIN) + feature] = gain
        table[space[space_at.UTILITY_AT] + feature] = found
        ratio = found
        if criterion != w.RANDOM:
            ratio = found / params[feature_at(plan, feature) + w.PRICE]
        if ratio > best_ratio + w.TIE * abs(best_ratio):
            best, best_ratio = feature, ratio
    if best < 0:
        episode[e + w.REASON] = w.EXHAUSTED if unasked == 0 else w.OVER_BUDGET
        return -1
    episode[e + w.PLANNED] = 1
    episode[e + w.ASKED] = best
    numbers[e + w.UTILITY] = table[space[space_at.UTILITY_AT] + best]
    return best


@kernel
def answer(plan, params, episode, numbers, e: int, space, table, shares) -> int:
    """Write the class shares given the observations, and return the class of the prediction.

    The class is argmax P(y)·Π P(x | y) over the observations [D45], the first of equal classes. If the
    parameter selects it and a region survives, it is the class of the region with most of the surviving
    weight.
    """
    m = episode[e + w.CLASSES]
    episode[e + w.STATE] = w.ANSWERED
    if m == 0:
        return -1
    hypotheses.infer_all(plan, episode, numbers, e, space, table)
    scores.potential(plan, params, episode, e, space, table)
    row, first, best, region = space[space_at.ROW_AT], space[space_at.POSTERIOR_AT], 0, -1
    for c in range(m):
        shares[c] = table[first + c]
        if shares[c] > shares[best]:
            best = c
        if table[row + c] > 0.0 and (region < 0 or table[row + c] > table[row + region]):
            region = c
    episode[e + w.REGION] = region
    if region >= 0 and w.parameter(plan, params, w.BY_REGION) != 0.0:
        best = region
    episode[e + w.PREDICTED] = best
    return best


@kernel
def learn(plan, params, ints, floats, t: int, episode, numbers, e: int, label: int, weight: float) -> None:
    """Let the block at word t learn the label of an episode (Algorithms 2, 5 and 6)."""
    posterior.discount(plan, params, ints, floats, t)
    posterior.learn(plan, floats, t, episode, e, label, weight)
    floats[t + plan[plan[at.PLAN_ARRAYS] + w.LABELS] + label] += weight
    thresholds.learn(plan, params, floats, t, episode, numbers, e)
    selection.learn(
        plan, params, ints, floats, t, episode, numbers, e, label, max(ints[at.MODEL_CLASSES], label + 1)
    )


@kernel
def play(plan, params, episode, numbers, e: int, x, space, table, shares) -> int:
    """Run an episode that has begun over a record with all its values: each of them may be bought."""
    if episode[e + w.CLASSES] > 0:
        hypotheses.build(plan, params, episode, numbers, e, space, table)
    while True:
        feature = plan_next(plan, params, episode, numbers, e, space, table)
        if feature < 0:
            break
        if tell(plan, params, episode, numbers, e, feature, x[feature], w.BOUGHT_ONE):
            outcome = episode[in_episode(plan, e, w.OUTCOME) + feature]
            hypotheses.keep_consistent(plan, space, feature, outcome)
    return answer(plan, params, episode, numbers, e, space, table, shares)


@kernel
def record(plan, ints, floats, episode, numbers, e: int) -> None:
    """Enter an answered episode into the account that the blocks of a model share."""
    account = plan[at.PLAN_SHARED]
    ints[account + w.FEATURES_BOUGHT] += episode[e + w.BOUGHT]
    floats[account + w.COST_SPENT] += numbers[e + w.COST]
    ints[account + w.NOT_AVAILABLE] += episode[e + w.UNAVAILABLE_COUNT]
    reason = episode[e + w.REASON]
    if 0 <= reason <= w.FINISHED:
        ints[account + w.STOPPED + reason] += 1
    if episode[e + w.REGION] >= 0 and episode[e + w.REGION] != episode[e + w.PREDICTED]:
        ints[account + w.REGION_DIFFERED] += 1
    for feature in range(plan[at.PLAN_ATTRIBUTES]):
        if episode[in_episode(plan, e, w.STATUS) + feature] == w.BOUGHT_ONE:
            ints[account + w.ACCOUNT + feature] += 1


@kernel
def fits(plan, params, ints, episode, numbers, e: int, x) -> bool:
    """Return whether an answered episode belongs to this record and to the model as it is now."""
    if episode[e + w.STATE] != w.ANSWERED or episode[e + w.VERSION] != ints[at.MODEL_LABELS]:
        return False
    for feature in range(plan[at.PLAN_ATTRIBUTES]):
        status = episode[in_episode(plan, e, w.STATUS) + feature]
        if status == w.BOUGHT_ONE and numbers[in_episode(plan, e, w.VALUE) + feature] != x[feature]:
            return False
        if status != w.UNAVAILABLE:
            continue
        if w.outcome_of(plan, params, episode, numbers, e, feature, x[feature]) >= 0:
            return False
    return True
