"""Purchase draws: the random numbers of episodes, for Python code that decides which features to buy."""

from __future__ import annotations

import numpy as np

from core.kernels.jit import kernel
from core.numeric import rng


@kernel("float64(uint64, int64)", alone=True)
def uniform(key: np.uint64, counter: int) -> float:
    """Return a float64 in [0, 1) with 53 random bits (``rng.uniform``)."""
    return rng.uniform(key, counter)


@kernel("uint64(uint64, int64)", alone=True)
def bits(key: np.uint64, counter: int) -> np.uint64:
    """Return the 64 bits at a counter (``rng.bits``)."""
    return rng.bits(key, counter)
