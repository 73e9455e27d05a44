"""Dirichlet posterior of the outcomes of features by class: sampled for an episode, updated by its label."""

from __future__ import annotations

from core.kernels.jit import kernel
from core.learners.ufodt import gathering
from core.learners.ufodt import words as w
from core.learners.ufodt.words import feature_at, in_episode, k_of
from core.numeric import rng
from core.tree import layout as at

OUTCOME_BITS = 11
"""Bits for the number of an outcome or threshold: a nominal attribute has at most 1,024 values."""


@kernel
def block_of(plan, c: int, feature: int, number: int) -> int:
    """Return the first random number of a variate: two Gamma blocks each, so that growing room moves none."""
    cell = c * plan[at.PLAN_ATTRIBUTES] + feature
    return 2 * rng.GAMMA_BLOCK * ((cell << OUTCOME_BITS) + number)


@kernel
def sample(plan, ints, floats, t: int, episode, numbers, e: int) -> None:
    """Sample theta of an episode: Beta(alpha, beta) of each threshold, a Dirichlet of each nominal attribute.

    The random numbers follow from the stream's key and the number of the episode, whose bits are a separate
    key. An attribute of two values has a Beta variate, too: for its second value.
    """
    places = plan[at.PLAN_ARRAYS]
    key = rng.bits(plan[at.PLAN_THETA_KEY], episode[e + w.NUMBER])
    values, k = plan[at.PLAN_VALUES], k_of(plan)
    for c in range(episode[e + w.CLASSES]):
        for feature in range(plan[at.PLAN_ATTRIBUTES]):
            described = feature_at(plan, feature)
            first = plan[described + w.FIRST]
            if plan[described + w.KIND] == 1:
                above = t + plan[places + w.ABOVE] + c * k + first
                below = t + plan[places + w.BELOW] + c * k + first
                used = t + plan[places + w.USED] + c * k + first
                out = in_episode(plan, e, w.P_ABOVE) + c * k + first
                total, weight, made = 0.0, 0.0, gathering.arms(plan, floats, feature)
                for j in range(plan[described + w.ROOM]):
                    if j >= made:
                        numbers[out + j] = 0.0
                        continue
                    draw = block_of(plan, c, feature, j)
                    numbers[out + j] = rng.beta(key, draw, floats[above + j], floats[below + j])
                    total += floats[used + j] * numbers[out + j]
                    weight += floats[used + j]
                mean = in_episode(plan, e, w.P_MEAN) + c * plan[at.PLAN_NUMERIC] + plan[described + w.ORDER]
                numbers[mean] = total / weight if made > 0 else 0.0
                continue
            counts = t + plan[places + w.NOMINAL] + c * values + first
            out = in_episode(plan, e, w.P_NOMINAL) + c * values + first
            n = episode[in_episode(plan, e, w.OUTCOMES) + feature]
            if n == 2:
                draw = block_of(plan, c, feature, 0)
                one = rng.beta(key, draw, floats[counts + 1], floats[counts])
                numbers[out], numbers[out + 1] = 1.0 - one, one
                continue
            total = 0.0
            for v in range(n):
                numbers[out + v] = rng.gamma(key, block_of(plan, c, feature, v), floats[counts + v])
                total += numbers[out + v]
            for v in range(n):
                numbers[out + v] = numbers[out + v] / total if total > 0.0 else 1.0 / n


@kernel
def discount(plan, params, ints, floats, t: int) -> None:
    """Move all learned parameters towards the uniform prior (Algorithm 6); once for each label."""
    gamma = w.parameter(plan, params, w.DISCOUNT)
    if gamma == 0.0:
        return
    places = plan[at.PLAN_ARRAYS]
    values, k = plan[at.PLAN_VALUES], k_of(plan)
    for c in range(ints[at.MODEL_CLASSES]):
        above = t + plan[places + w.ABOVE] + c * k
        below = t + plan[places + w.BELOW] + c * k
        for j in range(k):
            # (1 - gamma)·alpha + gamma·1, in a form that leaves 1 exactly as it is
            floats[above + j] += gamma * (1.0 - floats[above + j])
            floats[below + j] += gamma * (1.0 - floats[below + j])
        counts = t + plan[places + w.NOMINAL] + c * values
        for v in range(values):
            floats[counts + v] += gamma * (1.0 - floats[counts + v])


@kernel
def learn(plan, floats, t: int, episode, e: int, label: int, weight: float) -> None:
    """Add the observations of an episode to the parameters of a class (Algorithm 2)."""
    places = plan[at.PLAN_ARRAYS]
    values, k = plan[at.PLAN_VALUES], k_of(plan)
    for feature in range(plan[at.PLAN_ATTRIBUTES]):
        status = episode[in_episode(plan, e, w.STATUS) + feature]
        outcome = episode[in_episode(plan, e, w.OUTCOME) + feature]
        if (status != w.KNOWN and status != w.BOUGHT_ONE) or outcome < 0:
            continue
        described = feature_at(plan, feature)
        first, room = plan[described + w.FIRST], plan[described + w.ROOM]
        if plan[described + w.KIND] == 1:
            number = episode[in_episode(plan, e, w.THRESHOLD) + feature]
            if 0 <= number < room and not w.is_gathering(plan, episode, e, feature):
                side = w.ABOVE if outcome == 1 else w.BELOW
                floats[t + plan[places + side] + label * k + first + number] += weight
                floats[t + plan[places + w.USED] + label * k + first + number] += weight
        elif outcome < room:
            floats[t + plan[places + w.NOMINAL] + label * values + first + outcome] += weight


@kernel
def most_used(plan, floats, t: int, classes: int, feature: int) -> int:
    """Return the threshold that a numeric attribute was learned with most often, the first of equals.

    0 while it has no threshold.
    """
    places, k = plan[at.PLAN_ARRAYS], k_of(plan)
    described = feature_at(plan, feature)
    first = t + plan[places + w.USED] + plan[described + w.FIRST]
    best, most = 0, -1.0
    for j in range(gathering.arms(plan, floats, feature)):
        total = 0.0
        for c in range(classes):
            total += floats[first + c * k + j]
        if total > most:
            best, most = j, total
    return best


@kernel
def values_known(plan, ints, order: int) -> int:
    """Return how many values of a nominal attribute the model has learned, up to the room for them."""
    room = plan[plan[at.PLAN_NOMINAL_TABLE] + order * at.NOMINAL_FIELDS + at.NOMINAL_ROOM]
    return min(max(ints[plan[at.PLAN_VALUES_SEEN] + order], 0), room)


@kernel
def prior(plan, params, floats, t: int, classes: int, c: int) -> float:
    """Return P(Y = c): uniform, or Dirichlet counts of the labels [D41].

    While no attribute has thresholds, only labels are known, and they are counted in any case.
    """
    if w.parameter(plan, params, w.COUNTED_PRIOR) == 0.0 and not gathering.is_blind(plan, floats):
        return 1.0 / classes
    labels, total = t + plan[plan[at.PLAN_ARRAYS] + w.LABELS], 0.0
    for j in range(classes):
        total += floats[labels + j]
    return (floats[labels + c] + 1.0) / (total + classes)
