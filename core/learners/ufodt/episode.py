"""Episode: values, questions and answer of UFODT for one record (Algorithm 3).

    begin      theta of the episode from the present posterior, thresholds, the features it may ask for
    observe    take in a value that was known before, or bought
    plan_next  the best question, or the reason to stop
    answer     class and shares given the observations
    learn      the label: posterior, thresholds, feature selection

A block belongs to a model; an episode may lie in the block or in any other buffer. Only ``begin`` reads the
model and only ``learn`` changes it, so that several episodes may be open at once.
"""

from __future__ import annotations

import numpy as np

from core.kernels.jit import kernel, tail
from core.layout.model import model_of
from core.layout.plan import PlanRecord
from core.learners.ufodt import gathering, hypotheses, posterior, scores, selection, thresholds
from core.learners.ufodt.edges import regions
from core.learners.ufodt.features import feature_of
from core.learners.ufodt.hypotheses import HypothesisSpace
from core.learners.ufodt.shared import EXHAUSTED, FINISHED, NONE_LEFT, ONE_REGION, OVER_BUDGET, account_of
from core.learners.ufodt.words import (
    ANSWERED,
    BOUGHT,
    EPISODE_WORDS,
    IG,
    OPEN,
    RANDOM,
    TIE,
    UNAVAILABLE,
    UNKNOWN,
    Episode,
    UfodtBlock,
    is_gathering,
    outcome_of,
    parameters_of,
    threshold_of,
)
from core.numeric import rng

CHOICE = 4 << 32
"""First random number of an episode's exploration that ranks features for the criterion `random`."""


@kernel
def exploration_key(plan, episode: Episode) -> np.uint64:
    """Return the key of the random numbers of an episode's exploration."""
    return rng.bits(plan.exploration_key, episode.number)


@kernel
def begin(plan: PlanRecord, block: UfodtBlock, episode: Episode, number: int, budget: float) -> None:
    """Open an episode without questions; number: the episode's; budget: maximum of its cost, 0: unlimited."""
    header, model = tail(episode.ints, episode.start), model_of(block)
    for word in range(EPISODE_WORDS):
        header[word] = 0
    m = min(max(model.classes, 0), plan.classes)
    episode.number, episode.classes = number, m
    episode.state, episode.version = OPEN, model.labels
    episode.asked, episode.region, episode.predicted = -1, -1, -1
    episode.reason = FINISHED
    episode.budget = budget
    for c in range(m):
        episode.prior(plan)[c] = posterior.prior(plan, block, m, c)
    for column in range(plan.attributes):
        feature = feature_of(plan, column)
        outcomes = 2
        if not feature.is_numeric:
            outcomes = max(posterior.values_known(plan, block, feature), 1)
            outcomes = min(outcomes, feature.room)
        episode.outcomes(plan)[column] = outcomes
        episode.status(plan)[column] = UNKNOWN
        episode.outcome(plan)[column] = -1
        episode.exploited(plan)[column] = 0
        episode.value(plan)[column] = 0.0
        episode.gain(plan)[column] = 0.0
    gathering.begin(plan, block, episode)
    key = exploration_key(plan, episode)
    thresholds.choose(plan, block, episode, key)
    selection.select(plan, block, episode, key)
    posterior.sample(plan, block, episode)


@kernel
def observe(plan: PlanRecord, episode: Episode, column: int, value: float, status: int) -> bool:
    """Take in the value of a feature (status KNOWN or BOUGHT); return whether the value is available.

    A value without an outcome in the episode is unavailable: it costs nothing and teaches nothing.
    """
    outcome = outcome_of(plan, episode, column, value)
    if outcome < 0:
        episode.status(plan)[column] = UNAVAILABLE
        episode.unavailable += 1
        return False
    episode.status(plan)[column] = status
    episode.outcome(plan)[column] = outcome
    episode.value(plan)[column] = value
    if status == BOUGHT:
        episode.bought += 1
        episode.cost += feature_of(plan, column).price
    return True


@kernel
def is_affordable(plan: PlanRecord, episode: Episode, column: int) -> bool:
    """Return whether the budget of an episode allows another feature."""
    budget, price = episode.budget, feature_of(plan, column).price
    return bool(budget <= 0.0 or episode.cost + price <= budget + 1e-9 * budget)


@kernel
def best_score(
    plan: PlanRecord, episode: Episode, space: HypothesisSpace, column: int, most: float
) -> tuple[float, int]:
    """Return the best score of a feature and its threshold there."""
    p, threshold = parameters_of(plan), episode.threshold(plan)[column]
    if p.criterion == RANDOM:
        return 1.0 - rng.uniform(exploration_key(plan, episode), CHOICE + column), threshold
    if p.criterion != IG:
        scores.gather_masses(plan, episode, space, column)
    feature = feature_of(plan, column)
    if not feature.is_numeric or p.exp3 != 0.0:
        return scores.score(plan, episode, space, column, threshold, most), threshold
    best = -1.0
    for number in range(feature.room):
        cut = threshold_of(plan, episode, column, number)
        if cut != cut:  # NaN: it has no further thresholds
            break
        score = scores.score(plan, episode, space, column, number, most)
        if score > best + TIE * abs(best):
            best, threshold = score, number
    return best, threshold


@kernel
def first_gathered(plan: PlanRecord, episode: Episode, space: HypothesisSpace) -> int:
    """Return the first attribute without thresholds that may be requested; -1: none.

    If there is one, the utility of each such attribute is written as 0, and all further utilities as -1.
    """
    first = -1
    for column in range(plan.attributes):
        space.utilities[column] = -1.0
        is_unknown = episode.status(plan)[column] == UNKNOWN
        if not is_unknown or not is_gathering(plan, episode, column):
            continue
        if is_affordable(plan, episode, column):
            space.utilities[column] = 0.0
            first = column if first < 0 else first
    return first


@kernel
def plan_next(plan: PlanRecord, episode: Episode, space: HypothesisSpace) -> int:
    """Return the feature with the best score per cost; or -1, and write the reason.

    The workspace holds the surviving hypotheses. The utility of each candidate is written to it, and -1 for
    features that are no candidates. An attribute without thresholds comes before the rest: its values are
    needed to make thresholds.
    """
    episode.asked = -1
    episode.utility = 0.0
    first = first_gathered(plan, episode, space)
    if first >= 0:
        episode.asked = first
        return first
    if episode.classes == 0:
        episode.reason = ONE_REGION
        return -1
    hypotheses.infer_all(plan, episode, space)
    most = scores.potential(plan, episode, space)
    if regions(space.rows, episode.classes) <= 1:
        episode.reason = NONE_LEFT if space.alive == 0 else ONE_REGION
        return -1
    return best_feature(plan, episode, space, most)


@kernel
def best_feature(plan: PlanRecord, episode: Episode, space: HypothesisSpace, most: float) -> int:
    """Return the feature with the best score per cost; or -1, and write the reason.

    most: result of ``scores.potential``.
    """
    p, utilities = parameters_of(plan), space.utilities
    learns = p.exp3 != 0.0 and p.criterion != RANDOM
    is_first = episode.planned == 0
    best, best_ratio, unasked = -1, -1.0, 0
    for column in range(plan.attributes):
        utilities[column] = -1.0
        if episode.status(plan)[column] != UNKNOWN:
            continue
        unasked += 1
        if not is_affordable(plan, episode, column):
            continue
        feature = feature_of(plan, column)
        score, threshold = best_score(plan, episode, space, column, most)
        episode.threshold(plan)[column] = threshold
        if is_first and learns and feature.is_numeric and most > 0.0:
            episode.gain(plan)[column] = min(max(score / most, 0.0), 1.0)
        utilities[column] = score
        ratio = score
        if p.criterion != RANDOM:
            ratio = score / feature.price
        if ratio > best_ratio + TIE * abs(best_ratio):
            best, best_ratio = column, ratio
    if best < 0:
        episode.reason = EXHAUSTED if unasked == 0 else OVER_BUDGET
        return -1
    episode.planned = 1
    episode.asked = best
    episode.utility = utilities[best]
    return best


@kernel
def answer(plan: PlanRecord, episode: Episode, space: HypothesisSpace, shares) -> int:
    """Write the class shares given the observations, and return the class of the prediction.

    The class is argmax P(y)·Π P(x | y) over the observations [D45], the first of equal classes. If the
    parameter selects it and a region survives, it is the class of the region with most of the surviving
    weight.
    """
    m = episode.classes
    episode.state = ANSWERED
    if m == 0:
        return -1
    hypotheses.infer_all(plan, episode, space)
    scores.potential(plan, episode, space)
    masses, probabilities = space.rows, space.posterior
    best, region = 0, -1
    for c in range(m):
        shares[c] = probabilities[c]
        if shares[c] > shares[best]:
            best = c
        if masses[c] > 0.0 and (region < 0 or masses[c] > masses[region]):
            region = c
    episode.region = region
    if region >= 0 and parameters_of(plan).by_region != 0.0:
        best = region
    episode.predicted = best
    return best


@kernel
def learn(plan: PlanRecord, block: UfodtBlock, episode: Episode, label: int, weight: float) -> None:
    """Let a block learn the label of an episode (Algorithms 2, 5 and 6)."""
    posterior.discount(plan, block)
    posterior.learn(plan, block, episode, label, weight)
    block.labels(plan)[label] += weight
    thresholds.learn(plan, block, episode)
    selection.learn(plan, block, episode, label, max(model_of(block).classes, label + 1))


@kernel
def play(plan: PlanRecord, episode: Episode, x, space: HypothesisSpace, shares) -> int:
    """Run an episode that has begun over a record with all its values: each of them may be bought."""
    if episode.classes > 0:
        hypotheses.build(plan, episode, space)
    while True:
        column = plan_next(plan, episode, space)
        if column < 0:
            break
        if observe(plan, episode, column, x[column], BOUGHT):
            hypotheses.keep_consistent(space, column, episode.outcome(plan)[column])
    return answer(plan, episode, space, shares)


@kernel
def enter(plan: PlanRecord, block: UfodtBlock, episode: Episode) -> None:
    """Enter an answered episode into the account that the blocks of a model share."""
    account, reason = account_of(plan, block), episode.reason
    account.bought += episode.bought
    account.cost += episode.cost
    account.unavailable += episode.unavailable
    if 0 <= reason <= FINISHED:
        account.stopped[reason] += 1
    if episode.region >= 0 and episode.region != episode.predicted:
        account.region_differed += 1
    for column in range(plan.attributes):
        if episode.status(plan)[column] == BOUGHT:
            account.by_feature[column] += 1


@kernel
def fits(plan: PlanRecord, block: UfodtBlock, episode: Episode, x) -> bool:
    """Return whether an answered episode belongs to this record and to the model as it is now."""
    if episode.state != ANSWERED or episode.version != model_of(block).labels:
        return False
    for column in range(plan.attributes):
        status = episode.status(plan)[column]
        if status == BOUGHT and episode.value(plan)[column] != x[column]:
            return False
        if status == UNAVAILABLE and outcome_of(plan, episode, column, x[column]) >= 0:
            return False
    return True
