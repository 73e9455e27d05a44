"""Coefficients: agreement of annotators beyond chance: Cohen's kappa, Fleiss' kappa, Krippendorff's alpha.

All of them are (agreement - chance) / (1 - chance): 1 if annotators always agree, 0 if they agree as often as
answers at random with the same shares of classes do, and negative below that. They differ in the agreement
by chance:

- Cohen (1960), two annotators: each has their own shares of the classes.
- Fleiss (1971), any annotators: one share of each class for all of them. Fleiss has equally many answers of
  each record; for unequal numbers a share is the mean over the records of its share in a record's answers
  (Gwet 2014, Handbook of Inter-Rater Reliability, 4th edition, chapter 2).
- Krippendorff (2004), nominal classes: as Fleiss, but all answers have the same weight, and the agreement by
  chance is that of two different answers. Missing answers need no treatment.

"I do not know" is a missing answer. A record counts with at least two answers.

The records are the sample, and the 95 % interval is the normal one with these variances: Cohen's of Fleiss,
Cohen and Everitt (1969); Fleiss' linearised over records (Gwet 2014, chapter 5); Krippendorff's by the
delete-one jackknife over records (Efron and Tibshirani 1993, chapter 11). All are functions of counts alone:
nothing is drawn at random. If all answers agree, these variances are 0, which is no evidence; then the lower
end is the one that Wilson's interval of the agreement gives with the same agreement by chance.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from streamapp.people.wilson_interval import NORMAL_95, wilson_interval

Pairs = Mapping[tuple[str, str], int]
"""(class by the first annotator, class by the second) → records."""
Pattern = tuple[tuple[str, int], ...]
"""The answers of a record: (class, answers), in the order of the classes."""
Patterns = Mapping[Pattern, int]
"""Pattern → records."""
REST: Final = ""
"""All other classes together, in the agreement on one class. A class is never empty."""

NO_RECORD: Final = "no record has answers of two people"
ONE_CLASS: Final = "all answers name one class, so that agreement by chance is certain"
ONE_RECORD: Final = "an interval needs two records"
ALONE: Final = "the figure depends on one record alone"


class Agreement(NamedTuple):
    """A coefficient with its 95 % interval."""

    value: float | None
    low: float | None
    high: float | None
    records: int
    reason: str = ""  # why there is no value or no interval; "": both are there


def pattern(labels: Iterable[str | None]) -> Pattern:
    """Return the pattern of a record's answers.

    >>> pattern(["b", "a", None, "b"])
    (('a', 1), ('b', 2))
    """
    return tuple(sorted(Counter(label for label in labels if label is not None).items()))


def answers_in(answers: Pattern) -> int:
    """Return the number of answers in a pattern."""
    return sum(n for _, n in answers)


def cohen_kappa(pairs: Pairs) -> Agreement:
    """Return the agreement of two annotators.

    >>> kappa = cohen_kappa({("a", "a"): 20, ("a", "b"): 5, ("b", "a"): 10, ("b", "b"): 15})
    >>> [round(side, 3) for side in kappa[:3]]
    [0.4, 0.151, 0.649]
    """
    n = sum(pairs.values())
    if n == 0:
        return Agreement(None, None, None, 0, NO_RECORD)
    firsts, seconds = Counter[str](), Counter[str]()
    for (first, second), count in pairs.items():
        firsts[first] += count
        seconds[second] += count
    agreed = sum(count for (first, second), count in pairs.items() if first == second) / n
    chance = sum(firsts[name] * seconds[name] for name in firsts) / n**2
    if chance == 1.0:
        return Agreement(None, None, None, n, ONE_CLASS)
    kappa = (agreed - chance) / (1 - chance)
    spread = 0.0
    for (first, second), count in pairs.items():
        if first == second:
            spread += count / n * (1 - (firsts[first] + seconds[first]) / n * (1 - kappa)) ** 2
        else:
            spread += count / n * ((seconds[first] + firsts[second]) / n * (1 - kappa)) ** 2
    spread -= (kappa - chance * (1 - kappa)) ** 2
    return _with_interval(kappa, spread / ((1 - chance) ** 2 * n), agreed, chance, n)


def fleiss_kappa(patterns: Patterns) -> Agreement:
    """Return the agreement of any number of annotators; records may have unequal numbers of answers.

    >>> two_of_a, split, two_of_b = (("a", 2),), (("a", 1), ("b", 1)), (("b", 2),)
    >>> [round(side, 3) for side in fleiss_kappa({two_of_a: 20, split: 15, two_of_b: 15})[:3]]
    [0.394, 0.135, 0.652]
    """
    records = _of_several(patterns)
    n = sum(records.values())
    if n == 0:
        return Agreement(None, None, None, 0, NO_RECORD)
    shares: Counter[str] = Counter()
    for answers, count in sorted(records.items()):
        for name, k in answers:
            shares[name] += count * k / answers_in(answers) / n  # type: ignore[assignment]
    chance = sum(share**2 for share in shares.values())
    if len(shares) == 1:
        return Agreement(None, None, None, n, ONE_CLASS)
    agreed = sum(count * _agreed(answers) for answers, count in sorted(records.items())) / n
    kappa = (agreed - chance) / (1 - chance)
    spread = 0.0
    for answers, count in sorted(records.items()):
        by_chance = sum(shares[name] * k for name, k in answers) / answers_in(answers)
        alone = (_agreed(answers) - chance - 2 * (1 - kappa) * (by_chance - chance)) / (1 - chance)
        spread += count * (alone - kappa) ** 2
    variance = spread / (n * (n - 1)) if n > 1 else math.nan
    return _with_interval(kappa, variance, agreed, chance, n)


def krippendorff_alpha(patterns: Patterns) -> Agreement:
    """Return the agreement of any number of annotators on nominal classes, with missing answers.

    >>> two_of_a, split, three_of_b = (("a", 2),), (("a", 1), ("b", 1)), (("b", 3),)
    >>> [round(side, 3) for side in krippendorff_alpha({two_of_a: 9, split: 1, three_of_b: 5})[:3]]
    [0.888, 0.666, 1.0]
    """
    records = _of_several(patterns)
    n = sum(records.values())
    if n == 0:
        return Agreement(None, None, None, 0, NO_RECORD)
    totals, agreeing = Counter[str](), 0.0
    for answers, count in sorted(records.items()):
        for name, k in answers:
            totals[name] += count * k
        agreeing += count * _agreed(answers) * answers_in(answers)
    if len(totals) == 1:
        return Agreement(None, None, None, n, ONE_CLASS)
    alpha, agreed, chance = _alpha(totals, agreeing)
    if n == 1:
        return Agreement(alpha, None, None, n, ONE_RECORD)
    without: list[tuple[float, int]] = []  # alpha without one of these records, and their number
    for answers, count in sorted(records.items()):
        others = totals - Counter(dict(answers))
        if len(others) == 1:
            return Agreement(alpha, None, None, n, ALONE)
        rest = _alpha(others, agreeing - _agreed(answers) * answers_in(answers))[0]
        without.append((rest, count))
    mean = sum(rest * count for rest, count in without) / n
    variance = (n - 1) / n * sum(count * (rest - mean) ** 2 for rest, count in without)
    return _with_interval(alpha, variance, agreed, chance, n)


def pairs_of_class(pairs: Pairs, name: str) -> Pairs:
    """Return the answers of two annotators with all classes but one taken together."""
    merged: Counter[tuple[str, str]] = Counter()
    for (first, second), count in pairs.items():
        merged[first if first == name else REST, second if second == name else REST] += count
    return merged


def patterns_of_class(patterns: Patterns, name: str) -> Patterns:
    """Return patterns with all classes but one taken together.

    >>> patterns_of_class({(("a", 1), ("b", 1), ("c", 1)): 2}, "b")
    {(('', 2), ('b', 1)): 2}
    """
    merged: dict[Pattern, int] = {}
    for answers, count in patterns.items():
        k = sum(n for other, n in answers if other == name)
        rest = answers_in(answers) - k
        form = tuple((label, n) for label, n in ((REST, rest), (name, k)) if n)
        merged[form] = merged.get(form, 0) + count
    return merged


def _of_several(patterns: Patterns) -> dict[Pattern, int]:
    return {answers: count for answers, count in patterns.items() if count and answers_in(answers) > 1}


def _agreed(answers: Pattern) -> float:
    """Return the share of equal pairs among the pairs of a record's answers."""
    n = answers_in(answers)
    return sum(k * (k - 1) for _, k in answers) / (n * (n - 1))


def _alpha(totals: Mapping[str, int], agreeing: float) -> tuple[float, float, float]:
    """Return alpha, the agreement and the agreement by chance.

    totals: answers by class. agreeing: the sum over records of their agreement times their answers.
    """
    n = sum(totals.values())
    agreed = agreeing / n
    chance = sum(k * (k - 1) for k in totals.values()) / (n * (n - 1))
    return (agreed - chance) / (1 - chance), agreed, chance


def _with_interval(value: float, variance: float, agreed: float, chance: float, n: int) -> Agreement:
    if n == 1:
        return Agreement(value, None, None, n, ONE_RECORD)
    half = NORMAL_95 * math.sqrt(max(variance, 0.0))
    low, high = max(value - half, -1.0), min(value + half, 1.0)
    if agreed == 1.0:
        low = min((wilson_interval(n, n)[0] - chance) / (1 - chance), low)
    return Agreement(value, max(low, -1.0), high, n)
