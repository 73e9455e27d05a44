"""The columns of the worked leaf, criterion by criterion."""

import numpy as np
import pytest

from core import registry
from core.criteria import entropy, error, gini, info_gain, km, sorted_error
from tests.naive.criteria import IMPURITIES, REACHES

# The published fault of one of them breaks what holds of all others: it has a test of its own.
EVERY = [module for module in registry.modules("criteria") if module is not sorted_error]
ANY_CLASSES = [module for module in EVERY if module is not km]

D2 = np.array([[25.0, 20.0], [10.0, 45.0]]).T.copy()
D1 = np.array([[30.0, 10.0], [5.0, 55.0]]).T.copy()  # float64[class, branch]
PARENT = np.array([[35.0], [65.0]])


def impurity(criterion, masses):
    k, n = masses.shape
    out, total = np.empty(n), np.empty(n)
    criterion.impurity(masses, k, n, out, total)
    assert total == pytest.approx(masses.sum(axis=0))
    return out


@pytest.mark.parametrize(
    ("criterion", "parent", "conditional", "difference"),
    [
        (info_gain, 0.934068, 0.934068 - 0.361267, 0.249404),
        (gini, 0.455, 0.241667, 0.144192),
        (km, 0.476970, 0.339036, 0.096703),
        (entropy, 0.323723, 0.198518, 0.086437),
        (error, 0.35, 0.15, 0.15),
    ],
)
def test_the_worked_leaf(criterion, parent, conditional, difference):
    assert impurity(criterion, PARENT)[0] / 100.0 == pytest.approx(parent, abs=1e-6)
    better, worse = (impurity(criterion, masses).sum() / 100.0 for masses in (D1, D2))
    assert better == pytest.approx(conditional, abs=1e-6)
    assert worse - better == pytest.approx(difference, abs=1e-6)


def test_the_units_of_entropy():
    """bits = 2·H½ / ln 2."""
    scale = 2.0 / np.log(2.0)
    assert impurity(info_gain, D1) == pytest.approx(scale * impurity(entropy, D1), rel=1e-12)
    for kernel, arguments in (
        ("deviation", (700.0, 0.01, 3)),
        ("growth", (700.0,)),
        ("sensitivity", (700.0, 3, False)),
    ):
        bits, nats = (getattr(module, kernel)(*arguments) for module in (info_gain, entropy))
        assert bits == pytest.approx(scale * nats, rel=1e-12)
    assert info_gain.reach(5) == pytest.approx(scale * entropy.reach(5), rel=1e-12)


def test_gini_and_error_merits_of_moa():
    for criterion, masses, merit in (
        (gini, D1, 0.758333),
        (gini, D2, 0.614141),
        (error, D1, 0.85),
        (error, D2, 0.7),
    ):
        assert 1.0 - impurity(criterion, masses).sum() / 100.0 == pytest.approx(merit, abs=1e-6)


def test_branches_with_the_majority_of_the_leaf_gain_nothing_in_error():
    """The weakness that CDT names: [[30,10],[20,5]], section 6."""
    branches = np.array([[30.0, 10.0], [20.0, 5.0]]).T.copy()
    parent = branches.sum(axis=1, keepdims=True)
    assert impurity(error, branches).sum() == impurity(error, parent)[0]
    assert impurity(gini, branches).sum() < impurity(gini, parent)[0]


@pytest.mark.parametrize("name", registry.names("criteria"))
def test_the_twin_of_a_criterion(name):
    module = registry.module("criteria", name)
    k = module.Plugin.max_classes or 4
    masses = np.random.default_rng(3).random((k, 200)) * 50
    expected = [column.sum() * IMPURITIES[name](column.tolist()) for column in masses.T]
    assert impurity(module, masses) == pytest.approx(expected, rel=1e-9, abs=1e-9)
    for classes in (1, 2, k):
        assert module.reach(classes) == pytest.approx(REACHES[name](classes), rel=1e-15)
        assert module.Plugin().merit_range(classes) == pytest.approx(REACHES[name](classes), rel=1e-15)


def test_one_class_alone_is_pure():
    for module in EVERY:
        assert impurity(module, np.array([[3.0, 8.0]])) == pytest.approx([0.0, 0.0], abs=1e-12)


@pytest.mark.parametrize("criterion", EVERY)
def test_empty_and_pure_columns_have_none(criterion):
    assert impurity(criterion, np.array([[0.0, 7.0], [0.0, 0.0]])) == pytest.approx([0.0, 0.0], abs=1e-12)


def test_a_branch_without_the_second_class_is_all_wrong_to_the_sorted_error():
    assert impurity(sorted_error, np.array([[3.0, 8.0]])).tolist() == [3.0, 8.0]
    masses = np.array([[7.0, 0.0, 30.0, 5.0], [0.0, 7.0, 10.0, 20.0]])
    assert impurity(sorted_error, masses).tolist() == [7.0, 0.0, 10.0, 5.0]


@pytest.mark.parametrize("criterion", ANY_CLASSES)
def test_splitting_never_adds_impurity(criterion):
    rng = np.random.default_rng(0)
    left, right = rng.integers(0, 50, (2, 4, 1000)).astype(np.float64)
    gain = impurity(criterion, left + right) - impurity(criterion, left) - impurity(criterion, right)
    assert (gain >= -1e-9).all()


@pytest.mark.parametrize("criterion", EVERY)
def test_class_order_and_scale_are_nothing(criterion):
    masses = np.random.default_rng(1).random((2 if criterion is km else 5, 40)) * 100
    expected = impurity(criterion, masses)
    assert impurity(criterion, masses[::-1].copy()) == pytest.approx(expected, rel=1e-12)
    assert impurity(criterion, masses * 8.0) == pytest.approx(expected * 8.0, rel=1e-12)
