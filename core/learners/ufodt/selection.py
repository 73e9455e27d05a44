"""Online feature selection: which features an episode may ask for at all (Wang, Zhao, Hoi, Jin 2014).

A perceptron for each class against the rest has weights for a few features only. With probability 1 - ε an
episode asks among the features with the largest weights, else among the same number of random features (AFA,
appendix E).
"""

from __future__ import annotations

import math

from core.kernels.jit import kernel, tail
from core.layout.plan import PlanRecord
from core.learners.ufodt.features import feature_of
from core.learners.ufodt.gathering import lower_end, upper_end
from core.learners.ufodt.words import (
    BOUGHT,
    LEFT_OUT,
    UNKNOWN,
    Episode,
    UfodtBlock,
    is_gathering,
    parameters_of,
)
from core.numeric import rng

SUBSET = 2 << 32
"""First random number of an episode's exploration that ranks features for a subset."""
COIN = 3 << 32
"""Random number of an episode's exploration that decides whether it explores."""
FIRST_WEIGHT = 0.01
BEGIN = 1 << 40
"""First random number of the stream that chooses the features that a class begins with."""


@kernel
def size(plan: PlanRecord) -> int:
    """Return how many features are selected: the parameter, by default half of them, two at least."""
    n, selected = plan.attributes, int(parameters_of(plan).selected)
    return min(selected if selected > 0 else max(2, (n + 1) // 2), n)


@kernel
def is_among(key, first: int, n: int, few: int, column: int) -> bool:
    """Return whether a feature is in a uniform subset of size ``few``, by the smallest random numbers."""
    rank, before = rng.uniform(key, first + column), 0
    for other in range(n):
        u = rng.uniform(key, first + other)
        if u < rank or (u == rank and other < column):
            before += 1
    return before < few


@kernel
def weight(plan, block: UfodtBlock, c: int, column: int) -> float:
    """Return a class's weight of a feature; a class without labels has small weights of a few features."""
    n = plan.attributes
    if block.begun(plan)[c] != 0:
        return block.weights(plan)[c * n + column]
    key = rng.bits(plan.exploration_key, BEGIN + c)
    return FIRST_WEIGHT if is_among(key, 0, n, size(plan), column) else 0.0


@kernel
def importance(plan: PlanRecord, block: UfodtBlock, classes: int, column: int) -> float:
    """Return the largest absolute weight of a feature; with two classes only the second has weights."""
    largest = 0.0
    for c in range(1 if classes == 2 else 0, classes):
        largest = max(largest, abs(weight(plan, block, c, column)))
    return largest


@kernel
def select(plan: PlanRecord, block: UfodtBlock, episode: Episode, key) -> None:
    """Leave out all features that are neither selected nor came with the record.

    An attribute that has no thresholds yet stays in: its values are needed to make them.
    """
    p = parameters_of(plan)
    if p.selects == 0.0:
        return
    n, few, m = plan.attributes, size(plan), episode.classes
    explores = rng.uniform(key, COIN) < p.exploration
    status, exploited = episode.status(plan), episode.exploited(plan)
    weights = episode.gain(plan)  # not used before the first question
    for column in range(n):
        weights[column] = importance(plan, block, m, column)
    for column in range(n):
        before = 0
        for other in range(n):
            ahead = weights[other] - weights[column]
            if ahead > 0.0 or (ahead == 0.0 and other < column):
                before += 1
        exploited[column] = 1 if before < few and weights[column] > 0.0 else 0
        chosen = is_among(key, SUBSET, n, few, column) if explores else before < few
        is_passed_over = not chosen and not is_gathering(plan, episode, column)
        if is_passed_over and status[column] == UNKNOWN:
            status[column] = LEFT_OUT
    for column in range(n):
        weights[column] = 0.0


@kernel
def scaled(plan: PlanRecord, block: UfodtBlock, episode: Episode, column: int) -> float:
    """Return a feature as the perceptrons see it: scaled by its range, ±1 for a bit, codes from -1 to 1.

    0 for a number whose range was not known at the beginning of the episode.
    """
    if is_gathering(plan, episode, column):
        return 0.0
    feature = feature_of(plan, column)
    if feature.is_numeric:
        low, high = lower_end(plan, block, feature), upper_end(plan, block, feature)
        return (episode.value(plan)[column] - low) / (high - low)
    last = episode.outcomes(plan)[column] - 1
    return 2.0 * episode.outcome(plan)[column] / last - 1.0 if last > 0 else 1.0


@kernel
def estimate(plan: PlanRecord, block: UfodtBlock, episode: Episode, column: int) -> float:
    """Return x̂: an observed value divided by the probability that its feature is selected [D48], else 0."""
    if episode.status(plan)[column] != BOUGHT:
        return 0.0
    epsilon = parameters_of(plan).exploration
    chance = size(plan) / plan.attributes * epsilon
    if episode.exploited(plan)[column] != 0:
        chance += 1.0 - epsilon
    return scaled(plan, block, episode, column) / chance if chance > 0.0 else 0.0


@kernel
def learn(plan: PlanRecord, block: UfodtBlock, episode: Episode, label: int, classes: int) -> None:
    """Let the perceptrons learn a label from the features that an episode has bought."""
    p = parameters_of(plan)
    if p.selects == 0.0:
        return
    n, begun, status = plan.attributes, block.begun(plan), episode.status(plan)
    for c in range(1 if classes == 2 else 0, classes):
        weights = tail(block.weights(plan), c * n)
        if begun[c] == 0:
            for column in range(n):
                weights[column] = weight(plan, block, c, column)
            begun[c] = 1
        y, margin = 1.0 if c == label else -1.0, 0.0
        for column in range(n):
            if status[column] == BOUGHT:
                margin += weights[column] * scaled(plan, block, episode, column)
        if y * margin > 1.0:
            continue
        norm = 0.0
        for column in range(n):
            weights[column] += p.step * y * estimate(plan, block, episode, column)
            norm += weights[column] ** 2
        norm = math.sqrt(norm)
        if norm > p.radius:
            for column in range(n):
                weights[column] *= p.radius / norm
        keep_largest(weights, n, size(plan))


@kernel
def keep_largest(weights, n: int, few: int) -> None:
    """Set all except the ``few`` largest weights to 0; of equal weights the first stay."""
    kept = 0
    for column in range(n):
        kept += 1 if weights[column] != 0.0 else 0
    while kept > few:
        smallest = -1
        for column in range(n):
            if weights[column] != 0.0 and (smallest < 0 or abs(weights[column]) <= abs(weights[smallest])):
                smallest = column
        weights[smallest] = 0.0
        kept -= 1
