"""Decimals: digits and a power of ten to the nearest float64, by Clinger's fast path and Eisel and Lemire's.

Clinger, *How to read floating point numbers accurately* (1990): a product or quotient of two exact float64 is
rounded once. Lemire, *Number parsing at a gigabyte per second* (2021), sections 5 to 8: the product of the
digits and 128 bits of the power of five decides nearly all other cases, and the algorithm detects the rest.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from core.kernels.jit import bits, from_bits, kernel

EXACT_DIGITS: Final = 1 << 53
"""Integers up to this one are exact float64."""
EXACT_POWER: Final = 22
"""10**22 is the largest power of ten that is an exact float64."""
SMALLEST, LARGEST = -342, 308
"""Powers of ten beyond these give zero or infinity with any digits."""
POWERS: Final = np.array([10.0**power for power in range(EXACT_POWER + 1)])

_WORD: Final = 64
_ALL: Final = np.uint64(0xFFFF_FFFF_FFFF_FFFF)
_LOW: Final = np.uint64(0xFFFF_FFFF)
_HALF: Final = np.uint64(32)
_ZERO, _ONE, _THREE = np.uint64(0), np.uint64(1), np.uint64(3)
_TOP: Final = np.uint64(63)
_BELOW: Final = np.uint64(9)  # bits of a word below the 52 of a float64, its hidden bit and two for rounding
_BELOW_MASK: Final = np.uint64(0x1FF)
_HIDDEN: Final = np.uint64(1 << 52)
_OVERFLOWN: Final = np.uint64(1 << 53)
_BIAS: Final = 1023
_INFINITE: Final = 0x7FF


def _fives() -> Any:
    """Return uint64[651, 2]: 128 bits of each power of five, truncated, and plus one for negative powers."""
    table = np.empty((LARGEST - SMALLEST + 1, 2), dtype=np.uint64)
    for power in range(SMALLEST, LARGEST + 1):
        five = 5 ** abs(power)
        if power >= 0:
            shift = 128 - five.bit_length()
            first = five << shift if shift >= 0 else five >> -shift
        else:
            first = (1 << (five.bit_length() + 127)) // five + 1
            first >>= first.bit_length() - 128
        table[power - SMALLEST] = first >> _WORD, first & ((1 << _WORD) - 1)
    return table


FIVES: Final = _fives()


@kernel
def nearest(digits, power: int) -> float:
    """Return the float64 nearest to digits · 10**power, or NaN if these methods cannot decide it.

    `digits` is uint64, all digits of the number; the result is NaN for subnormal numbers, too (but not for
    zero).
    """
    if digits == _ZERO:
        return 0.0
    if digits <= np.uint64(EXACT_DIGITS) and -EXACT_POWER <= power <= EXACT_POWER:
        exact = np.float64(digits)
        return exact / POWERS[-power] if power < 0 else exact * POWERS[power]
    if power < SMALLEST or power > LARGEST:
        return np.nan
    zeros = _leading_zeros(digits)
    digits = digits << np.uint64(zeros)
    row = power - SMALLEST
    high, low = _product(digits, FIVES[row, 0])
    if (high & _BELOW_MASK) == _BELOW_MASK:
        carried, _rest = _product(digits, FIVES[row, 1])
        low = low + carried
        if low < carried:
            high = high + _ONE
        if low == _ALL and (power < -27 or power > 55):
            return np.nan  # 128 bits of the power do not decide
    upper = high >> _TOP
    kept = high >> (upper + _BELOW)
    # floor(power · log2(10)): exact in this range.
    exponent = ((217706 * power) >> 16) + _WORD - 1 + np.int64(upper) - zeros + _BIAS
    if exponent <= 0:
        return np.nan  # subnormal
    halfway = low <= _ONE and -4 <= power <= 23 and (kept & _THREE) == _ONE
    if halfway and (kept << (upper + _BELOW)) == high:
        kept = kept & (_ALL ^ _ONE)  # to the even neighbour
    kept = (kept + (kept & _ONE)) >> _ONE
    if kept >= _OVERFLOWN:
        kept = _HIDDEN
        exponent += 1
    if exponent >= _INFINITE:
        return np.nan
    return from_bits((exponent << 52) | np.int64(kept & (_HIDDEN - _ONE)))


@kernel
def _leading_zeros(word) -> int:
    """Return the leading zeros of a nonzero word; its exponent as a float64 is off by at most one."""
    zeros = max(_WORD - 1 - ((bits(np.float64(word)) >> 52) - _BIAS), 0)
    # Rounding to a float64 may have reached the next power of two.
    return zeros if (word << np.uint64(zeros)) >> _TOP == _ONE else zeros + 1


@kernel
def _product(a, b) -> Any:
    """Return the high and the low word of the product of two words."""
    a_high, a_low = a >> _HALF, a & _LOW
    b_high, b_low = b >> _HALF, b & _LOW
    lowest = a_low * b_low
    middle = a_high * b_low + (lowest >> _HALF)
    other = a_low * b_high + (middle & _LOW)
    high = a_high * b_high + (middle >> _HALF) + (other >> _HALF)
    return high, (other << _HALF) | (lowest & _LOW)
