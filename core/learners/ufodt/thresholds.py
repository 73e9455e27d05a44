"""Thresholds of numbers: sampled by Exp3 for an episode (Algorithm 5), or searched for each question."""

from __future__ import annotations

from core.kernels.jit import kernel, tail
from core.layout.plan import PlanRecord
from core.learners.ufodt import gathering
from core.learners.ufodt.features import feature_of
from core.learners.ufodt.posterior import most_used
from core.learners.ufodt.words import RANDOM, Episode, UfodtBlock, parameters_of
from core.numeric import rng
from core.numeric.special import exp

DRAWS = 1 << 32
"""First random number of an episode's exploration for a threshold."""


@kernel
def chance_of(gains, n: int, rate: float, number: int) -> float:
    """Return Π(k) ∝ exp(η·S_k) of threshold ``number`` among n, with their gains."""
    largest = gains[0]
    for j in range(1, n):
        largest = max(largest, gains[j])
    total = 0.0
    for j in range(n):
        total += exp(max(rate * (gains[j] - largest), -700.0))
    return exp(max(rate * (gains[number] - largest), -700.0)) / total


@kernel
def draw(plan: PlanRecord, block: UfodtBlock, key, column: int) -> tuple[int, float]:
    """Return the threshold that a feature is compared with in an episode, and its probability."""
    p, feature = parameters_of(plan), feature_of(plan, column)
    n, gains = gathering.arms(plan, block, feature), tail(block.gains(plan), feature.first)
    # The criterion `random` computes no gain to learn from.
    rate = 0.0 if p.criterion == RANDOM else p.exp3_rate
    u, number = rng.uniform(key, DRAWS + column), 0
    chance = chance_of(gains, n, rate, 0)
    while number < n - 1 and u >= chance:
        u -= chance
        number += 1
        chance = chance_of(gains, n, rate, number)
    return number, chance


@kernel
def choose(plan: PlanRecord, block: UfodtBlock, episode: Episode, key) -> None:
    """Write the thresholds that an episode begins with: sampled, or the most used; 0: there is none."""
    p = parameters_of(plan)
    draws = p.exp3 != 0.0 or p.criterion == RANDOM
    for column in range(plan.attributes):
        feature = feature_of(plan, column)
        number, chance = 0, 1.0
        if feature.is_numeric and gathering.arms(plan, block, feature) > 0:
            if draws:
                number, chance = draw(plan, block, key, column)
            else:
                number = most_used(plan, block, episode.classes, feature)
        episode.threshold(plan)[column] = number
        episode.chance(plan)[column] = chance


@kernel
def learn(plan: PlanRecord, block: UfodtBlock, episode: Episode) -> None:
    """Add the gains of an episode's thresholds, weighted by the inverse of their probabilities."""
    p = parameters_of(plan)
    if p.exp3 == 0.0 or p.criterion == RANDOM:
        return
    for column in range(plan.attributes):
        feature, number = feature_of(plan, column), episode.threshold(plan)[column]
        gain, chance = episode.gain(plan)[column], episode.chance(plan)[column]
        if feature.is_numeric and gain > 0.0 and chance > 0.0 and 0 <= number < feature.room:
            block.gains(plan)[feature.first + number] += gain / chance
