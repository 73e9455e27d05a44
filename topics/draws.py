"""Random draws for a row: the same for the same row in any batch.

Draw number `at` of stream `stream` under `seed` is SplitMix64 (Steele, Lea, Flood 2014) of a counter made of
the three. Streams keep decisions about the same row independent of each other.
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np
import numpy.typing as npt

_GOLDEN = 0x9E3779B97F4A7C15
_MASK = (1 << 64) - 1


class Draw(IntEnum):
    """Purposes of draws; each has its own stream."""

    LABEL_LOST = 1
    LABEL_DELAY = 2
    MODEL_KEY = 3
    ANSWER_LOST = 4
    ANSWER_DECLINED = 5
    ANSWER_WRONG = 6
    ANSWER_CLASS = 7
    ANSWER_DELAY = 8
    FEATURES_LOST = 9
    FEATURES_DELAY = 10
    FEATURE_UNAVAILABLE = 11


def uniform(seed: int, stream: Draw, at: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """Return one number in [0, 1) for each of n rows: float64[n]."""
    base = _mixed_one((seed * _GOLDEN + int(stream)) & _MASK)
    with np.errstate(over="ignore"):
        z = np.uint64(base) + at.astype(np.uint64) * np.uint64(_GOLDEN)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z ^= z >> np.uint64(31)
    numbers: npt.NDArray[np.float64] = (z >> np.uint64(11)).astype(np.float64) * 2.0**-53
    return numbers


def _mixed_one(z: int) -> int:
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
    return z ^ (z >> 31)
