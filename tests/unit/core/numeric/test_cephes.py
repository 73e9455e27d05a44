"""MOA's normal distribution function: right, and rounded as the twin rounds it."""

import math

import numpy as np
import pytest

from core.numeric import cephes
from tests.naive import cephes as naive

POINTS = [0.0, *np.linspace(-9.0, 9.0, 721).tolist(), *np.linspace(-37.0, 37.0, 593).tolist()]
"""Closely in the middle; far out on both sides, where each polynomial has its range."""


def test_it_is_the_normal_distribution():
    for z in POINTS:
        expected = 0.5 * math.erfc(-z / math.sqrt(2.0))
        assert cephes.normal_cdf(z) == pytest.approx(expected, rel=1e-12, abs=1e-300)


def test_its_last_bit_is_that_of_the_twin():
    assert [cephes.normal_cdf(z) for z in POINTS] == [naive.normal_cdf(z) for z in POINTS]


def test_it_is_symmetric_at_zero():
    assert cephes.normal_cdf(0.0) == 0.5
