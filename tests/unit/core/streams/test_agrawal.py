"""Agrawal: MOA's first records, the four functions, the perturbation."""

import numpy as np
import pytest

from core.streams import open_generator


@pytest.mark.parametrize(
    ("function", "records", "labels"),
    [
        (
            1,
            [
                [110499.7354, 0, 54, 3, 14, 4, 135000, 30, 354724.1825],
                [99349.1351, 0, 26, 0, 9, 6, 135000, 27, 213860.7007],
            ],
            [1, 0],
        ),
        (
            2,
            [
                [104288.2282, 0, 68, 0, 0, 7, 100605.0727, 13, 265422.5910],
                [41784.2359, 48115.0043, 76, 3, 18, 3, 135000, 6, 266249.5052],
            ],
            [1, 0],
        ),
        (
            4,
            [
                [110499.7354, 0, 54, 3, 14, 4, 135000, 30, 354724.1825],
                [94844.4085, 0, 75, 4, 0, 7, 129472.9179, 28, 327077.0460],
            ],
            [1, 0],
        ),
    ],
)
def test_the_first_balanced_records_of_java(function, records, labels):
    x, y = open_generator("agrawal", rng="java", function=function, balanced=True).take(2)
    assert x == pytest.approx(np.array(records), abs=5e-5)
    assert y.tolist() == labels


@pytest.mark.parametrize(("function", "ones"), [(1, 3246), (2, 6105), (4, 6178)])
def test_the_class_shares_of_java(function, ones):
    _, y = open_generator("agrawal", rng="java", function=function).take(10_000)
    assert y.sum() == ones


def in_group_a(function, salary, age, level):
    """The table of ALGORITHMS section 23, row by row."""
    band = "Y" if age < 40 else "M" if age < 60 else "O"

    def s(low, high):
        return low * 1000 <= salary <= high * 1000

    if function == 1:
        return band in "YO"
    if function == 2:
        return {"Y": s(50, 100), "M": s(75, 125), "O": s(25, 75)}[band]
    levels = {"Y": {0, 1}, "M": {1, 2, 3}, "O": {2, 3, 4}}[band]
    if function == 3:
        return level in levels
    inside = {"Y": s(25, 75), "M": s(50, 100), "O": s(50, 100)}
    outside = {"Y": s(50, 100), "M": s(75, 125), "O": s(25, 75)}
    return (inside if level in levels else outside)[band]


@pytest.mark.parametrize("function", [1, 2, 3, 4])
@pytest.mark.parametrize("flavour", ["counter", "java"])
def test_the_functions_without_perturbation(flavour, function):
    x, y = open_generator("agrawal", rng=flavour, function=function, perturbation=0.0).take(3000)
    expected = [0 if in_group_a(function, r[0], r[2], r[3]) else 1 for r in x]
    assert y.tolist() == expected
    assert 0 < y.sum() < 3000


@pytest.mark.parametrize("flavour", ["counter", "java"])
def test_the_ranges(flavour):
    x, _ = open_generator("agrawal", rng=flavour, perturbation=0.2).take(20_000)
    low = [20_000, 0, 20, 0, 0, 0, 30_000, 1, 0]
    high = [150_000, 75_000, 80, 4, 19, 8, 135_000, 30, 500_000]
    assert x.min(axis=0) == pytest.approx(low, abs=5000)
    assert x.max(axis=0) == pytest.approx(high, rel=0.01)
    assert np.all(x[:, 1] * (x[:, 1] - 10_000) >= 0)
    assert np.array_equal(x[:, 2:6], np.round(x[:, 2:6]))


@pytest.mark.parametrize("flavour", ["counter", "java"])
def test_the_perturbation_keeps_labels_and_moves_numbers_evenly(flavour):
    _, before = open_generator("agrawal", rng=flavour, perturbation=0.0).take(1)
    plain, _ = open_generator("agrawal", rng=flavour, perturbation=0.0).take(1)
    moved, after = open_generator("agrawal", rng=flavour, perturbation=0.05).take(1)
    assert before.tolist() == after.tolist()
    assert np.array_equal(plain[0, 3:6], moved[0, 3:6])
    assert 0 < abs(plain[0, 0] - moved[0, 0]) <= 130_000 * 0.05


@pytest.mark.parametrize("flavour", ["counter", "java"])
def test_balanced_alternates(flavour):
    _, y = open_generator("agrawal", rng=flavour, function=4, balanced=True).take(60)
    assert y.tolist() == [1, 0] * 30
