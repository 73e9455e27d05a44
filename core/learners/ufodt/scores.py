"""Scores of features: the expected gain of a question, by EC2, information gain or uncertainty sampling.

EC2 is the weight of the edges that an answer cuts, IG the decrease of the entropy of the class, US the
decrease of the entropy of the hypotheses (bits), each in expectation over the answer. Answers have the
probabilities of naive Bayes given the observations [D44].
"""

from __future__ import annotations

from core.kernels.jit import kernel, tail
from core.layout.plan import PlanRecord
from core.learners.ufodt.edges import cut_weight
from core.learners.ufodt.hypotheses import HypothesisSpace
from core.learners.ufodt.words import EC2, IG, US, Episode, parameters_of, share_of
from core.numeric.special import log2

SMALLEST = 1e-300
"""Below this p no logarithm is computed: p·lg p counts as 0."""


@kernel
def p_log2_p(p: float) -> float:
    """Return p·lg p; 0 if p is not a normal number above 0."""
    return p * log2(p) if p > SMALLEST else 0.0


@kernel
def entropy(shares, n: int) -> float:
    """Return the entropy of n shares that sum to 1, in bits."""
    total = 0.0
    for c in range(n):
        total -= p_log2_p(shares[c])
    return total


@kernel
def entropy_of_weights(total: float, logs: float) -> float:
    """Return the entropy of weights normalised: lg Σw - Σ w·lg w / Σw; 0 without weights."""
    return max(log2(total) - logs / total, 0.0) if total > SMALLEST else 0.0


@kernel
def potential(plan: PlanRecord, episode: Episode, space: HypothesisSpace) -> float:
    """Return the maximal gain by the criterion: the weight of all edges, or an entropy.

    Writes the masses of the regions to the first row of classes.
    """
    m, criterion, masses = episode.classes, parameters_of(plan).criterion, space.rows
    survivors, weights, regions = space.survivors, space.weights, space.regions
    for c in range(m):
        masses[c] = 0.0
    total, logs = 0.0, 0.0
    for i in range(space.alive):
        h = survivors[i]
        weight = weights[h]
        masses[regions[h]] += weight
        if criterion == US:
            total += weight
            logs += p_log2_p(weight)
    if criterion == US:
        return entropy_of_weights(total, logs)
    if criterion == IG:
        return entropy(space.posterior, m)
    return cut_weight(masses, m)


@kernel
def gather_masses(plan: PlanRecord, episode: Episode, space: HypothesisSpace, column: int) -> None:
    """Write the survivors for each outcome of a feature: region masses, or for US Σw and Σ w·lg w."""
    m, masses, outcomes = episode.classes, space.masses, episode.outcomes(plan)[column]
    survivors, weights, regions = space.survivors, space.weights, space.regions
    for cell in range(outcomes * m):
        masses[cell] = 0.0
    strings = tail(space.strings, column * space.room)
    is_us = parameters_of(plan).criterion == US
    for i in range(space.alive):
        h = survivors[i]
        weight, first = weights[h], strings[h] * m
        if is_us:
            masses[first] += weight
            masses[first + 1] += p_log2_p(weight)
        else:
            masses[first + regions[h]] += weight


@kernel
def score(
    plan: PlanRecord, episode: Episode, space: HypothesisSpace, column: int, threshold: int, most: float
) -> float:
    """Return the expected gain of asking for a feature; most: result of ``potential``.

    ``gather_masses`` has been called for the feature (not for IG, which depends on the classes alone).
    """
    m, criterion, posterior = episode.classes, parameters_of(plan).criterion, space.posterior
    row, gain = tail(space.rows, m), 0.0
    for v in range(episode.outcomes(plan)[column]):
        chance = 0.0
        for c in range(m):
            row[c] = posterior[c] * share_of(plan, episode, c, column, threshold, v)
            chance += row[c]
        if not chance > 0.0:
            continue
        masses = tail(space.masses, v * m)
        if criterion == EC2:
            remaining = cut_weight(masses, m)
        elif criterion == US:
            remaining = entropy_of_weights(masses[0], masses[1])
        else:
            for c in range(m):
                row[c] /= chance
            remaining = entropy(row, m)
        gain += chance * (most - remaining)
    return gain
