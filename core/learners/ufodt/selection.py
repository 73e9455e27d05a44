"""Online feature selection: which features an episode may ask for at all (Wang, Zhao, Hoi, Jin 2014).

A perceptron for each class against the rest has weights for a few features only. With probability 1 - ε an
episode asks among the features with the largest weights, else among the same number of random features (AFA,
appendix E).
"""

from __future__ import annotations

import math

from core.kernels.jit import kernel
from core.learners.ufodt import gathering
from core.learners.ufodt import words as w
from core.learners.ufodt.words import feature_at, in_episode
from core.numeric import rng
from core.tree import layout as at

SUBSET = 2 << 32
"""First random number of an episode's exploration that ranks features for a subset."""
COIN = 3 << 32
"""Random number of an episode's exploration that decides whether it explores."""
FIRST_WEIGHT = 0.01
BEGIN = 1 << 40
"""First random number of the stream that chooses the features that a class begins with."""


@kernel
def size(plan, params) -> int:
    """Return how many features are selected: the parameter, by default half of them, two at least."""
    n = plan[at.PLAN_ATTRIBUTES]
    given = int(w.parameter(plan, params, w.SELECTED))
    return min(given if given > 0 else max(2, (n + 1) // 2), n)


@kernel
def is_among(key, first: int, n: int, few: int, feature: int) -> bool:
    """Return whether a feature is in a uniform subset of size ``few``, by the smallest random numbers."""
    own, before = rng.uniform(key, first + feature), 0
    for other in range(n):
        u = rng.uniform(key, first + other)
        if u < own or (u == own and other < feature):
            before += 1
    return before < few


@kernel
def weight(plan, params, ints, floats, t: int, c: int, feature: int) -> float:
    """Return a class's weight of a feature; a class without labels has small weights of a few features."""
    places, n = plan[at.PLAN_ARRAYS], plan[at.PLAN_ATTRIBUTES]
    if ints[t + plan[places + w.BEGUN] + c] != 0:
        return floats[t + plan[places + w.WEIGHTS] + c * n + feature]
    key = rng.bits(plan[at.PLAN_EXPLORATION_KEY], BEGIN + c)
    return FIRST_WEIGHT if is_among(key, 0, n, size(plan, params), feature) else 0.0


@kernel
def importance(plan, params, ints, floats, t: int, classes: int, feature: int) -> float:
    """Return the largest absolute weight of a feature; with two classes only the second has weights."""
    largest = 0.0
    for c in range(1 if classes == 2 else 0, classes):
        largest = max(largest, abs(weight(plan, params, ints, floats, t, c, feature)))
    return largest


@kernel
def select(plan, params, ints, floats, t: int, episode, numbers, e: int, key) -> None:
    """Leave out all features that are neither selected nor came with the record.

    An attribute that has no thresholds yet stays in: its values are needed to make them.
    """
    if w.parameter(plan, params, w.SELECTS) == 0.0:
        return
    n, few, m = plan[at.PLAN_ATTRIBUTES], size(plan, params), episode[e + w.CLASSES]
    explores = rng.uniform(key, COIN) < w.parameter(plan, params, w.EXPLORATION)
    status, exploited = in_episode(plan, e, w.STATUS), in_episode(plan, e, w.EXPLOITED)
    gain = in_episode(plan, e, w.GAIN)  # not used before the first question
    for feature in range(n):
        numbers[gain + feature] = importance(plan, params, ints, floats, t, m, feature)
    for feature in range(n):
        before = 0
        for other in range(n):
            ahead = numbers[gain + other] - numbers[gain + feature]
            if ahead > 0.0 or (ahead == 0.0 and other < feature):
                before += 1
        episode[exploited + feature] = 1 if before < few and numbers[gain + feature] > 0.0 else 0
        chosen = is_among(key, SUBSET, n, few, feature) if explores else before < few
        is_passed_over = not chosen and not w.is_gathering(plan, episode, e, feature)
        if is_passed_over and episode[status + feature] == w.UNKNOWN:
            episode[status + feature] = w.LEFT_OUT
    for feature in range(n):
        numbers[gain + feature] = 0.0


@kernel
def scaled(plan, params, floats, episode, numbers, e: int, feature: int) -> float:
    """Return a feature as the perceptrons see it: scaled by its range, ±1 for a bit, codes from -1 to 1.

    0 for a number whose range was not known at the beginning of the episode.
    """
    if w.is_gathering(plan, episode, e, feature):
        return 0.0
    if plan[feature_at(plan, feature) + w.KIND] == 1:
        low = gathering.bound(plan, params, floats, feature, False)
        high = gathering.bound(plan, params, floats, feature, True)
        return (numbers[in_episode(plan, e, w.VALUE) + feature] - low) / (high - low)
    last = episode[in_episode(plan, e, w.OUTCOMES) + feature] - 1
    outcome = episode[in_episode(plan, e, w.OUTCOME) + feature]
    return 2.0 * outcome / last - 1.0 if last > 0 else 1.0


@kernel
def estimate(plan, params, floats, episode, numbers, e: int, feature: int) -> float:
    """Return x̂: an observed value divided by the probability that its feature is selected [D48], else 0."""
    if episode[in_episode(plan, e, w.STATUS) + feature] != w.BOUGHT_ONE:
        return 0.0
    epsilon = w.parameter(plan, params, w.EXPLORATION)
    chance = size(plan, params) / plan[at.PLAN_ATTRIBUTES] * epsilon
    if episode[in_episode(plan, e, w.EXPLOITED) + feature] != 0:
        chance += 1.0 - epsilon
    return scaled(plan, params, floats, episode, numbers, e, feature) / chance if chance > 0.0 else 0.0


@kernel
def learn(plan, params, ints, floats, t: int, episode, numbers, e: int, label: int, classes: int) -> None:
    """Let the perceptrons learn a label from the features that an episode has bought."""
    if w.parameter(plan, params, w.SELECTS) == 0.0:
        return
    n, few, places = plan[at.PLAN_ATTRIBUTES], size(plan, params), plan[at.PLAN_ARRAYS]
    for c in range(1 if classes == 2 else 0, classes):
        row = t + plan[places + w.WEIGHTS] + c * n
        if ints[t + plan[places + w.BEGUN] + c] == 0:
            for feature in range(n):
                floats[row + feature] = weight(plan, params, ints, floats, t, c, feature)
            ints[t + plan[places + w.BEGUN] + c] = 1
        y, margin = 1.0 if c == label else -1.0, 0.0
        for feature in range(n):
            if episode[in_episode(plan, e, w.STATUS) + feature] == w.BOUGHT_ONE:
                margin += floats[row + feature] * scaled(plan, params, floats, episode, numbers, e, feature)
        if y * margin > 1.0:
            continue
        norm = 0.0
        for feature in range(n):
            step = w.parameter(plan, params, w.STEP) * y
            floats[row + feature] += step * estimate(plan, params, floats, episode, numbers, e, feature)
            norm += floats[row + feature] ** 2
        norm = math.sqrt(norm)
        radius = w.parameter(plan, params, w.RADIUS)
        if norm > radius:
            for feature in range(n):
                floats[row + feature] *= radius / norm
        keep_largest(floats, row, n, few)


@kernel
def keep_largest(floats, row: int, n: int, few: int) -> None:
    """Set all except the ``few`` largest weights to 0; of equal weights the first stay."""
    kept = 0
    for feature in range(n):
        kept += 1 if floats[row + feature] != 0.0 else 0
    while kept > few:
        smallest = -1
        for feature in range(n):
            if floats[row + feature] != 0.0 and (
                smallest < 0 or abs(floats[row + feature]) <= abs(floats[row + smallest])
            ):
                smallest = feature
        floats[row + smallest] = 0.0
        kept -= 1
