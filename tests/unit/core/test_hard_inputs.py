"""What must not break a tree, whatever its observers: nothing constant, huge, tiny, late, wide or missing."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest

from core import registry
from core.errors import SchemaError
from core.events import GrowthStopped
from core.kernels import jit
from core.model import validate
from core.model.model import Model
from core.observers.gaussian import M2, MEAN, WEIGHT
from core.schema.schema import MAX_VALUES, Attribute, Schema
from core.spec import Spec
from core.tree import views
from tests.naive.rows import OBSERVERS
from tests.unit.core.builders import answer, schema_of, spec_of, table_of

EAGER = {"grace_period": 20, "delta": 0.2, "tau": 0.3}
NAMES = [str(observer) for observer in OBSERVERS]
each_observer = pytest.mark.parametrize("observer", OBSERVERS, ids=NAMES)


def grown(schema, x, label, weight=None, **parameters):
    """Return the model after a stream, checked, restored from its bytes, and its events."""
    table = table_of(schema, spec_of(**({"leaf_model": "nba"} | EAGER | parameters)))
    answers = answer(table, x, label, weight)
    model = table.model(0)
    validate.check(model)
    assert Model.restore(model.snapshot()).snapshot() == model.snapshot()
    assert np.isfinite(answers.probability).all()
    assert (answers.probability >= 0.0).all()
    return model, answers


@each_observer
def test_constant_and_absent_attributes_are_never_tested(observer):
    draw = np.random.default_rng(0)
    n = 400
    x = np.column_stack(
        [np.full(n, 7.0), np.full(n, np.nan), draw.random(n), np.full(n, -1.0), np.full(n, 2.0)]
    )
    label = (x[:, 2] > 0.5).astype(int)
    _model, answers = grown(schema_of(None, None, None, 3, 4), x, label, **observer, binary_splits=True)
    splits = [event for event in answers.events if hasattr(event, "attribute")]
    assert splits
    assert {split.attribute for split in splits} == {2}
    constant, _ = grown(schema_of(None, None), np.full((n, 2), 3.0), label, **observer)
    assert constant.summary().leaves == 1
    absent, _ = grown(schema_of(None, 3), np.full((n, 2), np.nan), label, **observer)
    assert absent.summary().leaves == 1


@each_observer
@pytest.mark.parametrize("scale", [1e300, 1e-300, 5e-324], ids=["huge", "tiny", "denormal"])
@pytest.mark.parametrize("leaf_model", registry.names("leaf_models"))
def test_extreme_values(observer, scale, leaf_model):
    """±1e300 and denormals are values like others: finite votes, a sound tree, no warning."""
    draw = np.random.default_rng(1)
    x = np.round(draw.uniform(-5.0, 5.0, (300, 2))) * (scale if scale < 1e300 else scale / 5.0)
    grown(schema_of(None, None), x, (x[:, 0] > 0.0).astype(int), leaf_model=leaf_model, **observer)


@each_observer
def test_extreme_values_among_ordinary_ones(observer):
    draw = np.random.default_rng(2)
    x = draw.normal(size=(400, 2))
    x[::17, 0], x[5::23, 0], x[3::19, 1] = 1e300, -1e300, 5e-324
    grown(schema_of(None, None), x, (x[:, 1] > 0.0).astype(int), **observer)


@each_observer
def test_every_class_of_two_hundred(observer):
    draw = np.random.default_rng(3)
    label = draw.integers(0, 200, 600)
    label[:2] = 0, 199
    x = np.column_stack([label + draw.random(600), draw.random(600)])
    classes = tuple(f"c{i}" for i in range(200))
    schema = Schema.of([Attribute("a"), Attribute("b")], classes, max_classes=200)
    model, answers = grown(schema, x, label, **observer, grace_period=200)
    assert answers.probability.shape == (600, 200)
    assert model.evaluation().labels == 600


@pytest.mark.parametrize("name", ["h-tree", "corrh-tree", "mcdiarmid-tree", "c-tree"])
def test_two_hundred_classes_under_every_bound(name):
    draw = np.random.default_rng(4)
    label = draw.integers(0, 200, 600)
    x = (label + draw.random(600)).reshape(-1, 1)
    classes = tuple(f"c{i}" for i in range(200))
    schema = Schema.of([Attribute("a")], classes, max_classes=200)
    table = table_of(schema, Spec.parse({"learner": {"name": name, "grace_period": 100, "tau": 0.9}}))
    answer(table, x, label)
    validate.check(table.model(0))
    assert table.model(0).summary().attempts >= 4


@each_observer
def test_a_class_that_appears_late(observer):
    draw = np.random.default_rng(5)
    x = draw.random((600, 2))
    label = (x[:, 0] > 0.5).astype(int)
    late = np.arange(600) >= 400
    label[late & (x[:, 1] > 0.5)] = 2
    schema = Schema.of([Attribute("a"), Attribute("b")], ("0", "1"), classes_open=True)
    table = table_of(schema, spec_of("nba", **EAGER, **observer))
    answer(table, x[:400], label[:400])
    table.model(0).adopt(table.model(0).schema.with_class("2"))
    table.refresh(0)
    answer(table, x[400:], label[400:])
    validate.check(table.model(0))
    again = answer(table, x[400:])
    assert 2 in again.prediction


def test_a_nominal_attribute_with_6585_values():
    """Binary tests: one value against the rest. Multiway: as many leaves as fit, then growth stops."""
    draw = np.random.default_rng(6)
    x = np.column_stack([draw.integers(0, 6585, 1200), draw.random(1200)]).astype(np.float64)
    x[::2, 0] = 6584.0
    label = (x[:, 0] == 6584.0).astype(int)
    schema = schema_of(6585, None)
    model, answers = grown(schema, x, label, binary_splits=True, leaf_model="mc")
    assert model.summary().leaves == 2
    assert answers.prediction[-100:].tolist() == label[-100:].tolist()
    capped, answers = grown(schema, x, label, max_bytes=64e6, criterion="gini", grace_period=600)
    assert capped.summary().growth_stopped
    assert [event.leaves for event in answers.events if isinstance(event, GrowthStopped)] == [1]


def test_an_open_attribute_takes_in_so_many_values_and_no_more():
    schema = Schema.of([Attribute("a", "nominal", (), open=True)], ("0", "1"))
    for value in range(MAX_VALUES + 10):
        schema = schema.with_values([(0, str(value))])
    assert len(schema.attributes[0].values) == MAX_VALUES
    assert schema.value_code(0, str(MAX_VALUES + 5)) == -1


def test_fifty_thousand_attributes_of_sparse_records():
    """Every attribute has its place in a leaf; memory is bounded by the cap, at which growth stops."""
    d, n = 50_000, 60
    draw = np.random.default_rng(7)
    x = (draw.random((n, d)) < 0.001).astype(np.float64)
    label = np.arange(n) % 2
    x[:, 123] = label
    schema = Schema.of([Attribute(f"f{i}") for i in range(d)], ("0", "1"))
    leaf = 8 * 2 * 5 * d
    table = table_of(schema, spec_of("mc", **EAGER, max_bytes=leaf * 1.5))
    answers = answer(table, x, label)
    model = table.model(0)
    assert model.nbytes < 2 * leaf
    assert model.summary().growth_stopped
    assert model.evaluation().growth_stopped
    assert [event.leaves for event in answers.events] == [1]


def test_a_leaf_that_does_not_fit_at_all_is_refused_with_the_remedy():
    schema = Schema.of([Attribute(f"f{i}") for i in range(500)], ("0", "1"))
    rule = r"max_bytes=1000 must be at least \d{5}, a model of 1 leaf of 500 attributes and 2 classes; "
    with pytest.raises(SchemaError, match=rule):
        table_of(schema, spec_of(max_bytes=1000.0))


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf, 1e20, math.nextafter(1e9, math.inf)])
def test_weights_that_are_refused(bad):
    table = table_of(schema_of(None), spec_of())
    rule = f"weight={bad} of row 1 must be above 0 and at most 1e+09; scale all weights by one factor"
    with pytest.raises(SchemaError, match=re.escape(rule)):
        answer(table, [[1.0], [2.0]], [0, 1], [1.0, bad])
    assert table.model(0).summary().records == 0


@each_observer
def test_fractional_weights(observer):
    draw = np.random.default_rng(8)
    x = draw.random((500, 2))
    weight = draw.choice([1e-9, 1e-3, 0.1, 0.7, 3.3], 500)
    model, _ = grown(schema_of(None, None), x, (x[:, 0] > 0.5).astype(int), weight, **observer)
    tree = views.tree_view(model.plan, model.ints, model.first)
    assert tree.node_floats[0, 10:12].sum() > 0.0


@each_observer
def test_duplicated_rows(observer):
    x, label = np.repeat([[0.25, 1.0], [0.75, 1.0]], 200, axis=0), np.repeat([0, 1], 200)
    order = np.random.default_rng(9).permutation(400)
    model, answers = grown(schema_of(None, None), x[order], label[order], **observer)
    assert model.summary().leaves == 2
    assert (answers.prediction[-50:] == label[order][-50:]).all()


@pytest.mark.skipif(jit.DISABLED, reason="ten million records are for compiled code")
def test_ten_million_records_in_one_leaf():
    """Counts, mean and variance far from the origin, where sums of squares would have no digit left."""
    table = table_of(schema_of(None), spec_of("mc", max_leaves=1))
    x = np.tile([1e9 + 4.0, 1e9 + 7.0, 1e9 + 13.0, 1e9 + 16.0], 250_000).reshape(-1, 1)
    label = np.arange(len(x)) // 4 % 2
    for _ in range(10):
        answer(table, x, label)
    model = table.model(0)
    tree = views.tree_view(model.plan, model.ints, model.first)
    assert tree.leaf_floats[0, 1] == 1e7
    for statistics in tree.numeric[0][:, :, 0]:
        assert statistics[WEIGHT] == 5e6
        assert statistics[MEAN] == pytest.approx(1e9 + 10.0, abs=1e-5)
        assert statistics[M2] / statistics[WEIGHT] == pytest.approx(22.5, rel=1e-6)
    assert model.summary().labels == 10_000_000


@each_observer
def test_growth_stops_at_the_byte_cap_of_every_observer(observer):
    """The same leaf count whatever the cut, and the evaluation says so."""
    draw = np.random.default_rng(10)
    x = draw.random((900, 2))
    label = ((4 * x[:, 0]).astype(int) + (x[:, 1] > 0.5)) % 2
    free, _ = grown(schema_of(None, None), x, label, **observer)
    assert not free.evaluation().growth_stopped
    assert free.summary().leaves > 3
    shape = views.tree_view(free.plan, free.ints, free.first).shape
    three = shape.leaves_at - (shape.nodes - 5) * shape.node_stride + 3 * shape.leaf_stride
    cap = 8.0 * (free.first + three) + free.schema.content_bytes
    found = []
    for size in (1, 450, 900):
        table = table_of(schema_of(None, None), spec_of("nba", **EAGER, **observer, max_bytes=cap))
        for start in range(0, 900, size):
            answer(table, x[start : start + size], label[start : start + size])
        found.append(table.model(0).snapshot())
    assert found[0] == found[1] == found[2]
    capped = Model.restore(found[0])
    assert (capped.summary().leaves, capped.evaluation().growth_stopped) == (3, True)
