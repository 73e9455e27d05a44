"""Votes of a leaf with naive Bayes, the obvious way, and MOA's."""

import math

from tests.naive.observers import is_missing


def first_maximum(votes):
    """Return the position of the first largest vote: 0 for no votes, and if the first is not a number."""
    best = 0
    for position, vote in enumerate(votes):
        if vote > votes[best]:
            best = position
    return best


def is_usable(options, attribute, value):
    """Return whether a value is there, and if nominal one of those declared; any where values are open.

    While no value of an attribute was ever learned, there are no shares of them.
    """
    values = options.attributes[attribute]
    if is_missing(value) or values is None:
        return not is_missing(value)
    return value >= 0 and values > 0 and (value < values or attribute in options.open)


def log_bayes(leaf, x):
    """Return the naive Bayes log votes of a leaf that has weight."""
    total = sum(leaf.distribution)
    votes = []
    for label, weight in enumerate(leaf.distribution):
        vote = math.log(weight / total) if weight > 0.0 else -math.inf
        for position, value in enumerate(x):
            if not is_usable(leaf.options, position, value):
                continue
            density = leaf.observers[position].density(value, label) if leaf.observers else 1.0
            vote += math.log(max(density, 1e-300))
        votes.append(vote)
    return votes


def normalised(votes):
    """Return votes divided by their sum; without any vote an empty list."""
    total = sum(votes)
    return [vote / total for vote in votes] if total > 0.0 else []


def from_logarithms(votes):
    """Return the shares whose logarithms, up to a summand, are the votes."""
    return normalised([math.exp(vote - max(votes)) for vote in votes])


def moa_bayes(leaf, x):
    """Return MOA's naive Bayes votes: a plain product that may underflow, and may divide by zero."""
    total = sum(leaf.distribution)
    votes = []
    for label, weight in enumerate(leaf.distribution):
        vote = weight / total if total != 0.0 else math.nan
        for position, value in enumerate(x):
            if leaf.observers is None or not is_usable(leaf.options, position, value):
                continue
            vote *= leaf.observers[position].density(value, label)
        votes.append(vote)
    return votes
