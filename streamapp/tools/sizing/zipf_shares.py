"""Shares of models by Zipf's law, and the share of the busiest worker when keys are placed by a hash."""

from __future__ import annotations

import functools
import math
from typing import Final

import numpy as np
import numpy.typing as npt

HEAD: Final = 500
"""The most frequent models, which are placed one by one; the rest is spread evenly."""

PLACEMENTS: Final = 64
"""Placements that are drawn. The mean of the largest share is then known to about 2 %."""

SEED: Final = 1


def hottest_share_of(models: int, exponent: float) -> float:
    """Return the share of all records that the most frequent of `models` models has.

    Model k has a weight of 1 / k ** exponent.
    """
    return float(_head(models, exponent)[0])


@functools.cache
def largest_zipf_share(workers: int, models: int, exponent: float) -> float:
    """Return the largest share of all records that a worker has, the mean over drawn placements.

    The partition of a key, and so its worker, is a hash of the key: for a plan, a uniform random number.
    """
    if workers == 1:
        return 1.0
    head = _head(models, exponent)
    places = (_uniform()[:, : len(head)] * workers).astype(np.int64)
    largest = [float(np.bincount(place, weights=head, minlength=workers).max()) for place in places]
    return math.fsum(largest) / PLACEMENTS + max(0.0, 1.0 - float(head.sum())) / workers


@functools.cache
def _uniform() -> npt.NDArray[np.float64]:
    """float64[PLACEMENTS, HEAD]: the same numbers for each number of workers."""
    return np.random.default_rng(SEED).random((PLACEMENTS, HEAD))


@functools.cache
def _head(models: int, exponent: float) -> npt.NDArray[np.float64]:
    """float64[min(models, HEAD)]: the shares of the most frequent models.

    The sum of the remaining weights is the integral of the law, as in Euler and Maclaurin's formula.
    """
    weights = np.arange(1, min(models, HEAD) + 1, dtype=np.float64) ** -exponent
    total = float(weights.sum())
    if models > HEAD:
        first, last = HEAD + 0.5, models + 0.5
        if math.isclose(exponent, 1.0):
            total += math.log(last / first)
        else:
            total += (last ** (1.0 - exponent) - first ** (1.0 - exponent)) / (1.0 - exponent)
    return weights / total
