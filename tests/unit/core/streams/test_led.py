"""LED: the segments, the best possible accuracy."""

import numpy as np
import pytest

from core.errors import ParameterError
from core.streams import open_generator
from core.streams.led import SEGMENTS


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


@pytest.mark.parametrize("flavour", ["counter", "java"])
@pytest.mark.parametrize("drift", [1, 4, 7])
def test_drift_swaps_places_and_nothing_else(flavour, drift):
    x, y = open_generator("led", rng=flavour).take(200)
    moved_x, moved_y = open_generator("led", rng=flavour, drift=drift).take(200)
    swapped = np.arange(24)
    swapped[:drift], swapped[7 : 7 + drift] = np.arange(7, 7 + drift), np.arange(drift)
    assert np.array_equal(moved_x, x[:, swapped])
    assert np.array_equal(moved_y, y)


@pytest.mark.parametrize("flavour", ["counter", "java"])
def test_the_segments_alone(flavour):
    generator = open_generator("led", rng=flavour, irrelevant=False, noise=0.0)
    x, y = generator.take(500)
    assert np.array_equal(x, SEGMENTS[y])
    few = open_generator("led", irrelevant=False).take(300)
    assert np.array_equal(few[0], open_generator("led").take(300)[0][:, :7])


def test_the_segments_alone_have_no_places_to_swap():
    with pytest.raises(ParameterError, match="drift=3 must be 0 where irrelevant=False"):
        open_generator("led", irrelevant=False, drift=3)
