"""Decimals, against Python's own conversion, which rounds correctly."""

import math
import random
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from topics.codecs.json.compiled.decimals import FIVES, LARGEST, SMALLEST, nearest


def converted(digits: int, power: int) -> float:
    return float(nearest(np.uint64(digits), power))


@given(st.integers(0, 2**64 - 1), st.integers(-400, 400))
@example(2**53 + 1, 0)  # halfway between two neighbours
@example(2**54 + 2, 0)
@example(9007199254740993, -1)
@example(5, -324)  # the smallest of all, subnormal
@example(22250738585072011, -324)  # just below the normal ones
@example(22250738585072014, -324)
@example(17976931348623157, 292)  # the largest
@example(17976931348623159, 292)  # infinity
@example(1, 23)
@example(0, 400)
def test_the_nearest_or_nothing(digits: int, power: int) -> None:
    number = converted(digits, power)
    assert math.isnan(number) or number == float(f"{digits}e{power}")


def test_it_says_nothing_seldom() -> None:
    """Whatever is not at the ends of the range is decided."""
    rng = random.Random(1)
    silent = 0
    for _ in range(5000):
        number = converted(rng.getrandbits(64), rng.randint(-290, 280))
        silent += math.isnan(number)
    assert silent == 0


@given(st.floats(allow_nan=False, allow_infinity=False, min_value=2.2250738585072014e-308))
def test_what_prints_shortest_comes_back(number: float) -> None:
    digits, _, power = repr(number).partition("e")
    whole, _, fraction = digits.partition(".")
    assert converted(int(whole + fraction), int(power or 0) - len(fraction)) == number


@pytest.mark.parametrize("power", [SMALLEST, -200, -28, -27, -1, 0, 1, 27, 55, 56, 200, LARGEST])
def test_powers_of_five_have_128_bits(power: int) -> None:
    high, low = map(int, FIVES[power - SMALLEST])
    bits = Fraction((high << 64) | low)
    exact = Fraction(5) ** power
    scale = Fraction(2) ** (127 - math.floor(math.log2(exact.numerator) - math.log2(exact.denominator)))
    error = bits - exact * scale
    assert high >> 63 == 1
    assert -1 < error <= 0 if power >= 0 else 0 < error <= 1
