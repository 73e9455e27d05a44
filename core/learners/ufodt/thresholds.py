"""Thresholds of numbers: sampled by Exp3 for an episode (Algorithm 5), or searched for each question."""

from __future__ import annotations

from core.kernels.jit import kernel
from core.learners.ufodt import gathering
from core.learners.ufodt import words as w
from core.learners.ufodt.posterior import most_used
from core.learners.ufodt.words import feature_at, in_episode
from core.numeric import rng
from core.numeric.special import exp
from core.tree import layout as at

DRAWS = 1 << 32
"""First random number of an episode's exploration for a threshold."""


@kernel
def chance_of(floats, gains: int, n: int, rate: float, number: int) -> float:
    """Return Π(k) ∝ exp(η·S_k) of threshold ``number`` among n, whose gains begin at word ``gains``."""
    largest = floats[gains]
    for j in range(1, n):
        largest = max(largest, floats[gains + j])
    total = 0.0
    for j in range(n):
        total += exp(max(rate * (floats[gains + j] - largest), -700.0))
    return exp(max(rate * (floats[gains + number] - largest), -700.0)) / total


@kernel
def draw(plan, params, floats, t: int, key, feature: int) -> tuple[int, float]:
    """Return the threshold that a feature is compared with in an episode, and its probability."""
    n = gathering.arms(plan, floats, feature)
    gains = t + plan[plan[at.PLAN_ARRAYS] + w.GAINS] + plan[feature_at(plan, feature) + w.FIRST]
    # The criterion `random` computes no gain to learn from.
    rate = w.parameter(plan, params, w.EXP3_RATE)
    if w.parameter(plan, params, w.CRITERION) == w.RANDOM:
        rate = 0.0
    u, number = rng.uniform(key, DRAWS + feature), 0
    chance = chance_of(floats, gains, n, rate, 0)
    while number < n - 1 and u >= chance:
        u -= chance
        number += 1
        chance = chance_of(floats, gains, n, rate, number)
    return number, chance


@kernel
def choose(plan, params, ints, floats, t: int, episode, numbers, e: int, key) -> None:
    """Write the thresholds that an episode begins with: sampled, or the most used; 0: there is none."""
    draws = w.parameter(plan, params, w.EXP3) != 0.0 or w.parameter(plan, params, w.CRITERION) == w.RANDOM
    for feature in range(plan[at.PLAN_ATTRIBUTES]):
        number, chance = 0, 1.0
        if plan[feature_at(plan, feature) + w.KIND] == 1 and gathering.arms(plan, floats, feature) > 0:
            if draws:
                number, chance = draw(plan, params, floats, t, key, feature)
            else:
                number = most_used(plan, floats, t, episode[e + w.CLASSES], feature)
        episode[in_episode(plan, e, w.THRESHOLD) + feature] = number
        numbers[in_episode(plan, e, w.CHANCE) + feature] = chance


@kernel
def learn(plan, params, floats, t: int, episode, numbers, e: int) -> None:
    """Add the gains of an episode's thresholds, weighted by the inverse of their probabilities."""
    if w.parameter(plan, params, w.EXP3) == 0.0 or w.parameter(plan, params, w.CRITERION) == w.RANDOM:
        return
    for feature in range(plan[at.PLAN_ATTRIBUTES]):
        described = feature_at(plan, feature)
        gain = numbers[in_episode(plan, e, w.GAIN) + feature]
        chance = numbers[in_episode(plan, e, w.CHANCE) + feature]
        number = episode[in_episode(plan, e, w.THRESHOLD) + feature]
        is_numeric = plan[described + w.KIND] == 1
        if is_numeric and gain > 0.0 and chance > 0.0 and 0 <= number < plan[described + w.ROOM]:
            first = t + plan[plan[at.PLAN_ARRAYS] + w.GAINS] + plan[described + w.FIRST]
            floats[first + number] += gain / chance
