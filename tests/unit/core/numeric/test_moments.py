import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.numeric.moments import deviation, merged, standard_score

VALUES = st.lists(st.floats(-1e6, 1e6), max_size=12)


def moments(values):
    if not values:
        return 0.0, 0.0, 0.0
    array = np.array(values, dtype=np.longdouble)
    return float(len(values)), float(array.mean()), float(((array - array.mean()) ** 2).sum())


@given(VALUES, VALUES)
def test_merged_is_the_moments_of_both_sets(one, other):
    assert merged(*moments(one), *moments(other)) == pytest.approx(moments(one + other), rel=1e-9, abs=1e-3)


def test_far_from_zero_no_digit_is_lost():
    """Four numbers near 10⁹ have a variance of 30."""
    n, mean, m2 = merged(*moments([1e9 + 4, 1e9 + 7]), *moments([1e9 + 13, 1e9 + 16]))
    assert (n, mean, m2 / (n - 1)) == (4.0, 1e9 + 10, 30.0)
    assert deviation(n, m2) == 30.0**0.5


def test_one_value_has_no_deviation():
    assert deviation(1.0, 0.0) == deviation(0.0, 0.0) == deviation(5.0, -1e-20) == 0.0


def test_standard_score_is_cut_off_and_says_nothing_of_what_is_missing():
    assert standard_score(7.0, 3.0, 2.0) == 2.0
    assert (standard_score(1e9, 3.0, 2.0), standard_score(-1e9, 3.0, 2.0)) == (5.0, -5.0)
    assert standard_score(float("nan"), 3.0, 2.0) == standard_score(7.0, 3.0, 0.0) == 0.0
