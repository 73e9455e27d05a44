"""The comparison of a challenge, the obvious way: products over the list of compared labels.

A label is a pair (octave, d): d is 1 if the challenger is right, -1 if the champion is, else 0.
"""

import math

from scipy.special import zeta

BETS = [7 / 8, 7 / 16, 7 / 32, 7 / 64, 7 / 128, 7 / 256]


def evidence(labels, mean):
    """Return E(mean) of core/measures/challenge_bounds.py."""
    if not labels:
        return 1.0
    weights = [2**octave for octave, _ in labels]
    average = sum(weights) / len(weights)
    total = 0.0
    for bet in BETS:
        stake = bet / weights[0]
        if stake * max(weights) >= 1:
            continue
        product = 1.0
        for weight, (_, d) in zip(weights, labels, strict=True):
            product *= (1 + stake * weight * d) / (1 + stake * average * mean)
        total += product
    return total / len(BETS)


def bounds(labels, alpha):
    """Return both bounds of the mean per disagreement, searched on a logarithm of the evidence."""
    exchanged = [(octave, -d) for octave, d in labels]
    return _lower(labels, alpha), -_lower(exchanged, alpha)


def _lower(labels, alpha):
    low, high = -1.0, 1.0
    if evidence(labels, low) < 2 / alpha:
        return -1.0
    while high - low > 1e-12:
        middle = (low + high) / 2
        if evidence(labels, middle) >= 2 / alpha:
            low = middle
        else:
            high = middle
    return low


def decision(labels, rules, share):
    """Return the decision by the rules; share: disagreements per record."""
    low, high = bounds(labels, rules.alpha)
    if low * share > rules.margin:
        return "promoted"
    if high * share < (rules.worth if len(labels) >= 20 else 0.0):
        return "dropped"
    return "undecided" if len(labels) >= rules.max_labels else "open"


def empirical_bernstein(d, alpha):
    """Return the half-width after each of the values d, from -1 to 1, each with the weight 1.

    The confidence sequence of Choe and Ramdas (2024, theorem 2) with the stitched boundary of Howard, Ramdas,
    McAuliffe and Sekhon (2021, equation 10) for the scale 2: eta 2, s 1.4, from the variance 1 on.
    """
    eta, s, c = 2.0, 1.4, 2.0
    k1, k2 = (eta**0.25 + eta**-0.25) / math.sqrt(2.0), (math.sqrt(eta) + 1.0) / 2.0
    halves, total, variance = [], 0.0, 0.0
    for n, value in enumerate(d):
        variance += (value - (total / n if n else 0.0)) ** 2
        total += value
        v = max(variance, 1.0)
        loss = s * math.log(math.log(eta * v)) if eta * v > math.e else 0.0
        loss += math.log(zeta(s) / (alpha / 2.0 * math.log(eta) ** s))
        halves.append((math.sqrt(k1**2 * v * loss + (k2 * c * loss) ** 2) + k2 * c * loss) / (n + 1))
    return halves


def octave_of(records, disagreements, charged, rate):
    """Return the octave of the next draw, from the rule as it is written down."""
    expected = 1000 * (disagreements + 10) / (records + 100)
    granted = 1000 * rate + max(rate * records - charged, 0)
    for octave in range(6):
        if expected / 2**octave <= granted:
            return octave
    return 6
