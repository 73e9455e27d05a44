"""java.util.Random in compiled form: the 48-bit linear congruential generator of MOA's streams.

A generator is an int64[3]: the state, whether a second Gaussian is stored, and its bits.

Java's Gaussians are defined with StrictMath.log, whose last bit differs from the platform's logarithm for one
value in a hundred. Its method (fdlibm's: 2^k times a number near 1, an even polynomial in f / (2 + f)) is
therefore spelled out here, operation by operation.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
import numpy.typing as npt

from core.kernels.jit import bits, from_bits, kernel

_MULTIPLIER: Final = 0x5DEECE66D
_MASK: Final = (1 << 48) - 1
_UNIT: Final = 2.0**-53
_LIMIT: Final = 1 << 31

_LN2_HIGH: Final = 6.93147180369123816490e-01
_LN2_LOW: Final = 1.90821492927058770002e-10
_L1: Final = 6.666666666666735130e-01
_L2: Final = 3.999999999940941908e-01
_L3: Final = 2.857142874366239149e-01
_L4: Final = 2.222219843214978396e-01
_L5: Final = 1.818357216161805012e-01
_L6: Final = 1.531383769920937332e-01
_L7: Final = 1.479819860511658591e-01


def seeded(seed: int) -> npt.NDArray[np.int64]:
    """Return the generator in the state of Java's ``new Random(seed)``."""
    return np.array([(seed ^ _MULTIPLIER) & _MASK, 0, 0], np.int64)


@kernel
def _next(random: npt.NDArray[np.int64], width: int) -> int:
    """Return the next ``width`` bits, at most 32, without a sign."""
    # The product exceeds 64 bits; only its lowest 48 count. Python's integers have no limit.
    state = (int(random[0]) * _MULTIPLIER + 0xB) & _MASK
    random[0] = state
    return state >> (48 - width)


@kernel
def double(random: npt.NDArray[np.int64]) -> float:
    """Return nextDouble(): uniform in [0, 1)."""
    high = _next(random, 26)
    return float((high << 27) + _next(random, 27)) * _UNIT


@kernel
def integer(random: npt.NDArray[np.int64], n: int) -> int:
    """Return nextInt(n): uniform in 0..n-1."""
    drawn = _next(random, 31)
    if n & (n - 1) == 0:
        return (n * drawn) >> 31
    while drawn - drawn % n + n - 1 >= _LIMIT:
        drawn = _next(random, 31)
    return drawn % n


@kernel
def strict_log(value: float) -> float:
    """Return StrictMath.log of a normal positive number."""
    words = bits(value)
    high = (words >> 32) & 0xFFFFF
    # One more halving above sqrt(2), so that 1 + f lies between sqrt(1/2) and sqrt(2).
    halved = (high + 0x95F64) & 0x100000
    k = float((words >> 52) - 1023 + (halved >> 20))
    f = from_bits(((high | (halved ^ 0x3FF00000)) << 32) | (words & 0xFFFFFFFF)) - 1.0
    if (high + 2) & 0xFFFFF < 3:  # |f| < 2^-20
        rest = f * f * (0.5 - 0.33333333333333333 * f)
        return f - rest if k == 0.0 else k * _LN2_HIGH - ((rest - k * _LN2_LOW) - f)
    s = f / (2.0 + f)
    z = s * s
    w = z * z
    rest = z * (_L1 + w * (_L3 + w * (_L5 + w * _L7))) + w * (_L2 + w * (_L4 + w * _L6))
    if ((high - 0x6147A) | (0x6B851 - high)) > 0:  # 1 + f well above 1
        half = 0.5 * f * f
        if k == 0.0:
            return f - (half - s * (half + rest))
        return k * _LN2_HIGH - ((half - (s * (half + rest) + k * _LN2_LOW)) - f)
    if k == 0.0:
        return f - s * (f - rest)
    return k * _LN2_HIGH - ((s * (f - rest) - k * _LN2_LOW) - f)


@kernel
def gaussian(random: npt.NDArray[np.int64]) -> float:
    """Return nextGaussian(): Marsaglia's polar method; its second value is stored for the next call."""
    if random[1] != 0:
        random[1] = 0
        return float(from_bits(random[2]))
    u = 2.0 * double(random) - 1.0
    v = 2.0 * double(random) - 1.0
    square = u * u + v * v
    while square >= 1.0 or square == 0.0:
        u = 2.0 * double(random) - 1.0
        v = 2.0 * double(random) - 1.0
        square = u * u + v * v
    scale = math.sqrt(-2.0 * strict_log(square) / square)
    random[1] = 1
    random[2] = bits(v * scale)
    return u * scale
