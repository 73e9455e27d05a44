"""Boosted trees: committees by class, bytes, explanations, outlines, attributes that come later."""

import numpy as np
import pytest

from core.errors import GroveError
from core.events import GrowthStopped
from core.export.outline import answering
from core.kernels import jit
from core.learners.sgbt.blocks import boosting_at
from core.model import validate
from core.model.model import Model
from core.model_table import ANSWER_ONLY
from core.schema.schema import Attribute, Schema
from core.spec import Spec
from core.tree.conditions import BESIDE
from tests.naive.rows import late_classes, mixed, numeric
from tests.unit.core.builders import answer, schema_of, table_of


def sgbt(**learner):
    body = {"name": "sgbt", "members": 6, "learning_rate": 0.1} | learner
    return Spec.parse({"learner": body, "evaluation": {"every": 0, "window": 10}})


def trees_of(model):
    return int(boosting_at(model.ints, model.first).trees)


def test_it_learns_a_sum_of_two_attributes():
    rows = numeric(2000)
    answers = answer(table_of(rows.schema(), sgbt(members=20)), rows.x, rows.y)
    assert (answers.prediction == rows.y)[1000:].mean() > 0.8  # one label in ten is flipped


def test_two_classes_have_one_committee_and_more_have_one_each():
    """The fifth class has not come yet: it has no trees."""
    rows = late_classes(1500).first(1300)
    table = table_of(rows.schema(known=2), sgbt(members=4))
    answer(table, rows.x[:40], rows.y[:40] % 2)
    assert trees_of(table.model(0)) == 4
    table = table_of(rows.schema(known=5), sgbt(members=4))
    answer(table, rows.x[1100:], rows.y[1100:])
    model = table.model(0)
    assert trees_of(model) == 16
    validate.check(model)
    assert Model.restore(model.snapshot()).snapshot() == model.snapshot()


def test_a_class_that_comes_late_is_learned():
    random = np.random.default_rng(1)
    y = random.integers(0, 3, 900)
    y[:300] = np.minimum(y[:300], 1)
    x = random.normal(0.0, 0.5, (900, 3)) + 3.0 * np.eye(3)[y]
    schema = Schema.of([Attribute(f"a{i}") for i in range(3)], classes_open=True)
    schema = schema.with_class("0").with_class("1")
    table = table_of(schema, sgbt())
    answer(table, x[:300], y[:300])
    table.model(0).adopt(schema.with_class("2"))
    table.refresh(0)
    answers = answer(table, x[300:], y[300:])
    assert (answers.prediction == y[300:])[100:].mean() > 0.9
    validate.check(table.model(0))


def test_shares_follow_the_scores_of_both_classes():
    rows = numeric(300)
    table = table_of(rows.schema(), sgbt())
    answer(table, rows.x, rows.y)
    shares = answer(table, rows.x, mode=ANSWER_ONLY).probability
    assert shares.sum(axis=1) == pytest.approx(1.0)
    assert len(np.unique(shares[:, 0].round(6))) > 3


def test_trees_stop_at_the_cap_and_go_on_answering():
    rows = mixed(900)
    spec = sgbt(max_bytes=60_000)
    table = table_of(rows.schema(), spec)
    answers = answer(table, rows.x, rows.y)
    model = table.model(0)
    assert model.nbytes <= 60_000
    assert model.summary().growth_stopped
    assert [type(event) for event in answers.events] == [GrowthStopped]
    validate.check(model)


@pytest.mark.skipif(jit.DISABLED, reason="20,000 records are for compiled code")
@pytest.mark.parametrize("alternates", [True, False])
@pytest.mark.parametrize("data", [mixed, numeric, late_classes])
def test_at_every_cap_a_model_keeps_its_bounds_after_each_record(data, alternates):
    """Near a cap more may be wanted than fits: roots, splits and alternate trees of one record."""
    rows = data(300)
    rows.y[150:] = (rows.y[150:] + 1) % rows.classes
    stopped = 0
    for cap in range(110_000, 410_000, 25_000):
        spec = sgbt(members=8, drift_threshold=2.0, grace_period=10, delta=0.5, tau=0.9, max_bytes=cap)
        table = table_of(rows.schema(), spec)
        for n in range(300):
            answer(table, rows.x[n : n + 1], rows.y[n : n + 1])
            model = table.model(0)
            # A class that is declared and has not come takes bytes that no limit counts.
            assert model.nbytes <= cap or data is late_classes
            boosting = boosting_at(model.ints, model.first)
            assert boosting.nodes <= boosting.node_capacity
            assert boosting.leaves <= boosting.leaf_capacity
        validate.check(model)
        assert Model.restore(model.snapshot()).snapshot() == model.snapshot()
        stopped += model.summary().growth_stopped
    assert stopped, "no cap was reached"


def test_a_path_begins_with_a_member_and_ends_in_its_leaf():
    rows = numeric(600)
    table = table_of(rows.schema(), sgbt())
    answer(table, rows.x, rows.y)
    model = table.model(0)
    path = model.explain(rows.x[0])
    assert path[0].attribute == "member"
    for branch in path[1:]:
        value = rows.x[0][int(branch.attribute.removeprefix("a"))]
        assert (value <= branch.value) == (branch.operator == "<=")


def drifting():
    """Return rows whose classes change places in the middle, and a spec whose trees soon notice it."""
    rows = mixed(400)
    rows.y[200:] = (rows.y[200:] + 1) % rows.classes
    return rows, sgbt(members=3, drift_threshold=5.0, switch_period=50.0, drop_period=300.0)


@pytest.fixture(scope="module")
def drifted():
    """Return the snapshot of a model in which alternate trees grow."""
    rows, spec = drifting()
    table = table_of(rows.schema(), spec)
    answer(table, rows.x, rows.y)
    return table.model(0).snapshot()


def alternates_of(model):
    return int(boosting_at(model.ints, model.first).alternates)


@pytest.mark.parametrize("depth", [None, 0, 1, 3])
def test_an_outline_has_all_leaves_whatever_its_depth(drifted, depth):
    model = Model.restore(drifted)
    assert alternates_of(model) > 0
    nodes = list(model.plan.blocks.outline(model, model.first, depth))
    leaves = sum(node.leaves_below or node.is_leaf for node in answering(nodes))
    assert leaves == model.summary().leaves
    assert {child for node in nodes for child in node.children} == {node.number for node in nodes} - {0}
    beside = [node for node in nodes if node.branch is not None and node.branch.operator == BESIDE]
    assert len(beside) == (alternates_of(model) if depth is None else len(beside))


def test_bytes_of_subtrees_that_were_replaced_are_used_again():
    """The classes change places again and again; the records in use and those ever used stay few."""
    rows, spec = drifting()
    table = table_of(rows.schema(), spec)
    for turn in range(5):
        answer(table, rows.x, (rows.y + turn) % rows.classes)
        validate.check(table.model(0))
        assert table.model(0).scale().nodes == table.model(0).summary().nodes
    boosting = boosting_at(table.model(0).ints, table.model(0).first)
    assert 2 * boosting.splits > 1.5 * boosting.nodes > 1.5 * boosting.live_nodes


def test_no_alternate_tree_begins_without_bytes():
    rows, _ = drifting()
    spec = sgbt(members=3, drift_threshold=2.0, max_bytes=40_000)
    table = table_of(rows.schema(), spec)
    answer(table, rows.x, rows.y)
    model = table.model(0)
    assert model.nbytes <= 40_000
    assert alternates_of(model) == 0
    assert model.summary().growth_stopped
    validate.check(model)


@pytest.mark.parametrize(
    ("word", "value", "problem"),
    [
        ("alternates", 7, "alternate tree must stand beside"),
        ("nodes_beside", 1, "alternate tree must stand beside"),
        ("free_node", 0, "chains of free records"),
        ("free_leaf", 0, "chains of free records"),
        ("live_nodes", -1, "live_nodes must be"),
        ("live_leaves", 5, "leaf record"),
    ],
)
def test_foreign_chains_are_refused(drifted, word, value, problem):
    model = Model.restore(drifted)
    setattr(boosting_at(model.ints, model.first), word, value)
    with pytest.raises(GroveError, match=problem):
        validate.check(model)


@pytest.mark.parametrize(("word", "value"), [("alternate", 0), ("depth", 9), ("beside", 0), ("parent", -1)])
def test_a_foreign_alternate_tree_is_refused(drifted, word, value):
    model = Model.restore(drifted)
    boosting = boosting_at(model.ints, model.first)
    record = model.plan.record
    number = next(n for n in range(boosting.nodes) if boosting.node(record, n).alternate >= 0)
    node = boosting.node(record, number)
    setattr(node if word == "alternate" else boosting.node(record, node.alternate), word, value)
    with pytest.raises(GroveError):
        validate.check(model)


def test_a_missing_value_follows_the_heavier_branch():
    schema = schema_of(None)
    table = table_of(schema, sgbt(members=1))
    x = np.repeat([[0.0], [0.0], [1.0]], 40, axis=0)
    y = np.repeat([0, 0, 1], 40)
    order = np.random.default_rng(1).permutation(120)
    answer(table, np.tile(x[order], (3, 1)), np.tile(y[order], 3))
    shares = answer(table, [[np.nan], [0.0], [1.0]], mode=ANSWER_ONLY).probability
    assert shares[0].tolist() == shares[1].tolist() != shares[2].tolist()
