"""LED: MOA's first records, the segments, the best possible accuracy."""

import numpy as np
import pytest

from core.streams import open_generator
from core.streams.led import SEGMENTS


def test_the_first_records_of_java():
    x, y = open_generator("led", rng="java").take(3)
    assert ["".join(str(int(bit)) for bit in record) for record in x] == [
        "110111011001011111001000",
        "111011000101011010011011",
        "101110100100001000010100",
    ]
    assert y.tolist() == [5, 9, 2]


@pytest.mark.parametrize("flavour", ["counter", "java"])
def test_without_noise_the_segments_spell_the_digit(flavour):
    x, y = open_generator("led", rng=flavour, noise=0.0).take(500)
    assert np.array_equal(x[:, :7], SEGMENTS[y])


@pytest.mark.parametrize("flavour", ["counter", "java"])
def test_the_best_accuracy_is_the_known_one(flavour):
    """The likeliest digit given the segments is right in 0.740022 of all cases."""
    n = 40_000
    x, y = open_generator("led", rng=flavour, seed=4).take(n)
    wrong = (x[:, None, :7] != SEGMENTS[None]).sum(axis=2)
    likelihood = 0.1**wrong * 0.9 ** (7 - wrong)
    right = likelihood[np.arange(n), y] >= likelihood.max(axis=1) * (1 - 1e-12)
    ties = np.isclose(likelihood, likelihood.max(axis=1, keepdims=True)).sum(axis=1)
    accuracy = np.mean(right / ties)
    assert abs(accuracy - 0.740022) < 4.5 * np.sqrt(0.74 * 0.26 / n)


@pytest.mark.parametrize("flavour", ["counter", "java"])
def test_the_other_bits_are_fair_and_independent(flavour):
    n = 20_000
    x, y = open_generator("led", rng=flavour, seed=2).take(n)
    assert np.all(np.abs(x[:, 7:].mean(axis=0) - 0.5) < 4.5 * np.sqrt(0.25 / n))
    together = np.corrcoef(np.column_stack([x[:, 7:], y]).T) - np.eye(18)
    assert np.abs(together).max() < 5.0 / np.sqrt(n)


@pytest.mark.parametrize(
    ("drift", "records"),
    [
        (1, ["110111011001011111001000", "011011010101011010011011"]),
        (3, ["110111011001011111001000", "001011011101011010011011"]),
        (7, ["110010111011101111001000", "001010111101101010011011"]),
    ],
)
def test_the_first_records_of_java_with_places_swapped(drift, records):
    x, y = open_generator("led", rng="java", drift=drift).take(2)
    assert ["".join(str(int(bit)) for bit in record) for record in x] == records
    assert y.tolist() == [5, 9]


@pytest.mark.parametrize("flavour", ["counter", "java"])
@pytest.mark.parametrize("drift", [1, 4, 7])
def test_drift_swaps_places_and_nothing_else(flavour, drift):
    x, y = open_generator("led", rng=flavour).take(200)
    moved_x, moved_y = open_generator("led", rng=flavour, drift=drift).take(200)
    swapped = np.arange(24)
    swapped[:drift], swapped[7 : 7 + drift] = np.arange(7, 7 + drift), np.arange(drift)
    assert np.array_equal(moved_x, x[:, swapped])
    assert np.array_equal(moved_y, y)
