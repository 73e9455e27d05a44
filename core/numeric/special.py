"""Exponential, logarithm and normal distribution, from plain arithmetic.

The C library's functions do not vectorise, and their results differ between platforms. For these functions no
branch depends on the argument (loops over arrays become vector code), no operation is contracted, and a value
gives the same bits at every position of an array, with or without the compiler.
"""

from __future__ import annotations

import math
from typing import Final

from core.kernels.jit import bits, from_bits, kernel

LN2: Final = math.log(2.0)
LOG2_E: Final = 1.0 / math.log(2.0)
LN_SQRT_2PI: Final = 0.5 * math.log(2.0 * math.pi)

# ln 2 in two parts: the first has 32 trailing zeros, so that k · LN2_HIGH is exact for every exponent k.
_LN2_HIGH: Final = float.fromhex("0x1.62e42fee00000p-1")
_LN2_LOW: Final = float.fromhex("0x1.a39ef35793c76p-33")
# Adding it rounds to an integer, which is then in the low bits of the sum.
_ROUNDER: Final = 1.5 * 2.0**52
_ROUNDER_BITS: Final = 0x4338000000000000
_SQRT_HALF_BITS: Final = 0x3FE6A09E667F3BCD
_EXPONENT_MASK: Final = -0x10000000000000

# 1/k!, k = 12 … 0: the Taylor series of exp on |r| <= ln(2)/2 ends below 2e-16.
_F12, _F11, _F10, _F9, _F8, _F7, _F6, _F5, _F4, _F3 = (1.0 / math.factorial(k) for k in range(12, 2, -1))
_F13: Final = 1.0 / math.factorial(13)

# Upper tail of the normal distribution times exp(u²/2)·(u + 4.25), as a polynomial in
# t = (u - 4.25)/(u + 4.25); the Chebyshev series cut at degree 21, relative error below 6e-16.
_TAIL_CENTRE: Final = 4.25
_TAIL: Final = (
    0.7595542082672071,
    -0.6251297770834453,
    0.41822752582253037,
    -0.22051601745308444,
    0.08527207614554441,
    -0.019358324069946684,
    -0.000745337940547188,
    0.0021493825930327544,
    -0.0004044562648900182,
    -0.00019212235257080025,
    7.800560349400285e-05,
    2.064642078059215e-05,
    -1.2620592351923977e-05,
    -3.1900443787753433e-06,
    2.0064929242466792e-06,
    6.66473386342675e-07,
    -3.020034904096764e-07,
    -1.4880536271350885e-07,
    3.7402609130263535e-08,
    2.732675374737137e-08,
    -2.732313428491302e-09,
    -2.8044485306375962e-09,
)
(_T0, _T1, _T2, _T3, _T4, _T5, _T6, _T7, _T8, _T9, _T10) = _TAIL[:11]
(_T11, _T12, _T13, _T14, _T15, _T16, _T17, _T18, _T19, _T20, _T21) = _TAIL[11:]

_FRACTION_MASK: Final = 0x000FFFFFFFFFFFFF
_ONE_BITS: Final = 0x3FF0000000000000
_LOGARITHM: Final = (
    0.5849627591044444,
    0.48089827008326824,
    -0.08015796961419044,
    0.0178135030041211,
    -0.004412159626410395,
    0.0011753270088186163,
    -0.0003923459523829109,
    0.00011281525384276847,
)
(_L0, _L1, _L2, _L3, _L4, _L5, _L6, _L7) = _LOGARITHM
_ERROR_FUNCTION: Final = (0.0705230784, 0.0422820123, 0.0092705272, 0.0001520143, 0.0002765672, 0.0000430638)
(_E1, _E2, _E3, _E4, _E5, _E6) = _ERROR_FUNCTION
_SQRT_HALF: Final = math.sqrt(0.5)
_COSINE: Final = (
    -0.9999992107823215,
    19.738980355764,
    -64.92865742103304,
    85.27162153429472,
    -58.790492120102684,
    21.071105627587837,
)
(_C0, _C1, _C2, _C3, _C4, _C5) = _COSINE

# 1/(2k+1): the series of atanh, whose argument stays below 0.172.
(_A1, _A2, _A3, _A4, _A5, _A6, _A7, _A8, _A9, _A10) = (1.0 / (2 * k + 1) for k in range(1, 11))


LANES: Final = 8
"""Floats of a vector."""


@kernel
def in_vectors(n: int) -> int:
    """Return n rounded up to whole vectors, for a loop with ``if i < n`` in its body.

    The remainder of a loop of n steps after whole vectors would run step by step: of seven steps all. A store
    below that condition is masked, and processors are slow to load single words of it right afterwards: such
    a loop stores all lanes, and chooses by the condition which lanes it loads.
    """
    return (n + LANES - 1) & -LANES


@kernel
def in_half_vectors(n: int) -> int:
    """Return n rounded up to half vectors: for a loop over few elements that is compiled to these."""
    return (n + LANES // 2 - 1) & -(LANES // 2)


@kernel
def exp(y: float) -> float:
    """Return e^y for -1e300 < y <= 709, relative error below 4e-16; 0 below -708."""
    bounded = max(y, -708.0)
    shifted = bounded * LOG2_E + _ROUNDER
    k = shifted - _ROUNDER
    r = (bounded - k * _LN2_HIGH) - k * _LN2_LOW
    p = _F13 * r + _F12
    p = p * r + _F11
    p = p * r + _F10
    p = p * r + _F9
    p = p * r + _F8
    p = p * r + _F7
    p = p * r + _F6
    p = p * r + _F5
    p = p * r + _F4
    p = p * r + _F3
    p = (p * r + 0.5) * r * r + (r + 1.0)
    # 2^k by adding k to the exponent; k is in the low bits of the shifted sum.
    scaled = from_bits(bits(p) + ((bits(shifted) - _ROUNDER_BITS) << 52))
    return scaled if y > -708.0 else 0.0


@kernel
def log2(x: float) -> float:
    """Return the binary logarithm of a normal x > 0, absolute error below 4e-16·max(1, |result|)."""
    # Split x = 2^k · m with m in [sqrt(1/2), sqrt(2)).
    shift = (bits(x) - _SQRT_HALF_BITS) & _EXPONENT_MASK
    m = from_bits(bits(x) - shift)
    # The exponent as a float without a conversion, which older vector units lack: k goes into a float's low
    # bits.
    k = from_bits((shift >> 52) + _ROUNDER_BITS) - _ROUNDER
    s = (m - 1.0) / (m + 1.0)
    z = s * s
    p = _A10 * z + _A9
    p = p * z + _A8
    p = p * z + _A7
    p = p * z + _A6
    p = p * z + _A5
    p = p * z + _A4
    p = p * z + _A3
    p = p * z + _A2
    p = p * z + _A1
    return k + 2.0 * LOG2_E * (s + s * (z * p))


@kernel
def rough_log2(x: float) -> float:
    """Return the binary logarithm of a normal x > 0, absolute error below 4e-7; some number for 0."""
    k = from_bits(((bits(x) >> 52) - 1023) + _ROUNDER_BITS) - _ROUNDER
    # x = 2^k · m with m in [1, 2); the Chebyshev series of the logarithm in 2m - 3, cut at degree 7.
    t = 2.0 * from_bits((bits(x) & _FRACTION_MASK) | _ONE_BITS) - 3.0
    p = _L7 * t + _L6
    p = p * t + _L5
    p = p * t + _L4
    p = p * t + _L3
    p = p * t + _L2
    p = p * t + _L1
    return k + (p * t + _L0)


@kernel
def rough_cdf(z: float) -> float:
    """Return Φ(z), absolute error below 2e-7 (Abramowitz and Stegun 1964, formula 7.1.28)."""
    u = abs(z) * _SQRT_HALF
    p = _E6 * u + _E5
    p = p * u + _E4
    p = p * u + _E3
    p = p * u + _E2
    p = p * u + _E1
    p = p * u + 1.0
    p = p * p
    p = p * p
    p = p * p
    tail = 0.5 / (p * p)
    return tail if z < 0.0 else 1.0 - tail


@kernel
def rough_cosine(turns: float) -> float:
    """Return cos(2π·turns) for turns in [0, 1], absolute error below 1e-6."""
    # The Chebyshev series of -cos(2πr) in r², r in [-1/2, 1/2], cut at degree 5.
    r = turns - 0.5
    z = r * r
    p = _C5 * z + _C4
    p = p * z + _C3
    p = p * z + _C2
    p = p * z + _C1
    return p * z + _C0


@kernel
def x_log2_x(x: float) -> float:
    """Return x·lg x for x >= 0, with 0·lg 0 = 0."""
    return x * log2(x) if x > 0.0 else 0.0


@kernel
def normal_cdf(z: float) -> float:
    """Return Φ(z), relative error of the smaller tail below 2e-15·(1 + z²/10); 0 and 1 far out."""
    u = abs(z)
    r = 1.0 / (u + _TAIL_CENTRE)
    t = (u - _TAIL_CENTRE) * r
    p = _T21 * t + _T20
    p = p * t + _T19
    p = p * t + _T18
    p = p * t + _T17
    p = p * t + _T16
    p = p * t + _T15
    p = p * t + _T14
    p = p * t + _T13
    p = p * t + _T12
    p = p * t + _T11
    p = p * t + _T10
    p = p * t + _T9
    p = p * t + _T8
    p = p * t + _T7
    p = p * t + _T6
    p = p * t + _T5
    p = p * t + _T4
    p = p * t + _T3
    p = p * t + _T2
    p = p * t + _T1
    p = p * t + _T0
    tail = exp(-0.5 * u * u) * p * r
    return tail if z < 0.0 else 1.0 - tail
