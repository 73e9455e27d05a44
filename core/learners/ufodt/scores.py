"""Scores of features: the expected gain of a question, by EC2, information gain or uncertainty sampling.

EC2 is the weight of the edges that an answer cuts, IG the decrease of the entropy of the class, US the
decrease of the entropy of the hypotheses (bits), each in expectation over the answer. Answers have the
probabilities of naive Bayes given the observations [D44].
"""

from __future__ import annotations

from core.kernels.jit import kernel
from core.learners.ufodt import hypotheses as space_at
from core.learners.ufodt import words as w
from core.learners.ufodt.edges import cut_weight
from core.learners.ufodt.hypotheses import SPACE_WORDS
from core.learners.ufodt.words import in_episode
from core.numeric.special import log2

SMALLEST = 1e-300
"""Below this p no logarithm is computed: p·lg p counts as 0."""


@kernel
def p_log2_p(p: float) -> float:
    """Return p·lg p; 0 if p is not a normal number above 0."""
    return p * log2(p) if p > SMALLEST else 0.0


@kernel
def entropy(shares, first: int, n: int) -> float:
    """Return the entropy of shares that sum to 1, in bits."""
    total = 0.0
    for c in range(n):
        total -= p_log2_p(shares[first + c])
    return total


@kernel
def entropy_of_weights(total: float, logs: float) -> float:
    """Return the entropy of weights normalised: lg Σw - Σ w·lg w / Σw; 0 without weights."""
    return max(log2(total) - logs / total, 0.0) if total > SMALLEST else 0.0


@kernel
def potential(plan, params, episode, e: int, space, table) -> float:
    """Return the maximal gain by the criterion: the weight of all edges, or an entropy.

    Writes the masses of the regions to the first row of classes.
    """
    m, row = episode[e + w.CLASSES], space[space_at.ROW_AT]
    for c in range(m):
        table[row + c] = 0.0
    total, logs = 0.0, 0.0
    is_us = w.parameter(plan, params, w.CRITERION) == w.US
    for i in range(space[space_at.ALIVE]):
        h = space[space[space_at.ALIVE_AT] + i]
        weight = table[space[space_at.WEIGHT_AT] + h]
        table[row + space[space[space_at.REGION_AT] + h]] += weight
        if is_us:
            total += weight
            logs += p_log2_p(weight)
    if is_us:
        return entropy_of_weights(total, logs)
    if w.parameter(plan, params, w.CRITERION) == w.IG:
        return entropy(table, space[space_at.POSTERIOR_AT], m)
    return cut_weight(table, row, m)


@kernel
def gather_masses(plan, params, episode, e: int, space, table, feature: int) -> None:
    """Write the survivors for each outcome of a feature: region masses, or for US Σw and Σ w·lg w."""
    m, mass = episode[e + w.CLASSES], space[space_at.MASS_AT]
    outcomes = episode[in_episode(plan, e, w.OUTCOMES) + feature]
    for cell in range(outcomes * m):
        table[mass + cell] = 0.0
    string = SPACE_WORDS + feature * space[space_at.WANTED]
    is_us = w.parameter(plan, params, w.CRITERION) == w.US
    for i in range(space[space_at.ALIVE]):
        h = space[space[space_at.ALIVE_AT] + i]
        weight, first = table[space[space_at.WEIGHT_AT] + h], mass + space[string + h] * m
        if is_us:
            table[first] += weight
            table[first + 1] += p_log2_p(weight)
        else:
            table[first + space[space[space_at.REGION_AT] + h]] += weight


@kernel
def score(
    plan, params, episode, numbers, e: int, space, table, feature: int, threshold: int, most: float
) -> float:
    """Return the expected gain of asking for a feature; most: result of ``potential``.

    ``gather_masses`` has been called for the feature (not for IG, which depends on the classes alone).
    """
    m, criterion = episode[e + w.CLASSES], w.parameter(plan, params, w.CRITERION)
    posterior, row = space[space_at.POSTERIOR_AT], space[space_at.ROW_AT] + episode[e + w.CLASSES]
    gain = 0.0
    for v in range(episode[in_episode(plan, e, w.OUTCOMES) + feature]):
        chance = 0.0
        for c in range(m):
            table[row + c] = table[posterior + c] * w.share_of(plan, numbers, e, c, feature, threshold, v)
            chance += table[row + c]
        if not chance > 0.0:
            continue
        mass = space[space_at.MASS_AT] + v * m
        if criterion == w.EC2:
            left = cut_weight(table, mass, m)
        elif criterion == w.US:
            left = entropy_of_weights(table[mass], table[mass + 1])
        else:
            for c in range(m):
                table[row + c] /= chance
            left = entropy(table, row, m)
        gain += chance * (most - left)
    return gain
