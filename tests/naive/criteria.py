"""Split criteria, the obvious way."""

import math


def entropy(distribution):
    """Return the entropy in bits of a list of weights."""
    total, sum_of_logs = 0.0, 0.0
    for weight in distribution:
        if weight > 0.0:
            sum_of_logs -= weight * log2(weight)
            total += weight
    return (sum_of_logs + total * log2(total)) / total if total > 0.0 else 0.0


def log2(x):
    """Return the binary logarithm as MOA rounds it: mirror-image tests tie but for the last bit."""
    return math.log(x) / math.log(2.0)


def gini(distribution):
    """Return the Gini impurity of a list of weights."""
    total = sum(distribution)
    return 1.0 - sum((weight / total) ** 2 for weight in distribution) if total > 0.0 else 0.0


def scaled_entropy(distribution):
    """Return half the entropy in nats."""
    return entropy(distribution) * math.log(2.0) / 2.0


def km(distribution):
    """Return Kearns and Mansour's index of at most two weights."""
    total = sum(distribution)
    if total <= 0.0:
        return 0.0
    p = distribution[0] / total
    return math.sqrt(p * max(1.0 - p, 0.0))


def error(distribution):
    """Return the share that the majority class leaves."""
    total = sum(distribution)
    return 1.0 - max(distribution) / total if total > 0.0 else 0.0


def smallest_left(branches):
    """Return CDT's merit: what the smallest entries of the branches leave of the weight.

    An entry is a class up to the last one met: a branch that has met the first class only is all wrong.
    """
    if any(sum(branch) <= 0.0 for branch in branches):
        return math.nan
    return 1.0 - sum(min(branch) for branch in branches) / sum(sum(branch) for branch in branches)


IMPURITIES = {
    "info_gain": entropy,
    "entropy": scaled_entropy,
    "gini": gini,
    "km": km,
    "error": error,
    "sorted_error": error,
}

REACHES = {
    "info_gain": lambda classes: math.log2(max(2, classes)),
    "entropy": lambda classes: math.log(max(2, classes)) / 2.0,
    "gini": lambda classes: 1.0,
    "km": lambda classes: 0.5,
    "error": lambda classes: 1.0,
    "sorted_error": lambda classes: 1.0,
}


def conditional(impurity, branches):
    """Return the impurity of the branches, weighted by their mass."""
    total = sum(sum(branch) for branch in branches)
    if impurity is error and total > 0.0:  # as section 2.3 writes it: equal merits are equal to the last bit
        return sum(sum(branch) - max(branch, default=0.0) for branch in branches) / total
    return sum(sum(branch) * impurity(branch) for branch in branches) / total if total > 0.0 else 0.0


def has_two_branches(branches, share=0.01):
    """Return whether at least two branches hold more than a share of the weight."""
    masses = [sum(branch) for branch in branches]
    total = sum(masses)
    return total > 0.0 and sum(mass / total > share for mass in masses) >= 2


def moa_gini(branches):
    """Return MOA's Gini merit: not a number if a branch holds classes, but none of them has weight."""
    total = sum(sum(branch) for branch in branches)
    impurity = 0.0
    for branch in branches:
        weight = sum(branch)
        if branch and weight == 0.0:
            return math.nan
        if branch:
            impurity += weight / total * (1.0 - sum((c / weight) ** 2 for c in branch))
    return 1.0 - impurity
