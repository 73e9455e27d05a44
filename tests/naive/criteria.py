"""Split criteria, the obvious way (ALGORITHMS section 2.3)."""

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


def conditional(impurity, branches):
    """Return the impurity of the branches, weighted by their mass."""
    total = sum(sum(branch) for branch in branches)
    return sum(sum(branch) * impurity(branch) for branch in branches) / total if total > 0.0 else 0.0


def has_two_branches(branches, share=0.01):
    """Return whether at least two branches hold more than a share of the weight."""
    masses = [sum(branch) for branch in branches]
    total = sum(masses)
    return total > 0.0 and sum(mass / total > share for mass in masses) >= 2
