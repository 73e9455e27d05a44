"""The columns of the worked leaf (ALGORITHMS section 2.3), criterion by criterion."""

import numpy as np
import pytest

from core.criteria import gini, info_gain

D1 = np.array([[30.0, 10.0], [5.0, 55.0]]).T.copy()  # float64[class, branch]
PARENT = np.array([[35.0], [65.0]])


def impurity(criterion, masses):
    k, n = masses.shape
    out, total = np.empty(n), np.empty(n)
    criterion.impurity(masses, k, n, out, total)
    assert total == pytest.approx(masses.sum(axis=0))
    return out


@pytest.mark.parametrize(
    ("criterion", "parent", "conditional"),
    [(info_gain, 0.934068, 0.934068 - 0.361267), (gini, 0.455, 0.241667)],
)
def test_the_worked_leaf(criterion, parent, conditional):
    assert impurity(criterion, PARENT)[0] / 100.0 == pytest.approx(parent, abs=1e-6)
    assert impurity(criterion, D1).sum() / 100.0 == pytest.approx(conditional, abs=1e-6)


@pytest.mark.parametrize("criterion", [info_gain, gini])
def test_empty_and_pure_columns_have_none(criterion):
    assert impurity(criterion, np.array([[0.0, 7.0], [0.0, 0.0], [0.0, 0.0]])) == pytest.approx(
        [0.0, 0.0], abs=1e-12
    )


@pytest.mark.parametrize("criterion", [info_gain, gini])
def test_splitting_never_adds_impurity(criterion):
    rng = np.random.default_rng(0)
    left, right = rng.integers(0, 50, (2, 4, 1000)).astype(np.float64)
    gain = impurity(criterion, left + right) - impurity(criterion, left) - impurity(criterion, right)
    assert (gain >= -1e-9).all()


@pytest.mark.parametrize("criterion", [info_gain, gini])
def test_class_order_and_scale_are_nothing(criterion):
    masses = np.random.default_rng(1).random((5, 40)) * 100
    expected = impurity(criterion, masses)
    assert impurity(criterion, masses[::-1].copy()) == pytest.approx(expected, rel=1e-12)
    assert impurity(criterion, masses * 8.0) == pytest.approx(expected * 8.0, rel=1e-12)
