"""Dirichlet posterior of the outcomes of features by class: sampled for an episode, updated by its label."""

from __future__ import annotations

from core.kernels.jit import kernel, tail
from core.layout.model import model_of
from core.layout.plan import PlanRecord
from core.learners.ufodt import gathering
from core.learners.ufodt.features import Feature, feature_of, feature_plan
from core.learners.ufodt.words import BOUGHT, KNOWN, Episode, UfodtBlock, is_gathering, parameters_of
from core.numeric import rng

OUTCOME_BITS = 11
"""Bits for the number of an outcome or threshold: a nominal attribute has at most 1,024 values."""


@kernel
def first_draw(plan: PlanRecord, c: int, column: int, number: int) -> int:
    """Return the first random number of a variate: two Gamma blocks each, so that growing room moves none."""
    cell = c * plan.attributes + column
    return 2 * rng.GAMMA_BLOCK * ((cell << OUTCOME_BITS) + number)


@kernel
def sample(plan, block: UfodtBlock, episode: Episode) -> None:
    """Sample theta of an episode: Beta(alpha, beta) of each threshold, a Dirichlet of each nominal attribute.

    The random numbers follow from the stream's key and the number of the episode, whose bits are a separate
    key. An attribute of two values has a Beta variate, too: for its second value.
    """
    key = rng.bits(plan.theta_key, episode.number)
    for c in range(episode.classes):
        for column in range(plan.attributes):
            if feature_of(plan, column).is_numeric:
                sample_numeric(plan, block, episode, key, c, column)
            else:
                sample_nominal(plan, block, episode, key, c, column)


@kernel
def sample_numeric(plan: PlanRecord, block: UfodtBlock, episode: Episode, key, c: int, column: int) -> None:
    """Sample theta of each threshold of a numeric attribute for a class, and write the mean by use."""
    feature = feature_of(plan, column)
    first = c * feature_plan(plan).n_thresholds + feature.first
    above, below, used = block.above(plan), block.below(plan), block.used(plan)
    p_above, p_mean = episode.p_above(plan), episode.p_mean(plan)
    total, weight, n_thresholds = 0.0, 0.0, gathering.arms(plan, block, feature)
    for j in range(feature.room):
        if j >= n_thresholds:
            p_above[first + j] = 0.0
            continue
        draw = first_draw(plan, c, column, j)
        p_above[first + j] = rng.beta(key, draw, above[first + j], below[first + j])
        total += used[first + j] * p_above[first + j]
        weight += used[first + j]
    p_mean[c * plan.numeric + feature.order] = total / weight if n_thresholds > 0 else 0.0


@kernel
def sample_nominal(plan: PlanRecord, block: UfodtBlock, episode: Episode, key, c: int, column: int) -> None:
    """Sample theta of a nominal attribute for a class."""
    first = c * plan.values + feature_of(plan, column).first
    counts, theta = tail(block.nominal(plan), first), tail(episode.p_nominal(plan), first)
    n = episode.outcomes(plan)[column]
    if n == 2:
        share = rng.beta(key, first_draw(plan, c, column, 0), counts[1], counts[0])
        theta[0], theta[1] = 1.0 - share, share
        return
    total = 0.0
    for v in range(n):
        theta[v] = rng.gamma(key, first_draw(plan, c, column, v), counts[v])
        total += theta[v]
    for v in range(n):
        theta[v] = theta[v] / total if total > 0.0 else 1.0 / n


@kernel
def discount(plan: PlanRecord, block: UfodtBlock) -> None:
    """Move all learned parameters towards the uniform prior (Algorithm 6); once for each label."""
    gamma = parameters_of(plan).discount
    if gamma == 0.0:
        return
    values, k = plan.values, feature_plan(plan).n_thresholds
    for c in range(model_of(block).classes):
        above, below = tail(block.above(plan), c * k), tail(block.below(plan), c * k)
        for j in range(k):
            # (1 - gamma)·alpha + gamma·1, in a form that leaves 1 exactly as it is
            above[j] += gamma * (1.0 - above[j])
            below[j] += gamma * (1.0 - below[j])
        counts = tail(block.nominal(plan), c * values)
        for v in range(values):
            counts[v] += gamma * (1.0 - counts[v])


@kernel
def learn(plan: PlanRecord, block: UfodtBlock, episode: Episode, label: int, weight: float) -> None:
    """Add the observations of an episode to the parameters of a class (Algorithm 2)."""
    for column in range(plan.attributes):
        status, outcome = episode.status(plan)[column], episode.outcome(plan)[column]
        if status not in (KNOWN, BOUGHT) or outcome < 0:
            continue
        feature = feature_of(plan, column)
        if feature.is_numeric:
            number = episode.threshold(plan)[column]
            if 0 <= number < feature.room and not is_gathering(plan, episode, column):
                cell = label * feature_plan(plan).n_thresholds + feature.first + number
                side = block.above(plan) if outcome == 1 else block.below(plan)
                side[cell] += weight
                block.used(plan)[cell] += weight
        elif outcome < feature.room:
            block.nominal(plan)[label * plan.values + feature.first + outcome] += weight


@kernel
def most_used(plan: PlanRecord, block: UfodtBlock, classes: int, feature: Feature) -> int:
    """Return the threshold that a numeric attribute was learned with most often, the first of equals.

    0 while it has no threshold.
    """
    k, used = feature_plan(plan).n_thresholds, tail(block.used(plan), feature.first)
    best, most = 0, -1.0
    for j in range(gathering.arms(plan, block, feature)):
        total = 0.0
        for c in range(classes):
            total += used[c * k + j]
        if total > most:
            best, most = j, total
    return best


@kernel
def values_known(plan: PlanRecord, block: UfodtBlock, feature: Feature) -> int:
    """Return how many values of a nominal attribute the model has learned, up to the room for them."""
    room = plan.nominal_column(feature.order).room
    return min(max(model_of(block).values_seen(plan)[feature.order], 0), room)


@kernel
def prior(plan: PlanRecord, block: UfodtBlock, classes: int, c: int) -> float:
    """Return P(Y = c): uniform, or Dirichlet counts of the labels [D41].

    While no attribute has thresholds, only labels are known, and they are counted in any case.
    """
    if parameters_of(plan).counted_prior == 0.0 and not gathering.is_blind(plan, block):
        return 1.0 / classes
    labels, total = block.labels(plan), 0.0
    for j in range(classes):
        total += labels[j]
    return (labels[c] + 1.0) / (total + classes)
