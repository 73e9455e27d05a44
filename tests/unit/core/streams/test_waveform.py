"""Waveform: the shape of the classes, the best possible error."""

import numpy as np
import pytest

from core.streams import open_generator
from core.streams.waveform import TRIANGLES


def test_the_triangles():
    assert TRIANGLES.shape == (3, 21)
    assert TRIANGLES.argmax(axis=1).tolist() == [6, 14, 10]
    assert TRIANGLES[0].tolist() == [0, 1, 2, 3, 4, 5, 6, 5, 4, 3, 2, 1] + [0] * 9
    assert TRIANGLES[1, 20] == 0.0
    assert TRIANGLES.sum(axis=1).tolist() == [36.0] * 3


@pytest.mark.parametrize("flavour", ["counter", "java"])
def test_the_mean_of_a_class_lies_halfway_between_its_triangles(flavour):
    x, y = open_generator("waveform", rng=flavour, irrelevant=True, seed=3).take(30_000)
    for label, pair in enumerate([(0, 1), (0, 2), (1, 2)]):
        mean = x[y == label].mean(axis=0)
        # Noise of deviation 1 and a mixture of at most 6·U: below 2.1 altogether.
        assert np.abs(mean[:21] - TRIANGLES[list(pair)].mean(axis=0)).max() < 4.5 * 2.1 / np.sqrt(9000)
        assert np.abs(mean[21:]).max() < 4.5 / np.sqrt(9000)
    assert np.abs(x[:, 21:].std(axis=0) - 1.0).max() < 4.5 * np.sqrt(0.5 / 30_000)


def likelihood(x, one, other):
    """Return the density of records under a mixture of two triangles, up to a factor."""
    shares = (np.arange(200) + 0.5) / 200
    centres = shares[:, None] * TRIANGLES[one] + (1 - shares[:, None]) * TRIANGLES[other]
    square = (x**2).sum(axis=1)[:, None] - 2 * x @ centres.T + (centres**2).sum(axis=1)
    return np.exp(-0.5 * square + 10.0).mean(axis=1)


@pytest.mark.parametrize("flavour", ["counter", "java"])
def test_the_best_error_is_the_known_one(flavour):
    n = 20_000
    x, y = open_generator("waveform", rng=flavour, seed=2).take(n)
    best = np.argmax([likelihood(x, 0, 1), likelihood(x, 0, 2), likelihood(x, 1, 2)], axis=0)
    # The literature gives three digits of the error.
    assert abs(np.mean(best != y) - 0.134) < 0.0005 + 4.5 * np.sqrt(0.134 * 0.866 / n)
