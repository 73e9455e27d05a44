"""Sums of counts: the same number to the last bit, however it was found."""

import numpy as np
import pytest

from core.kernels.jit import kernel, start_of
from core.observers.nominal import sum_of_counts


@kernel("float64(float64[::1], int64, int64, float64)", alone=True)
def summed(counts, first, n, start):
    return sum_of_counts(start_of(counts), first, n, start)


def expected(counts, start):
    total = start
    for count in counts.tolist():
        total += count
    return total


@pytest.mark.parametrize("n", [0, 1, 2, 7, 8, 9, 64, 293])
@pytest.mark.parametrize(
    "draw",
    [
        lambda rng, n: rng.integers(0, 50, n).astype(np.float64),
        lambda rng, n: rng.random(n),
        lambda rng, n: rng.integers(0, 2, n) * 2.0**33,
        lambda rng, n: rng.integers(0, 2, n) * (2.0**33 + 1.0),
        lambda rng, n: rng.integers(0, 2, n) * 1e300,
        lambda rng, n: np.where(np.arange(n) == n - 1, 0.1, rng.integers(0, 3, n)),
        lambda rng, n: rng.integers(0, 3, n) * 2.0**53,
    ],
)
def test_the_sum_is_that_of_one_after_the_other(draw, n):
    counts = draw(np.random.default_rng(n), n)
    words = np.concatenate([[1e9, 0.5], counts, [1e9, 0.25]])
    assert summed(words, 2, n, float(n)) == expected(counts, float(n))
