import math

import numpy as np
import pytest

from core.numeric import special


@pytest.mark.parametrize("y", [0.0, -1e-9, -0.3, -1.0, -17.3, -300.0, -707.9, 0.5, 20.0, 700.0])
def test_exp(y):
    assert special.exp(y) == pytest.approx(math.exp(y), rel=4e-16)


def test_whole_vectors():
    assert [special.in_vectors(n) for n in (0, 1, 7, 8, 9, 800)] == [0, 8, 8, 8, 16, 800]
    assert [special.in_half_vectors(n) for n in (0, 1, 4, 5, 9, 800)] == [0, 4, 4, 8, 12, 800]


def test_exp_far_below_is_nothing():
    assert special.exp(-708.5) == 0.0
    assert special.exp(-1e300) == 0.0


@pytest.mark.parametrize("x", [1.0, 2.0, 0.5, 1e-300, 1e300, math.sqrt(2.0), math.sqrt(0.5), 3.0, 0.9999999])
def test_log2(x):
    assert special.log2(x) == pytest.approx(math.log2(x), rel=4e-16, abs=4e-16)


def test_powers_of_two_are_exact():
    for k in range(-40, 41):
        assert special.log2(2.0**k) == k


def test_x_log2_x():
    assert special.x_log2_x(0.0) == 0.0
    assert special.x_log2_x(8.0) == 24.0


def test_normal_cdf():
    for z in np.linspace(-9.0, 9.0, 1801).tolist():
        exact = 0.5 * math.erfc(-z / math.sqrt(2.0))
        assert special.normal_cdf(z) == pytest.approx(exact, abs=1e-15)
        if z < 0.0:
            assert special.normal_cdf(z) == pytest.approx(exact, rel=2e-15 * (1.0 + z * z / 10.0))


def test_normal_cdf_is_monotone_and_ends_exactly():
    z = np.linspace(-41.0, 41.0, 20001).tolist()
    phi = np.array([special.normal_cdf(v) for v in z])
    # Rounding may turn two neighbours by one unit in the last place where Φ is nearly 1.
    assert (np.diff(phi) >= -1.2e-16).all()
    assert (phi[0], phi[-1]) == (0.0, 1.0)
    assert special.normal_cdf(0.0) == pytest.approx(0.5, abs=1e-16)
