"""Leaves computed by hand, through the compiled ranking."""

import math

import numpy as np
import pytest

from core.layout.tree import CATEGORY, MULTIWAY, NUMERIC
from core.learners.hoeffding import ranking
from core.learners.hoeffding.branch_masses import divide
from core.learners.hoeffding.decision import tree_of
from core.tree import views
from tests.unit.core.builders import answer, schema_of, spec_of, table_of

D1 = [[30, 10], [5, 55]]
D2 = [[25, 20], [10, 45]]


def rank(model):
    """Return the ranking of a model that has one leaf."""
    out = np.full(ranking.RANKING_WORDS, np.nan)
    tree = tree_of(model, model.first)
    ranking.rank(model.plan.record, tree, tree.leaf(0), out)
    return out


def nominal_leaf(*tables, **learner):
    """Return a model whose leaf has seen these tables (rows: values, columns: classes), one per attribute.

    Only the tables' margins by class have to agree: attributes are filled class by class.
    """
    classes = len(tables[0][0])
    columns = [
        np.concatenate([np.repeat(np.arange(len(table)), [row[c] for row in table]) for c in range(classes)])
        for table in tables
    ]
    label = np.repeat(np.arange(classes), np.sum(tables[0], axis=0))
    schema = schema_of(*[len(table) for table in tables], classes=[str(c) for c in range(classes)])
    table = table_of(schema, spec_of(grace_period=1e6, **learner))
    answer(table, np.column_stack(columns), label)
    return table.model(0)


def gaussian_leaf(*values, **learner):
    """Return a model with one numeric attribute whose leaf has seen these values, one list per class."""
    x = np.concatenate(values)[:, None]
    label = np.repeat(np.arange(len(values)), [len(v) for v in values])
    schema = schema_of(None, classes=[str(c) for c in range(len(values))])
    table = table_of(schema, spec_of(grace_period=1e6, **learner))
    answer(table, x, label)
    return table.model(0)


@pytest.mark.parametrize(
    ("criterion", "best", "second"),
    [("info_gain", 0.361267, 0.111863), ("gini", 0.455 - 0.241667, 0.455 - 0.385859)],
)
def test_the_worked_leaf(criterion, best, second):
    found = rank(nominal_leaf(D1, D2, criterion=criterion))
    assert found[ranking.BEST_ATTRIBUTE] == 0
    assert found[ranking.BEST_TEST] == MULTIWAY
    assert found[ranking.BEST_MERIT] == pytest.approx(best, abs=1e-6)
    assert found[ranking.SECOND_MERIT] == pytest.approx(second, abs=1e-6)
    assert found[ranking.CLASSES] == 2
    assert found[ranking.SUGGESTIONS] == 3


def test_invariants_of_a_merit():
    """Relabelling classes or values, or multiplying all counts, changes nothing."""
    merit = rank(nominal_leaf(D1))[ranking.BEST_MERIT]
    for other in (D1[::-1], [row[::-1] for row in D1], [[7 * n for n in row] for row in D1]):
        assert rank(nominal_leaf(other))[ranking.BEST_MERIT] == pytest.approx(merit, rel=1e-12)


def test_independence_is_no_gain():
    found = rank(nominal_leaf([[10, 20], [20, 40]]))
    assert found[ranking.BEST_MERIT] <= 1e-12


def test_binary_tests_of_three_values():
    """A value against the rest beats three branches under Gini only if asked for; ties go to multiway."""
    table = [[30, 0], [0, 20], [0, 10]]
    both = rank(nominal_leaf(table, criterion="gini"))
    assert (both[ranking.BEST_TEST], both[ranking.BEST_MERIT]) == (MULTIWAY, pytest.approx(0.5))
    binary = rank(nominal_leaf(table, criterion="gini", binary_splits=True))
    assert (binary[ranking.BEST_TEST], binary[ranking.BEST_VALUE]) == (CATEGORY, 0.0)
    assert binary[ranking.BEST_MERIT] == pytest.approx(0.5)


def test_ties_between_attributes_go_to_the_first_and_moa_s_to_the_last():
    assert rank(nominal_leaf(D1, D1))[ranking.BEST_ATTRIBUTE] == 0
    assert rank(nominal_leaf(D1, D1, compat="moa"))[ranking.BEST_ATTRIBUTE] == 1


def test_the_branch_rule_is_information_gain_s_alone():
    """Of 200 only 2 go the other way: no more than one in a hundred."""
    table = [[100, 98], [0, 2]]
    found = rank(nominal_leaf(table))
    assert found[ranking.BEST_ATTRIBUTE] == ranking.NO_SPLIT
    assert found[ranking.SUGGESTIONS] == 1
    assert rank(nominal_leaf(table, criterion="gini"))[ranking.BEST_ATTRIBUTE] == 0
    assert rank(nominal_leaf([[100, 97], [0, 3]]))[ranking.BEST_ATTRIBUTE] == 0
    moa = rank(nominal_leaf(table, compat="moa"))
    assert (moa[ranking.BEST_ATTRIBUTE], moa[ranking.BEST_MERIT]) == (0, -math.inf)


def test_not_to_split_is_second_best():
    """One usable attribute: the second best has no gain, for MOA minus infinity."""
    assert rank(nominal_leaf(D1))[ranking.SECOND_MERIT] == 0.0
    assert rank(nominal_leaf(D1, compat="moa"))[ranking.SECOND_MERIT] == -math.inf
    gini = rank(nominal_leaf(D1, criterion="gini", compat="moa"))
    assert gini[ranking.BEST_MERIT] == pytest.approx(1.0 - 0.241667, abs=1e-6)
    assert gini[ranking.SECOND_MERIT] == pytest.approx(1.0 - 0.455)


def test_moa_s_gini_of_an_empty_branch_is_not_a_number_and_best():
    table = [[30, 10], [0, 0], [5, 55]]
    found = rank(nominal_leaf(table, D1, criterion="gini", compat="moa"))
    assert found[ranking.BEST_ATTRIBUTE] == 0
    assert math.isnan(found[ranking.BEST_MERIT])


def test_a_pure_leaf_is_not_ranked():
    found = rank(nominal_leaf([[30, 0], [5, 0]]))
    assert found[ranking.CLASSES] == 1
    assert np.isnan(found[: ranking.CLASSES]).all()


def test_the_worked_gaussian():
    """Candidates 4 and 7 tie exactly, up to rounding: the merit is asserted, not the index."""
    model = gaussian_leaf([1.0, 2.0, 3.0, 4.0], [3.0, 4.0, 5.0, 6.0])
    found = rank(model)
    assert found[ranking.BEST_TEST] == NUMERIC
    assert found[ranking.BEST_MERIT] == pytest.approx(0.393414, abs=1e-6)
    assert found[ranking.BEST_VALUE] == pytest.approx(2.818182, abs=1e-6) or found[
        ranking.BEST_VALUE
    ] == pytest.approx(4.181818, abs=1e-6)
    gini = rank(gaussian_leaf([1.0, 2.0, 3.0, 4.0], [3.0, 4.0, 5.0, 6.0], criterion="gini"))
    assert gini[ranking.BEST_MERIT] == pytest.approx(0.5 - 0.287070, abs=1e-6)


def masses(model, value):
    tree = tree_of(model, model.first)
    return divide(model.plan.record, tree, tree.leaf_of(tree.root), 0, NUMERIC, value)


def test_masses_of_a_threshold():
    """-1 marks a class that a side has never seen anything of."""
    model = gaussian_leaf([1.0, 2.0, 3.0, 4.0], [3.0, 4.0, 5.0, 6.0])
    fourth, fifth = 1.0 + 5.0 / 11.0 * 4, 1.0 + 5.0 / 11.0 * 5
    assert masses(model, fourth)[:, 0] == pytest.approx([2.389352, 4.0 - 2.389352], abs=1e-6)
    assert masses(model, fourth)[:, 1].tolist() == [-1.0, 4.0]
    assert masses(model, fifth)[0] == pytest.approx([2.901057, 0.683573], abs=1e-6)
    assert masses(model, 6.0)[:, 1].tolist() == [4.0, -1.0]


def test_mass_goes_left_as_the_threshold_rises():
    rng = np.random.default_rng(3)
    model = gaussian_leaf(rng.normal(size=200), rng.normal(1.0, 2.0, size=100), rng.random(50))
    left = []
    for value in np.linspace(-4.0, 6.0, 101):
        both = np.maximum(masses(model, value), 0.0)
        assert both.sum(axis=0) == pytest.approx([200.0, 100.0, 50.0])
        left.append(both[0])
    assert (np.diff(left, axis=0) >= 0.0).all()


def test_the_same_constant_on_all_values_moves_the_threshold_by_it():
    values = [1.0, 2.0, 3.0, 4.0], [3.0, 4.0, 5.0, 6.0]
    here = rank(gaussian_leaf(*values))
    there = rank(gaussian_leaf(*[[v + 1024.0 for v in side] for side in values]))
    assert there[ranking.BEST_VALUE] - here[ranking.BEST_VALUE] == pytest.approx(1024.0)
    assert there[ranking.BEST_MERIT] == pytest.approx(here[ranking.BEST_MERIT], rel=1e-9)


def test_large_offsets_keep_the_variance():
    """Sums of squares would give -170.67 here, Welford's update 30."""
    model = gaussian_leaf([1e9 + 4, 1e9 + 7, 1e9 + 13, 1e9 + 16], [0.0, 1.0])
    statistics = views.tree_view(model.plan, model.ints, model.first).numeric[0, 0, :, 0]
    assert statistics.tolist() == [4.0, 1e9 + 10, 90.0, 1e9 + 4, 1e9 + 16]


def test_a_constant_attribute_has_no_suggestion():
    found = rank(gaussian_leaf([5.0, 5.0], [5.0]))
    assert found[ranking.BEST_ATTRIBUTE] == ranking.NO_SPLIT
    assert found[ranking.SUGGESTIONS] == 1
    assert found[ranking.SECOND_MERIT] == -math.inf


def test_missing_values_count_in_no_merit():
    """Merits come from what an attribute has seen itself: unknown values weaken neither side [2.9]."""
    x = np.array([[0.0], [0.0], [1.0], [1.0], [np.nan], [-1.0], [np.nan]])
    table = table_of(schema_of(2), spec_of(grace_period=1e6))
    answer(table, x, [0, 0, 1, 1, 1, 1, 1])
    assert rank(table.model(0))[ranking.BEST_MERIT] == pytest.approx(1.0)


def test_weights_are_repetition():
    rng = np.random.default_rng(0)
    x = np.column_stack([rng.normal(size=60), rng.integers(0, 3, 60)])
    label, times = rng.integers(0, 3, 60), rng.integers(1, 4, 60)
    schema = schema_of(None, 3, classes="abc")
    weighted, repeated = (table_of(schema, spec_of(grace_period=1e6)) for _ in range(2))
    answer(weighted, x, label, times)
    answer(repeated, np.repeat(x, times, axis=0), np.repeat(label, times))
    assert rank(weighted.model(0)) == pytest.approx(rank(repeated.model(0)), rel=1e-9, nan_ok=True)


def test_classes_that_a_leaf_has_not_met_change_no_ranking_of_thresholds():
    draw = np.random.default_rng(5)
    met = [draw.normal(mean, 1.0, 40) for mean in (0.0, 0.7, 3.0)]
    few = rank(gaussian_leaf(*met))
    many = rank(gaussian_leaf([], met[0], [], [], met[1], met[2]))
    np.testing.assert_array_equal(few, many)


def test_classes_that_a_leaf_has_not_met_change_no_ranking_of_values():
    table = np.random.default_rng(6).integers(0, 30, size=(7, 3))
    other = np.zeros((7, 6), dtype=table.dtype)
    other[:, [1, 2, 5]] = table
    np.testing.assert_array_equal(rank(nominal_leaf(table)), rank(nominal_leaf(other)))
