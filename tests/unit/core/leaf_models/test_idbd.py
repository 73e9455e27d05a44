"""IDBD units at the leaves of a tree: what they learn, what a weight is, what a new leaf begins with."""

import numpy as np
import pytest

from core.events import Split
from core.leaf_models import idbd
from core.tree import views
from tests.naive.idbd import Units
from tests.naive.tree import Options
from tests.unit.core.builders import answer, schema_of, spec_of, table_of

NEVER = {"grace_period": 1e9}


def sections(model, slot=0):
    tree = views.tree_view(model.plan, model.ints, model.first)
    return [section[slot].copy() for section in tree.leaf_model]


def diagonal(n, seed=0):
    """Return two attributes of different scales whose scaled sum says which class it is."""
    x = np.random.default_rng(seed).normal(size=(n, 2)) * [1.0, 1000.0] + [0.0, 5e6]
    return x, (x[:, 0] + (x[:, 1] - 5e6) / 1000.0 > 0.0).astype(np.int32)


def test_a_line_across_two_attributes_is_learned_without_a_split():
    x, label = diagonal(4000)
    answers = {
        model: answer(table_of(schema_of(None, None), spec_of(model, **NEVER)), x, label)
        for model in ("idbd", "mc")
    }
    right = {model: (answered.prediction == label)[1000:].mean() for model, answered in answers.items()}
    assert right["idbd"] > 0.95
    assert right["mc"] < 0.6


def test_no_label_no_weights_votes_of_the_majority():
    table = table_of(schema_of(None, None), spec_of("idbd", **NEVER))
    x, label = diagonal(1)
    answers = answer(table, x, label)
    assert answers.prediction.tolist() == [0]
    assert answers.probability.tolist() == [[0.0, 0.0]]


@pytest.mark.parametrize("weight", [3.0, 2.5, 200.0])
def test_a_weight_is_so_many_records(weight):
    """Up to 64 steps; what is left of a record's weight widens the scale alone."""
    x, label = diagonal(60)
    table = table_of(schema_of(None, None), spec_of("idbd", **NEVER))
    answer(table, x, label, np.full(60, weight))
    twin, options = Units(), Options((None, None), 2)
    for row, y in zip(x.tolist(), label.tolist(), strict=True):
        twin.learn(options, row, y, weight, 2)
    scale, bias, numeric, _ = sections(table.model(0))
    assert scale[0].tolist() == [60 * weight] * 2
    for c in range(2):
        assert bias[c].tolist() == pytest.approx(twin.unit(c, ()), rel=1e-6, abs=1e-9)
        for a in range(2):
            assert numeric[c][:, a].tolist() == pytest.approx(twin.unit(c, a), rel=1e-6, abs=1e-9)
    if weight == 3.0:
        again = table_of(schema_of(None, None), spec_of("idbd", **NEVER))
        answer(again, np.repeat(x, 3, axis=0), np.repeat(label, 3))
        for one, other in zip(sections(table.model(0)), sections(again.model(0)), strict=True):
            assert one == pytest.approx(other, rel=1e-9, abs=1e-12)


def test_new_leaves_begin_with_the_units_of_the_one_that_was_split():
    x, label = diagonal(3000)
    table = table_of(schema_of(None, None), spec_of("idbd", grace_period=100, delta=0.1, tau=0.3))
    for i in range(len(label)):
        before = sections(table.model(0))
        events = answer(table, x[i : i + 1], label[i : i + 1]).events
        if events:
            break
    assert isinstance(events[0], Split)
    model = table.model(0)
    tree = views.tree_view(model.plan, model.ints, model.first)
    for child in (1, 2):
        scale, bias, numeric, _ = sections(model, int(tree.nodes.slot[child]))
        assert scale[idbd.WEIGHT].tolist() == [idbd.KEPT] * 2
        assert scale[idbd.MEAN] == pytest.approx(before[0][idbd.MEAN], rel=1e-6, abs=0.02)
        assert (bias[:, idbd.TRACES] == 0.0).all()
        assert (numeric[:, idbd.TRACES] == 0.0).all()
        assert numeric[:, 0] == pytest.approx(before[2][:, 0], abs=0.2)
        assert np.abs(numeric[:, 0]).min() > 0.05, "weights were inherited, not begun anew"


def test_nominal_values_are_inputs_of_their_own():
    draw = np.random.default_rng(4)
    x = draw.integers(0, 3, (3000, 2)).astype(float)
    label = ((x[:, 0] == 2) | (x[:, 1] == 2)).astype(np.int32)
    answers = answer(table_of(schema_of(3, 3), spec_of("idbd", **NEVER)), x, label)
    assert (answers.prediction == label)[1000:].mean() > 0.97


def test_a_missing_value_says_nothing():
    x, label = diagonal(500)
    table = table_of(schema_of(None, None), spec_of("idbd", **NEVER))
    answer(table, x, label)
    before = sections(table.model(0))
    answer(table, np.full((1, 2), np.nan), np.array([1], np.int32))
    after = sections(table.model(0))
    assert np.array_equal(before[0], after[0])
    assert np.array_equal(before[2], after[2])
    assert not np.array_equal(before[1], after[1]), "the bias learns it"
