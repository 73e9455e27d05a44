"""SEA: MOA's first records, and the concept."""

import numpy as np
import pytest

from core.errors import ParameterError
from core.streams import open_generator


def test_the_first_balanced_records_of_java():
    x, y = open_generator("sea", rng="java", balanced=True).take(10_000)
    assert x[:3].tolist() == [
        pytest.approx([7.308782, 4.100808, 2.077148], abs=5e-7),
        pytest.approx([1.595781, 5.540723, 9.109505], abs=5e-7),
        pytest.approx([6.598927, 1.567469, 3.782020], abs=5e-7),
    ]
    assert y[:3].tolist() == [1, 0, 1]
    assert y.sum() == 5045


@pytest.mark.parametrize(("function", "threshold"), [(1, 8.0), (2, 9.0), (3, 7.0), (4, 9.5)])
@pytest.mark.parametrize("flavour", ["counter", "java"])
def test_without_noise_the_threshold_decides(flavour, function, threshold):
    x, y = open_generator("sea", rng=flavour, function=function, noise=0.0).take(2000)
    assert np.array_equal(y, (x[:, 0] + x[:, 1] > threshold).astype(np.int32))
    assert x.min() >= 0.0
    assert x.max() < 10.0


@pytest.mark.parametrize("flavour", ["counter", "java"])
def test_the_share_of_noise(flavour):
    x, y = open_generator("sea", rng=flavour, noise=0.2).take(20_000)
    flipped = np.mean(y != (x[:, 0] + x[:, 1] > 8.0))
    assert abs(flipped - 0.2) < 4.5 * np.sqrt(0.2 * 0.8 / 20_000)


@pytest.mark.parametrize("flavour", ["counter", "java"])
def test_balanced_alternates_before_the_noise(flavour):
    _, y = open_generator("sea", rng=flavour, balanced=True, noise=0.0).take(100)
    assert y.tolist() == [1, 0] * 50


def test_the_function_must_exist():
    with pytest.raises(ParameterError, match="function=5 must be at most 4"):
        open_generator("sea", function=5)
