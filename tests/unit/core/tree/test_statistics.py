"""Sums of weights: of any size they grow by what comes, and no leaf is due for ever."""

import math
import random
from fractions import Fraction

import numpy as np
import pytest

from core.model import validate
from core.model_table import ModelTable
from core.tree import views
from core.tree.statistics import sum_of_large, weight_after
from tests.unit.core.builders import answer, schema_of, spec_of, table_of


@pytest.mark.parametrize(
    ("total", "weight"), [(1e16, 1.0), (1e16, 0.3), (1e20, 1e3), (2.0**53, 1.0), (1.0, 1e-13)]
)
def test_a_large_total_grows_by_what_comes(total, weight):
    """On average: each sum is one of the two floats around the exact one, and which one is a fair draw."""
    n, reached = 20_000, total
    for number in range(n):
        before, reached = reached, float(sum_of_large(reached, weight, number))
        exact = Fraction(before) + Fraction(weight)
        assert abs(Fraction(reached) - exact) < Fraction(math.ulp(before)) + Fraction(math.ulp(reached))
        assert before <= reached
    digit = math.ulp(total)
    share = (weight / digit) % 1.0
    deviation = digit * math.sqrt(n * share * (1.0 - share))
    assert float(Fraction(reached) - Fraction(total)) == pytest.approx(
        n * weight, abs=5.0 * deviation + digit
    )


def test_a_sum_that_is_exact_is_nobody_s_draw():
    for number in range(100):
        assert sum_of_large(2.0**53, 2.0, number) == 2.0**53 + 2.0
        assert sum_of_large(0.0, 0.1, number) == 0.1


@pytest.mark.parametrize("observed", [0.0, 5e-324, 1.0, 1e9, 1e16, 1e20, 1e300])
@pytest.mark.parametrize("weight", [1e-6, 200.0, 1e12, math.inf])
def test_the_next_attempt_is_always_later(observed, weight):
    assert weight_after(observed, weight) > observed
    assert weight_after(observed, weight) >= observed + weight


def heavy(table: ModelTable, factor: float) -> None:
    """Make everything a model has learned so many times as heavy, as records of that weight would."""
    model = table.model(0)
    tree = views.tree_view(model.plan, model.ints, model.first)
    tree.masses[:] *= factor
    tree.seen[:] *= factor
    tree.numeric[:, :, 0] *= factor  # a Gaussian's weight and sum of squares
    tree.numeric[:, :, 2] *= factor
    leaves = tree.leaf_records[: tree.block.slots]
    wait = leaves.next - leaves.observed
    leaves.observed *= factor
    leaves.evaluated *= factor
    leaves.next = leaves.observed + wait


@pytest.mark.parametrize("factor", [1e6, 1e13, 1e17])
@pytest.mark.parametrize("name", ["h-tree", "efdt", "osm", "cgd", "imac", "efdt-imac"])
def test_records_of_weight_1_go_on_to_count_behind_the_heaviest(name, factor):
    """A leaf that has seen 10**9 to 10**20 of weight attempts as often as another, neither always nor never.

    1e9 is the largest weight there is: 1e16 is ten million records of it. Heavier leaves were made by former
    releases alone; there an attempt needs at least the last digit of what the leaf has seen. Columns that are
    alike, or constant where no rival is asked, never split.
    """
    draw = np.random.default_rng(5)
    x = np.repeat(draw.random((1000, 1)) if name == "imac" else np.ones((1000, 1)), 2, axis=1)
    label = draw.integers(0, 2, 1000)
    table = table_of(schema_of(None, None), spec_of(name=name, grace_period=20, tau=0.0, delta=1e-300))
    answer(table, x, label)
    heavy(table, factor)
    model = table.model(0)
    before = model.summary().attempts
    weight = views.tree_view(model.plan, model.ints, model.first).leaf_records.observed[0]
    assert weight == pytest.approx(1000.0 * factor)
    for _ in range(4):
        answer(table, x, label)
    model = table.model(0)
    assert model.summary().leaves == 1
    tree = views.tree_view(model.plan, model.ints, model.first)
    grown, digit = tree.leaf_records.observed[0] - weight, max(math.ulp(weight), 1.0)
    assert grown == pytest.approx(4000.0, abs=6.0 * math.sqrt(4000.0 * digit) + digit)
    validate.check(model)
    made = model.summary().attempts - before
    assert made <= 4000.0 / 20.0 + 1
    if name in ("h-tree", "efdt", "osm", "cgd"):
        assert made == pytest.approx(grown / max(20.0, digit), abs=2.0 + 0.1 * 200 * (digit > 1.0))


def test_one_record_of_the_largest_weight_is_one_attempt():
    draw = np.random.default_rng(6)
    x, label = draw.random((2001, 2)), draw.integers(0, 2, 2001)
    weight = np.ones(2001)
    weight[1000] = 1e9
    table = table_of(schema_of(None, None), spec_of(tau=0.0, delta=1e-300))
    answer(table, x[:1001], label[:1001], weight[:1001])
    before = table.model(0).summary().attempts
    answer(table, x[1001:], label[1001:], weight[1001:])
    assert table.model(0).summary().attempts == before + 5


def test_totals_are_drawn_from_the_number_of_the_record_alone():
    """So a replay, and another cut of the runs, finds the same."""
    random.seed(1)
    draws = [float(sum_of_large(1e16, 1.0, number)) for number in range(64)]
    random.seed(2)
    assert draws == [float(sum_of_large(1e16, 1.0, number)) for number in range(64)]
    assert set(draws) == {1e16, 1e16 + 2.0}
