"""C4.5 against its naive twin, against scikit-learn's unpruned tree, and against Quinlan's numbers."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.batch import _pruning as pruning
from core.batch.c45 import C45, C45Tree
from core.errors import GroveError
from tests.naive import c45 as naive

GOLDEN = Path(__file__).parents[3] / "golden" / "sklearn_trees.json"


def outline(tree: C45Tree, node: int = 0):
    """A tree as nested tuples, as the naive one gives it."""
    if tree.attribute[node] < 0:
        return (int(tree.label[node]), tuple(map(int, tree.counts[node])))
    first = tree.first[node]
    below = (outline(tree, child) for child in range(first, first + tree.children[node]))
    return (int(tree.attribute[node]), float(tree.threshold[node]), *below)


# Pruning: the numbers of the book


def u_25(n: int, errors: int) -> float:
    """The upper limit U_25% of the error rate, as the book writes it with its arguments swapped."""
    return (errors + pruning.added(n, errors, 0.25, pruning.squared_deviation(0.25))) / n


def test_upper_limits_are_those_of_quinlans_book():
    """Chapter 4, the congressional votes: leaves of 6, 9 and 1 records, together 16 with 1 error."""
    assert u_25(6, 0) == pytest.approx(0.206, abs=5e-4)
    assert u_25(9, 0) == pytest.approx(0.143, abs=5e-4)
    assert u_25(1, 0) == 0.75
    assert u_25(16, 1) == pytest.approx(0.157, abs=5e-4)
    assert 6 * u_25(6, 0) + 9 * u_25(9, 0) + 1 * u_25(1, 0) == pytest.approx(3.273, abs=2e-3)
    assert 16 * u_25(16, 1) == pytest.approx(2.512, abs=6e-3)


def weka(n: float, errors: float, z: float) -> float:
    """Weka's Stats.addErrs for at least one error and not nearly all, with the exact normal deviate."""
    f = (errors + 0.5) / n
    spread = z * math.sqrt(f / n - f * f / n + z * z / (4 * n * n))
    return (f + z * z / (2 * n) + spread) / (1 + z * z / n) * n - errors


@pytest.mark.parametrize(("n", "errors"), [(16, 1), (10, 4), (200, 37), (5, 2), (1000, 1)])
def test_added_errors_are_wekas_but_for_the_deviate(n: int, errors: int):
    """C4.5 interpolates 0.6925 in a table where the normal deviate of 25 % is 0.6745."""
    assert pruning.squared_deviation(0.25) == pytest.approx(0.6925**2)
    assert pruning.added(n, errors, 0.25, 0.6744897501960817**2) == pytest.approx(
        weka(n, errors, 0.6744897501960817), rel=1e-12
    )
    ours = pruning.added(n, errors, 0.25, pruning.squared_deviation(0.25))
    assert ours == pytest.approx(weka(n, errors, 0.6745), rel=0.03)


def test_one_error_among_few_is_the_exact_binomial_limit_nearly():
    """U solves P(at most e errors of n | U) = CF; the approximation is within 0.01 of it."""
    for n, errors in ((16, 1), (40, 5), (100, 30)):
        u = u_25(n, errors)
        tail = sum(math.comb(n, i) * u**i * (1 - u) ** (n - i) for i in range(errors + 1))
        assert tail == pytest.approx(0.25, abs=0.02)


@pytest.mark.parametrize("confidence", [0.001, 0.1, 0.25, 0.3, 0.5])
def test_added_errors_are_those_of_the_twin(confidence: float):
    square = pruning.squared_deviation(confidence)
    for n in (1, 2, 5, 17, 400):
        for errors in range(n + 1):
            got = pruning.added(n, errors, confidence, square)
            assert got == pytest.approx(naive.added_errors(n, errors, confidence), rel=1e-12, abs=1e-12)


def test_quinlans_subtree_becomes_a_leaf():
    """The same tree from data: branches of 6 and 9 democrats and 1 republican become a leaf of 16."""
    x = np.array([[0.0]] * 6 + [[1.0]] * 9 + [[2.0]])
    y = np.array([0] * 15 + [1])
    grown = C45(min_records=1, prune=False).fit(x, y, values=[3])
    assert grown.leaves == 3
    assert C45(min_records=1).fit(x, y, values=[3]).leaves == 1


# Growing


def test_a_test_lies_in_the_middle_and_equal_values_go_left():
    tree = C45(prune=False).fit(np.array([[1.0], [2.0], [4.0], [8.0]]), np.array([0, 0, 1, 1]))
    assert outline(tree) == (0, 3.0, (0, (2, 0)), (1, (0, 2)))
    assert tree.predict(np.array([[3.0], [3.0000001], [np.nan]])).tolist() == [0, 1, 0]


def test_neighbours_in_float64_have_a_threshold_between_them():
    low = 1.0
    high = np.nextafter(low, 2.0)
    x = np.array([[low], [low], [high], [high]])
    tree = C45(prune=False).fit(x, np.array([0, 0, 1, 1]))
    assert tree.predict(x).tolist() == [0, 0, 1, 1]
    huge = np.array([[-1.7e308], [-1.7e308], [1.7e308], [1.7e308]])
    assert C45(prune=False).fit(huge, np.array([0, 0, 1, 1])).threshold[0] == 0.0


def test_a_branch_has_two_records_at_least():
    x, y = np.arange(6.0)[:, None], np.array([1, 0, 0, 0, 0, 0])
    assert outline(C45(prune=False).fit(x, y)) == (0, 1.5, (0, (1, 1)), (0, (4, 0)))
    assert outline(C45(prune=False, min_records=1).fit(x, y)) == (0, 0.5, (1, (0, 1)), (0, (5, 0)))


def test_ties_go_to_the_first_attribute_and_the_smallest_threshold():
    y = np.array([0, 0, 1, 1])
    x = np.arange(4.0)
    assert C45(prune=False).fit(np.stack((x, x), axis=1), y).attribute[0] == 0
    assert C45(prune=False).fit(np.stack((0 * x, -x, x), axis=1), y).attribute[0] == 1
    mirrored = np.array([0, 0, 1, 1, 0, 0])
    assert C45(prune=False).fit(np.arange(6.0)[:, None], mirrored).threshold[0] == 1.5


def test_nothing_to_gain_makes_no_split():
    exclusive_or = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]] * 3)
    y = np.array([0, 1, 1, 0] * 3)
    assert C45(prune=False).fit(exclusive_or, y).leaves == 1
    assert C45().fit(np.zeros((5, 2)), np.array([0, 1, 0, 1, 0])).leaves == 1


def test_the_gain_ratio_passes_over_an_attribute_of_many_values():
    """The key of a record has all of the gain, and a ratio that is lower than that of what matters."""
    rng = np.random.default_rng(1)
    y = rng.integers(0, 2, 64)
    useful = np.where(rng.random(64) < 0.05, 1 - y, y)
    x = np.stack((np.arange(64), useful, rng.integers(0, 2, 64)), axis=1).astype(float)
    by_gain = C45(prune=False, min_records=1).fit(x, y, values=[64, 2, 2])
    by_ratio = C45(prune=False, min_records=1, gain_ratio=True).fit(x, y, values=[64, 2, 2])
    assert by_gain.attribute[0] == 0
    assert by_ratio.attribute[0] == 1


def test_an_empty_branch_predicts_what_its_parent_does():
    x = np.array([[0.0]] * 4 + [[1.0]] * 3)
    tree = C45(prune=False).fit(x, np.array([1] * 4 + [0] * 3), values=[3])
    assert tree.predict(np.array([[0.0], [1.0], [2.0], [7.0], [np.nan]])).tolist() == [1, 0, 1, 1, 1]


def test_labels_of_three_classes_and_one_that_never_occurs():
    x = np.arange(9.0)[:, None]
    tree = C45(prune=False).fit(x, np.repeat([2, 0, 1], 3), classes=5)
    assert tree.counts.shape == (5, 5)
    assert tree.predict(x).tolist() == np.repeat([2, 0, 1], 3).tolist()


def test_a_deep_tree_has_room():
    n = 300
    x = np.arange(float(n))[:, None]
    y = np.arange(n) // 2 % 2
    tree = C45(prune=False).fit(x, y)
    assert (tree.predict(x) == y).all()
    assert tree.leaves == n // 2
    assert C45().fit(x, y).leaves <= tree.leaves


@pytest.mark.parametrize(
    ("parameters", "x", "y", "values", "message"),
    [
        ({"min_records": 0}, [[1.0]], [0], [], "min_records=0 must be at least 1"),
        ({"confidence": 0.6}, [[1.0]], [0], [], "confidence=0.6 must be above 0 and at most 0.5"),
        ({}, [[1.0]], [-1], [], "y=-1 must be a class code"),
        ({}, [[1.0], [np.inf]], [0, 1], [], "must be finite or NaN"),
        ({}, [[3.0]], [0], [3], "must have codes from 0 to 2"),
        ({}, [[3.0]], [0], [0, 2], "must hold the number of values of each of 1 attributes"),
        ({}, np.zeros((0, 2)), [], [], "n and d at least 1"),
    ],
)
def test_what_no_tree_can_be_made_of_is_refused(parameters, x, y, values, message):
    with pytest.raises(GroveError, match=message):
        C45(**parameters).fit(np.array(x), np.array(y, dtype=int), values)


# Twins


@st.composite
def records(draw):
    """Few distinct values, so that there are ties; missing values; nominal and numeric attributes."""
    n, classes = draw(st.integers(2, 40)), draw(st.integers(2, 3))
    kinds = draw(st.lists(st.sampled_from([0, 0, 2, 3]), min_size=1, max_size=4))
    seed = draw(st.integers(0, 2**32 - 1))
    rng = np.random.default_rng(seed)
    y = rng.integers(0, classes, n)
    columns = []
    for values in kinds:
        column = rng.integers(0, values or draw(st.sampled_from([2, 5, 100])), n).astype(float)
        follows = rng.random(n) < draw(st.sampled_from([0.0, 0.6]))
        column[follows] = np.minimum(y, max(values, 2) - 1)[follows]
        column[rng.random(n) < draw(st.sampled_from([0.0, 0.0, 0.3]))] = np.nan
        columns.append(column)
    return np.stack(columns, axis=1), y, kinds, classes


@given(records(), st.integers(1, 3), st.booleans(), st.sampled_from([None, 0.05, 0.25, 0.5]), st.booleans())
def test_the_tree_is_that_of_the_naive_twin(data, least, ratio, confidence, raising):
    x, y, kinds, classes = data
    slow = naive.C45(x, y, kinds, classes, least, ratio, confidence, raising)
    chosen = {"confidence": confidence} if confidence is not None else {"prune": False}
    tree = C45(min_records=least, gain_ratio=ratio, raising=raising, **chosen).fit(x, y, kinds, classes)
    assert outline(tree) == slow.root.outline()
    assert tree.predict(x).tolist() == [slow.predict(row) for row in x]


def test_raising_happens():
    """Trees that are smaller with raising than without, so that the twin test has something to find."""
    n_raised = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        x, y = rng.normal(size=(60, 3)), rng.integers(0, 2, 60)
        y = np.where(rng.random(60) < 0.7, (x[:, 0] > 0).astype(int), y)
        n_raised += outline(C45().fit(x, y)) != outline(C45(raising=False).fit(x, y))
    assert n_raised > 3


def test_unpruned_trees_are_those_of_scikit_learn():
    """tests/golden/sklearn_trees.py: one attribute to the end, several down to a depth at which none ties."""
    for case in json.loads(GOLDEN.read_text()):
        x, y = np.array(case["x"]), np.array(case["y"])
        tree = C45(prune=False, min_records=case["min_samples_leaf"]).fit(x, y)
        assert cut(outline(tree), case["max_depth"]) == to_tuples(case["tree"])


def cut(tree, depth):
    """A tree down to a depth, with the class counts of what is cut off."""
    if len(tree) == 2:
        return tree[1]
    if depth == 0:
        return tuple(map(sum, zip(*leaf_counts(tree), strict=True)))
    return (*tree[:2], *(cut(child, None if depth is None else depth - 1) for child in tree[2:]))


def leaf_counts(tree):
    return [tree[1]] if len(tree) == 2 else [counts for child in tree[2:] for counts in leaf_counts(child)]


def to_tuples(nested):
    return tuple(to_tuples(item) if isinstance(item, list) else item for item in nested)
