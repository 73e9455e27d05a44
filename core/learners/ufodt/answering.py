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

from core.kernels.jit import kernel
from core.learners.ufodt import gathering, posterior
from core.learners.ufodt import words as w
from core.learners.ufodt.words import feature_at, in_episode, k_of
from core.numeric import rng
from core.numeric.digamma import digamma
from core.numeric.special import exp
from core.tree import layout as at

FROZEN: Final = 1 << 62
"""Number of the theta that a model answers with outside episodes: larger than the number of any episode."""


@kernel
def theta_key(plan, ints) -> np.uint64:
    """Return the key of the theta that a model with its present number of labels answers with."""
    return rng.bits(plan[at.PLAN_THETA_KEY], FROZEN + ints[at.MODEL_LABELS])


@kernel
def by_counts(plan, params, key, draw: int, own: float, other: float) -> float:
    """Return theta of an outcome with Dirichlet parameter ``own``; ``other``: sum of all other parameters.

    draw: the first random number of the variate, if it is sampled.
    """
    kind = w.parameter(plan, params, w.ANSWER)
    if kind == w.GEOMETRIC:
        return exp(digamma(own) - digamma(own + other))
    if kind == w.MEAN:
        return own / (own + other)
    return rng.beta(key, draw, own, other)


@kernel
def share(
    plan, params, ints, floats, t: int, key, c: int, feature: int, threshold: int, outcome: int
) -> float:
    """Return theta of an outcome given a class; for two outcomes one sample gives both thetas."""
    places, described = plan[at.PLAN_ARRAYS], feature_at(plan, feature)
    first = plan[described + w.FIRST]
    if plan[described + w.KIND] == 1:
        cell = c * k_of(plan) + first + threshold
        above, below = floats[t + plan[places + w.ABOVE] + cell], floats[t + plan[places + w.BELOW] + cell]
        draw = posterior.block_of(plan, c, feature, threshold)
        return of_two(plan, params, key, draw, above, below, outcome)
    counts, total = t + plan[places + w.NOMINAL] + c * plan[at.PLAN_VALUES] + first, 0.0
    known = posterior.values_known(plan, ints, plan[described + w.ORDER])
    if known == 2:
        draw = posterior.block_of(plan, c, feature, 0)
        return of_two(plan, params, key, draw, floats[counts + 1], floats[counts], outcome)
    if w.parameter(plan, params, w.ANSWER) == w.SAMPLED:
        own = 0.0
        for v in range(known):
            drawn = rng.gamma(key, posterior.block_of(plan, c, feature, v), floats[counts + v])
            total += drawn
            if v == outcome:
                own = drawn
        return own / total if total > 0.0 else 1.0 / known
    for v in range(known):
        total += floats[counts + v]
    if known == 1:
        return 1.0
    return by_counts(plan, params, key, 0, floats[counts + outcome], total - floats[counts + outcome])


@kernel
def of_two(plan, params, key, draw: int, one: float, zero: float, outcome: int) -> float:
    """Return theta of outcome 1 or 0, the only outcomes, with Dirichlet parameters ``one`` and ``zero``."""
    if w.parameter(plan, params, w.ANSWER) == w.SAMPLED:
        drawn = rng.beta(key, draw, one, zero)
        return drawn if outcome == 1 else 1.0 - drawn
    own, other = (one, zero) if outcome == 1 else (zero, one)
    return by_counts(plan, params, key, draw, own, other)


@kernel
def infer(
    plan, params, ints, floats, t: int, key, m: int, feature: int, threshold: int, outcome: int, shares
) -> None:
    """Multiply the shares of m classes by theta of an outcome, and normalise."""
    total = 0.0
    for c in range(m):
        shares[c] *= share(plan, params, ints, floats, t, key, c, feature, threshold, outcome)
        total += shares[c]
    for c in range(m):
        shares[c] = shares[c] / total if total > 0.0 else 1.0 / m


@kernel
def largest(shares, m: int) -> int:
    """Return the class with the largest share, the first of equal classes."""
    best = 0
    for c in range(1, m):
        if shares[c] > shares[best] * (1.0 + w.TIE):
            best = c
    return best


@kernel
def answer_frozen(plan, params, ints, floats, t: int, x, shares) -> int:
    """Answer with all known values of a record; nothing is written or bought.

    Numeric attributes are compared with the threshold used most often (ALGORITHMS section 19.5).
    """
    m = min(max(ints[at.MODEL_CLASSES], 0), plan[at.PLAN_CLASSES])
    if m == 0:
        return -1
    for c in range(m):
        shares[c] = posterior.prior(plan, params, floats, t, m, c)
    key = theta_key(plan, ints)
    for feature in range(plan[at.PLAN_ATTRIBUTES]):
        value, described = x[feature], feature_at(plan, feature)
        if value - value != 0.0:
            continue
        threshold, outcome = 0, -1
        if plan[described + w.KIND] == 0:
            if 0.0 <= value < posterior.values_known(plan, ints, plan[described + w.ORDER]):
                outcome = int(value)
        elif gathering.arms(plan, floats, feature) > 0:
            threshold = posterior.most_used(plan, floats, t, m, feature)
            outcome = 1 if value > gathering.threshold(plan, params, floats, feature, threshold) else 0
        if outcome >= 0:
            infer(plan, params, ints, floats, t, key, m, feature, threshold, outcome, shares)
    return largest(shares, m)


@kernel
def answer_observed(plan, params, ints, floats, t: int, episode, numbers, e: int, shares) -> int:
    """Answer with the observations of an episode; numbers are compared with the thresholds of the episode."""
    m = episode[e + w.CLASSES]
    if m == 0:
        return -1
    for c in range(m):
        shares[c] = numbers[in_episode(plan, e, w.PRIOR) + c]
    key = theta_key(plan, ints)
    for feature in range(plan[at.PLAN_ATTRIBUTES]):
        outcome = episode[in_episode(plan, e, w.OUTCOME) + feature]
        if outcome < 0 or w.is_gathering(plan, episode, e, feature):
            continue
        threshold = episode[in_episode(plan, e, w.THRESHOLD) + feature]
        infer(plan, params, ints, floats, t, key, m, feature, threshold, outcome, shares)
    best = largest(shares, m)
    episode[e + w.PREDICTED] = best
    return best
