"""Coefficients of agreement beside statsmodels, krippendorff and irrCAC, and the coverage of intervals."""

from __future__ import annotations

import json
import math
import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from streamapp.people.coefficients import (
    ALONE,
    NO_RECORD,
    ONE_CLASS,
    ONE_RECORD,
    Agreement,
    Pattern,
    Patterns,
    cohen_kappa,
    fleiss_kappa,
    krippendorff_alpha,
    pairs_of_class,
    pattern,
    patterns_of_class,
)
from streamapp.people.wilson_interval import NORMAL_95

ORACLES = json.loads((Path(__file__).parents[3] / "golden" / "agreement.json").read_text())
NAMES = "abcd"
BOTH_A, SPLIT, BOTH_B = pattern("aa"), pattern("ab"), pattern("bb")


def labels(codes: list[int]) -> list[str | None]:
    return [None if code < 0 else NAMES[code] for code in codes]


@pytest.mark.parametrize("case", ORACLES)
def test_the_figures_are_those_of_other_programs(case: str) -> None:
    oracle = ORACLES[case]
    rows = [labels(codes) for codes in oracle["answers"]]
    patterns = Counter(map(pattern, rows))
    fleiss, alpha = fleiss_kappa(patterns), krippendorff_alpha(patterns)
    assert alpha.value == pytest.approx(oracle["krippendorff"], abs=1e-9)
    if "fleiss" in oracle:
        assert fleiss.value == pytest.approx(oracle["fleiss"], abs=1e-9)
    value, error = oracle["fleiss by irrCAC"]
    assert fleiss.value == pytest.approx(value, abs=1e-9)
    assert fleiss.low == pytest.approx(value - NORMAL_95 * error, abs=1e-9)
    assert fleiss.high == pytest.approx(min(value + NORMAL_95 * error, 1.0), abs=1e-9)
    assert alpha.low is not None
    assert alpha.value is not None
    by_gwet = oracle["krippendorff by irrCAC"][1]
    assert (alpha.value - alpha.low) / NORMAL_95 == pytest.approx(by_gwet, rel=0.15), "another estimate of it"
    if "cohen" in oracle:
        kappa = cohen_kappa(Counter((str(first), str(second)) for first, second in rows))
        assert kappa[:3] == pytest.approx(oracle["cohen"], abs=1e-9)


def jackknifed(patterns: Patterns) -> float:
    """Return the standard error of alpha, each record left out in turn."""
    several = {answers: count for answers, count in patterns.items() if sum(n for _, n in answers) > 1}
    records = [answers for answers, count in several.items() for _ in range(count)]
    without = []
    for place in range(len(records)):
        value = krippendorff_alpha(Counter(records[:place] + records[place + 1 :])).value
        assert value is not None
        without.append(value)
    mean = sum(without) / len(without)
    return math.sqrt((len(records) - 1) / len(records) * sum((value - mean) ** 2 for value in without))


def test_alphas_interval_is_a_jackknife_over_records() -> None:
    patterns = {BOTH_A: 9, SPLIT: 3, BOTH_B: 4, pattern("aab"): 2, pattern("a"): 7, pattern("bbbb"): 1}
    alpha = krippendorff_alpha(patterns)
    assert alpha.low is not None
    assert alpha.value is not None
    assert alpha.value - alpha.low == pytest.approx(NORMAL_95 * jackknifed(patterns), rel=1e-9)
    assert alpha.records == 19, "one answer shows no agreement"


def simulated(records: int, seed: int) -> tuple[Counter[Pattern], Counter[tuple[str, str]]]:
    """Return the answers of three people, of whom each is right in seven of ten cases and else guesses."""
    draw = random.Random(seed)
    patterns, pairs = Counter[Pattern](), Counter[tuple[str, str]]()
    for _ in range(records):
        true = draw.choices("abc", (6, 3, 1))[0]
        given = [true if draw.random() < 0.7 else draw.choice("abc") for _ in range(3)]
        pairs[given[0], given[1]] += 1
        patterns[pattern(label if draw.random() > 0.2 else None for label in given)] += 1
    return patterns, pairs


def test_the_intervals_hold_the_true_figure_in_95_of_100_samples() -> None:
    patterns, pairs = simulated(30_000, 1)
    true = [fleiss_kappa(patterns).value, krippendorff_alpha(patterns).value, cohen_kappa(pairs).value]
    holds = [0, 0, 0]
    samples = 200
    for seed in range(samples):
        patterns, pairs = simulated(60, 100 + seed)
        estimates = (fleiss_kappa(patterns), krippendorff_alpha(patterns), cohen_kappa(pairs))
        for place, (value, estimate) in enumerate(zip(true, estimates, strict=True)):
            assert value is not None
            assert estimate.low is not None
            assert estimate.high is not None
            holds[place] += estimate.low <= value <= estimate.high
    assert all(0.9 * samples <= n <= 0.995 * samples for n in holds), holds


@pytest.mark.parametrize("coefficient", [fleiss_kappa, krippendorff_alpha])
def test_what_cannot_be_computed_has_a_reason_and_is_no_nan(
    coefficient: Callable[[Patterns], Agreement],
) -> None:
    assert coefficient({}) == Agreement(None, None, None, 0, NO_RECORD)
    assert coefficient({pattern("a"): 5, pattern(""): 1}).reason == NO_RECORD
    assert coefficient({BOTH_A: 5}) == Agreement(None, None, None, 5, ONE_CLASS)
    one = coefficient({SPLIT: 1})
    assert one.value is not None
    assert (one.low, one.reason) == (None, ONE_RECORD)
    sure = coefficient({BOTH_A: 10, BOTH_B: 10})
    assert (sure.value, sure.high) == (1.0, 1.0)
    assert sure.low is not None
    assert 0.5 < sure.low < 0.75, "twenty equal answers are no certainty"


def test_two_people_who_cannot_be_compared() -> None:
    assert cohen_kappa({}) == Agreement(None, None, None, 0, NO_RECORD)
    assert cohen_kappa({("a", "a"): 3}) == Agreement(None, None, None, 3, ONE_CLASS)
    assert cohen_kappa({("a", "b"): 1}).reason == ONE_RECORD
    assert cohen_kappa({("a", "b"): 30}).value == 0.0, "each has one class, and they never agree"
    sure = cohen_kappa({("a", "a"): 1, ("b", "b"): 1})
    assert sure.value == 1.0
    assert sure.low == pytest.approx(-0.315, abs=0.01)


def test_a_figure_that_one_record_decides_has_no_interval() -> None:
    assert krippendorff_alpha({BOTH_A: 9, BOTH_B: 1})[1:] == (None, None, 10, ALONE)


def test_the_agreement_on_one_class_takes_the_others_together() -> None:
    patterns = {pattern("abc"): 2, pattern("bb"): 1, pattern("cc"): 3}
    assert patterns_of_class(patterns, "b") == {
        (("", 2), ("b", 1)): 2,
        (("b", 2),): 1,
        (("", 2),): 3,
    }
    pairs = {("a", "c"): 2, ("c", "c"): 1, ("b", "a"): 4, ("b", "b"): 5}
    assert pairs_of_class(pairs, "b") == {("", ""): 3, ("b", ""): 4, ("b", "b"): 5}


def test_the_order_of_counts_makes_no_difference_to_a_bit() -> None:
    patterns, _ = simulated(200, 3)
    backwards = dict(reversed(patterns.items()))
    assert fleiss_kappa(patterns) == fleiss_kappa(backwards)
    assert krippendorff_alpha(patterns) == krippendorff_alpha(backwards)
