"""Counter-based random numbers: every draw is a pure function of (seed, stream, counter).

There is no generator state. A draw that is not used changes nothing else, a strategy that is skipped while
its budget is closed cannot shift later randomness, and a replay from a snapshot needs the seed alone [D12]
(the bits are splitmix64's).

Keys and bits are numpy uint64 words. The functions are compiled for kernels and can be called from Python;
they give the same numbers with ``NUMBA_DISABLE_JIT=1``.
"""

from __future__ import annotations

import math
from typing import Final, TypeAlias

import numpy as np

from core.kernels.jit import DISABLED, kernel
from core.numeric.special import LN2, rough_cosine, rough_log2

# Each purpose has a stream, so that two purposes never share a draw. A number is never reused: snapshots
# replay with it.
QUERY_DECISION: Final = 1
SPLIT_COIN: Final = 2
RANDOMISED_THRESHOLD: Final = 3
THETA_SAMPLING: Final = 4
HYPOTHESIS_SAMPLING: Final = 5
EXPLORATION: Final = 6
EVALUATION_SLICE: Final = 7
ROUNDING: Final = 8
RESERVOIR: Final = 9
PURCHASE: Final = 10
SUBSPACE: Final = 11
BAGGING: Final = 12
LEAF_BAGGING: Final = 13
DISAGREEMENT: Final = 14
EXCHANGE: Final = 15
GENERATOR_RECORD: Final = 16
GENERATOR_MODEL: Final = 17
GENERATOR_DRIFT: Final = 18
GENERATOR_ORDER: Final = 19
DETECTOR_SAMPLE: Final = 20
GENERATOR_LABEL: Final = 21

Key: TypeAlias = int | np.uint64
"""The key of a stream: a uint64, or the int64 word of a plan that has its bits."""

DRAW_BITS: Final = 20
"""Number of draws of a record, as a power of two: draw j of record i is at ``(i << DRAW_BITS) + j``."""

GAMMA_BLOCK: Final = 64
"""Number of draws of one Gamma variate (16 attempts of four)."""

ROUGH_NORMAL_ERROR: Final = 1e-3
"""Usually far less: the root of a logarithm's error of 4e-7 is that large only near 0."""

MOST_EVENTS: Final = 200
"""Largest value of a Poisson variate; P(k > 200) is below 1e-30 for a mean of 100."""

_MASK: Final = 0xFFFFFFFFFFFFFFFF
_GOLDEN: Final = np.uint64(0x9E3779B97F4A7C15)
_MIX_1: Final = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2: Final = np.uint64(0x94D049BB133111EB)
_STREAM: Final = np.uint64(0xD1342543DE82EF95)
_ONE: Final = np.uint64(1)
_SHIFT_30: Final = np.uint64(30)
_SHIFT_27: Final = np.uint64(27)
_SHIFT_31: Final = np.uint64(31)
_SHIFT_11: Final = np.uint64(11)
_SHIFT_32: Final = np.uint64(32)
_UNIT: Final = 2.0**-53

# Compiled uint64 arithmetic wraps silently; numpy scalars warn on every overflow, so without the compiler
# the two operations that overflow go through Python integers.
if DISABLED:

    def _add(a: np.uint64, b: np.uint64) -> np.uint64:
        """Sum modulo 2**64."""
        return np.uint64((int(a) + int(b)) & _MASK)

    def _multiply(a: np.uint64, b: np.uint64) -> np.uint64:
        """Product modulo 2**64."""
        return np.uint64((int(a) * int(b)) & _MASK)

else:

    @kernel
    def _add(a: np.uint64, b: np.uint64) -> np.uint64:
        """Sum modulo 2**64."""
        return a + b

    @kernel
    def _multiply(a: np.uint64, b: np.uint64) -> np.uint64:
        """Product modulo 2**64."""
        return a * b


@kernel
def _mix(z: np.uint64) -> np.uint64:
    """Return the splitmix64 finaliser of a word."""
    z = _multiply(z ^ (z >> _SHIFT_30), _MIX_1)
    z = _multiply(z ^ (z >> _SHIFT_27), _MIX_2)
    return z ^ (z >> _SHIFT_31)


def stream_key(seed: int, stream: int) -> np.uint64:
    """Return the key of one stream of a seed (both at least 0).

    Called from Python only. The result is a numpy word on purpose: a compiled function returns a Python
    integer, which the next compiled function takes as an int64 and refuses beyond 2**63.
    """
    return np.uint64(_stream_key(seed, stream))


@kernel("uint64(uint64, int64)")
def _stream_key(seed: int, stream: int) -> np.uint64:
    return _mix(_mix(_add(np.uint64(seed), _GOLDEN)) ^ _multiply(np.uint64(stream), _STREAM))


@kernel
def bits(key: Key, counter: int) -> np.uint64:
    """Return the 64 bits at a counter: output number ``counter`` of splitmix64 started at ``key``."""
    return _mix(_add(np.uint64(key), _multiply(_add(np.uint64(counter), _ONE), _GOLDEN)))


@kernel
def uniform(key: Key, counter: int) -> float:
    """Return a float64 in [0, 1) with 53 random bits."""
    return np.float64(bits(key, counter) >> _SHIFT_11) * _UNIT


@kernel
def integer(key: Key, counter: int, n: int) -> int:
    """Return an integer in 0..n-1 for 1 <= n < 2**32 (bias below n / 2**32)."""
    return int(((bits(key, counter) >> _SHIFT_32) * np.uint64(n)) >> _SHIFT_32)


@kernel
def poisson(key: Key, counter: int, mean: float) -> int:
    """Return a Poisson variate by inversion of the uniform at a counter; mean: at most 100."""
    u = uniform(key, counter)
    share = math.exp(-mean)
    below = share
    k = 0
    while u >= below and k < MOST_EVENTS:
        k += 1
        share *= mean / k
        below += share
    return k


@kernel
def _normal_pair(key: Key, counter: int) -> float:
    """Return the first value of the Box-Muller pair on the draws ``counter`` and ``counter + 1``."""
    radius = math.sqrt(-2.0 * math.log(1.0 - uniform(key, counter)))
    return radius * math.cos(2.0 * math.pi * uniform(key, counter + 1))


@kernel
def normal(key: Key, counter: int) -> float:
    """Return a standard normal variate from the draws ``2 counter`` and ``2 counter + 1``."""
    return _normal_pair(key, 2 * counter)


@kernel
def rough_normal(key: Key, counter: int) -> float:
    """Return ``normal`` with an absolute error below ROUGH_NORMAL_ERROR, in a fifth of the time."""
    first = 2 * counter
    square = -2.0 * LN2 * rough_log2(1.0 - uniform(key, first))
    return math.sqrt(max(square, 0.0)) * rough_cosine(uniform(key, first + 1))


@kernel
def gamma(key: Key, first: int, shape: float) -> float:
    """Return a Gamma(shape, 1) variate, shape > 0, from the block of 64 draws that begins at ``first``.

    Marsaglia and Tsang's rejection (2000): attempt a uses the draws 4a, 4a+1 (normal) and 4a+2 (acceptance);
    draw 3 is used for a shape below 1. All sixteen attempts fail with a probability below 1e-20; the variate
    is then the mode of the proposal, so that the function always returns.
    """
    lifted = shape if shape >= 1.0 else shape + 1.0
    d = lifted - 1.0 / 3.0
    c = 1.0 / math.sqrt(9.0 * d)
    value = d
    for attempt in range(GAMMA_BLOCK // 4):
        x = _normal_pair(key, first + 4 * attempt)
        v = (1.0 + c * x) ** 3
        if v > 0.0:
            accept = math.log(1.0 - uniform(key, first + 4 * attempt + 2))
            if accept < 0.5 * x * x + d - d * v + d * math.log(v):
                value = d * v
                break
    if shape < 1.0:
        value *= (1.0 - uniform(key, first + 3)) ** (1.0 / shape)
    return value


@kernel
def beta(key: Key, first: int, a: float, b: float) -> float:
    """Return a Beta(a, b) variate from two Gamma blocks, a's at ``first`` and b's after it."""
    first_gamma = gamma(key, first, a)
    return first_gamma / (first_gamma + gamma(key, first + GAMMA_BLOCK, b))
