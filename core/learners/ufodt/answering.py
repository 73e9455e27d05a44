"""Answering by the posterior: naive Bayes with all known values of a record, and with the present theta.

A model that is asked for an answer alone buys nothing: it uses every value that the record has. The class of
an episode's answer may also be computed here (parameter ``prediction``); the episode's theta is one random
sample, made for the choice of features.

The parameter ``answer`` selects the theta that stands for the posterior. The *geometric* mean exp(E[ln θ])
lies further below the mean the less often a feature was observed with a class: with a Beta(1, 1) each outcome
counts exp(-1) = 0.37, not ½, so that a class that was seldom observed does not profit from missing counts.
The logarithm of a *sampled* theta has the same expectation, E[ln θ], with noise added.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from core.kernels.jit import kernel, tail
from core.layout.learning import NO_CLASS
from core.layout.model import model_of
from core.layout.plan import PlanRecord
from core.learners.ufodt import gathering, posterior
from core.learners.ufodt.features import feature_of, feature_plan
from core.learners.ufodt.words import (
    GEOMETRIC,
    MEAN,
    SAMPLED,
    TIE,
    Episode,
    UfodtBlock,
    is_gathering,
    parameters_of,
)
from core.numeric import rng
from core.numeric.digamma import digamma
from core.numeric.special import exp

FROZEN: Final = 1 << 62
"""Number of the theta that a model answers with outside episodes: larger than the number of any episode."""


@kernel
def theta_key(plan, block: UfodtBlock) -> np.uint64:
    """Return the key of the theta that a model with its present number of labels answers with."""
    return rng.bits(plan.theta_key, FROZEN + model_of(block).labels)


@kernel
def by_counts(plan: PlanRecord, key, draw: int, alpha: float, rest: float) -> float:
    """Return theta of an outcome with Dirichlet parameter ``alpha``; ``rest``: sum of all other parameters.

    draw: the first random number of the variate, if it is sampled.
    """
    kind = parameters_of(plan).answer
    if kind == GEOMETRIC:
        return exp(digamma(alpha) - digamma(alpha + rest))
    if kind == MEAN:
        return alpha / (alpha + rest)
    return rng.beta(key, draw, alpha, rest)


@kernel
def share(
    plan: PlanRecord, block: UfodtBlock, key, c: int, column: int, threshold: int, outcome: int
) -> float:
    """Return theta of an outcome given a class; for two outcomes one sample gives both thetas."""
    feature = feature_of(plan, column)
    if feature.is_numeric:
        cell = c * feature_plan(plan).n_thresholds + feature.first + threshold
        draw = posterior.first_draw(plan, c, column, threshold)
        return of_two(plan, key, draw, block.above(plan)[cell], block.below(plan)[cell], outcome)
    counts, total = tail(block.nominal(plan), c * plan.values + feature.first), 0.0
    outcomes = posterior.values_known(plan, block, feature)
    if outcomes == 2:
        draw = posterior.first_draw(plan, c, column, 0)
        return of_two(plan, key, draw, counts[1], counts[0], outcome)
    if parameters_of(plan).answer == SAMPLED:
        sample = 0.0
        for v in range(outcomes):
            variate = rng.gamma(key, posterior.first_draw(plan, c, column, v), counts[v])
            total += variate
            if v == outcome:
                sample = variate
        return sample / total if total > 0.0 else 1.0 / outcomes
    for v in range(outcomes):
        total += counts[v]
    if outcomes == 1:
        return 1.0
    return by_counts(plan, key, 0, counts[outcome], total - counts[outcome])


@kernel
def of_two(plan: PlanRecord, key, draw: int, one: float, zero: float, outcome: int) -> float:
    """Return theta of outcome 1 or 0, the only outcomes, with Dirichlet parameters ``one`` and ``zero``."""
    if parameters_of(plan).answer == SAMPLED:
        sample = rng.beta(key, draw, one, zero)
        return sample if outcome == 1 else 1.0 - sample
    alpha, rest = (one, zero) if outcome == 1 else (zero, one)
    return by_counts(plan, key, draw, alpha, rest)


@kernel
def infer(
    plan: PlanRecord, block: UfodtBlock, key, m: int, column: int, threshold: int, outcome: int, shares
) -> None:
    """Multiply the shares of m classes by theta of an outcome, and normalise."""
    total = 0.0
    for c in range(m):
        shares[c] *= share(plan, block, key, c, column, threshold, outcome)
        total += shares[c]
    for c in range(m):
        shares[c] = shares[c] / total if total > 0.0 else 1.0 / m


@kernel
def largest(shares, m: int) -> int:
    """Return the class with the largest share, the first of equal classes."""
    best = 0
    for c in range(1, m):
        if shares[c] > shares[best] * (1.0 + TIE):
            best = c
    return best


@kernel
def answer_frozen(plan: PlanRecord, block: UfodtBlock, x, shares) -> int:
    """Answer with all known values of a record; nothing is written or bought.

    Numeric attributes are compared with the threshold used most often.
    """
    m = min(max(model_of(block).classes, 0), plan.classes)
    if m == 0:
        return NO_CLASS
    for c in range(m):
        shares[c] = posterior.prior(plan, block, m, c)
    key = theta_key(plan, block)
    for column in range(plan.attributes):
        value, feature = x[column], feature_of(plan, column)
        if value - value != 0.0:
            continue
        threshold, outcome = 0, -1
        if not feature.is_numeric:
            if 0.0 <= value < posterior.values_known(plan, block, feature):
                outcome = int(value)
        elif gathering.arms(plan, block, feature) > 0:
            threshold = posterior.most_used(plan, block, m, feature)
            outcome = 1 if value > gathering.threshold(plan, block, feature, threshold) else 0
        if outcome >= 0:
            infer(plan, block, key, m, column, threshold, outcome, shares)
    return largest(shares, m)


@kernel
def answer_observed(plan: PlanRecord, block: UfodtBlock, episode: Episode, shares) -> int:
    """Answer with the observations of an episode; numbers are compared with the thresholds of the episode."""
    m = episode.classes
    if m == 0:
        return NO_CLASS
    for c in range(m):
        shares[c] = episode.prior(plan)[c]
    key = theta_key(plan, block)
    for column in range(plan.attributes):
        outcome = episode.outcome(plan)[column]
        if outcome < 0 or is_gathering(plan, episode, column):
            continue
        infer(plan, block, key, m, column, episode.threshold(plan)[column], outcome, shares)
    best = largest(shares, m)
    episode.predicted = best
    return best
