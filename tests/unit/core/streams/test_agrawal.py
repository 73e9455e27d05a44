"""Agrawal: the ten functions, the perturbation."""

import numpy as np
import pytest

from core.streams import open_generator


def in_group_a(function, salary, commission, age, level, value, years, loan):
    """The functions of MOA's AgrawalGenerator, row by row; 5 to 10 after the paper's pages on the same."""
    income = 2 * (salary + commission) / 3
    if function == 7:
        return income - loan / 5 - 20_000 > 0
    if function == 8:
        return income - 5000 * level - 20_000 > 0
    if function == 9:
        return income - 5000 * level - loan / 5 - 10_000 > 0
    if function == 10:
        return income - 5000 * level + value * max(years - 20, 0) / 10 / 5 - 10_000 > 0
    band = "Y" if age < 40 else "M" if age < 60 else "O"

    def s(low, high):
        return low * 1000 <= salary <= high * 1000

    if function == 1:
        return band in "YO"
    if function == 2:
        return {"Y": s(50, 100), "M": s(75, 125), "O": s(25, 75)}[band]
    if function == 5:
        usual, other = {"Y": (1, 2), "M": (2, 3), "O": (3, 1)}[band]
        least = usual if {"Y": s(50, 100), "M": s(75, 125), "O": s(25, 75)}[band] else other
        return least * 100_000 <= loan <= (least + 2) * 100_000
    if function == 6:
        both = salary + commission
        low, high = {"Y": (50, 100), "M": (75, 125), "O": (25, 75)}[band]
        return low * 1000 <= both <= high * 1000
    levels = {"Y": {0, 1}, "M": {1, 2, 3}, "O": {2, 3, 4}}[band]
    if function == 3:
        return level in levels
    inside = {"Y": s(25, 75), "M": s(50, 100), "O": s(50, 100)}
    outside = {"Y": s(50, 100), "M": s(75, 125), "O": s(25, 75)}
    return (inside if level in levels else outside)[band]


@pytest.mark.parametrize("function", range(1, 11))
@pytest.mark.parametrize("flavour", ["counter", "java"])
def test_the_functions_without_perturbation(flavour, function):
    x, y = open_generator("agrawal", rng=flavour, function=function, perturbation=0.0).take(3000)
    expected = [0 if in_group_a(function, *r[[0, 1, 2, 3, 6, 7, 8]]) else 1 for r in x]
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
