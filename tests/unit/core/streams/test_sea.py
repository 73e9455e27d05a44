"""SEA: the concept."""

import numpy as np
import pytest

from core.errors import ParameterError
from core.streams import open_generator


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


def test_the_function_must_exist():
    with pytest.raises(ParameterError, match="function=5 must be at most 4"):
        open_generator("sea", function=5)
