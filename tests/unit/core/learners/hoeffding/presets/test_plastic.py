"""PLASTIC: a new test comes to a node, and what was learned below the node stays."""

import itertools

import numpy as np
import pytest

from core.events import Split
from core.layout.tree import LEAF, MULTIWAY
from core.learners.hoeffding.decision import Decision
from core.learners.hoeffding.growth import revision
from core.model import validate
from core.model.model import Model
from core.model_table import ANSWER_ONLY, ModelTable
from core.spec import Spec
from tests.unit.core.builders import FORESTS, answer, schema_of, table_of

EAGER = {"grace_period": 25, "delta": 0.1, "tau": 0.15, "revisit_period": 40}


def spec_of(name="plastic", **learner):
    return Spec.parse({"learner": {"name": name, **EAGER, **learner}, "evaluation": {"every": 0}})


def view(table):
    model = table.model(0)
    return model.plan.blocks.view(model.ints, model.first)


def drifting(n=6000, seed=1):
    """Return records of two nominal and two numeric attributes whose class follows others after a while."""
    draw = np.random.default_rng(seed)
    x = np.column_stack([draw.integers(0, 3, (n, 2)), draw.random((n, 2))])
    before = (x[:, 0] == 1) ^ (x[:, 2] > 0.5)
    after = (x[:, 1] == 2) ^ (x[:, 3] > 0.4)
    y = np.where(np.arange(n) % 3000 < 1500, before, after) ^ (draw.random(n) < 0.05)
    return x, y.astype(np.int32)


def grown(**learner):
    x, y = drifting()
    table = table_of(schema_of(3, 3, None, None), spec_of(**learner))
    return table, answer(table, x, y).events


def replaced(events):
    return [event for event in events if isinstance(event, Split) and event.action == "replaced"]


def crossed(missing=0.0):
    """Return a table whose tree tests the first attribute and then, everywhere, the second one."""
    draw = np.random.default_rng(5)
    x = draw.integers(0, 3, (4000, 2)).astype(np.float64)
    y = ((x[:, 0] * 2 + x[:, 1] * 1.5) % 3 > 1.2).astype(np.int32)
    x[draw.random(x.shape) < missing] = np.nan
    table = table_of(schema_of(3, 3), spec_of(revisit_period=1e9, leaf_model="mc"))
    answer(table, x, y)
    tree = view(table)
    root = tree.block.node(0)
    children = range(root.child, root.child + root.children)
    other = 1 - int(root.attribute)
    assert root.kind == MULTIWAY
    assert {(int(tree.nodes.kind[i]), int(tree.nodes.attribute[i])) for i in children} == {(MULTIWAY, other)}
    return table, other, x


def replace_root(table, attribute):
    """Give the root a branch for each value of an attribute; return the event."""
    model = table.model(0)
    decision = Decision(attribute, MULTIWAY, 0.0, (0.5, 0.1), 0.05, 900.0, "gap", "replaced")
    event = revision.carry_out(model, model.first, 0, decision, 0, 0)
    table.refresh(0)
    return event


@pytest.mark.parametrize("missing", [0.0, 0.1])
def test_an_exchange_of_two_tests_changes_no_answer(missing):
    table, other, x = crossed(missing)
    whole = x[~np.isnan(x).any(axis=1)][:200]
    before, routed = answer(table, whole, mode=ANSWER_ONLY), view(table).routed[0]
    leaves = table.model(0).summary().leaves
    event = replace_root(table, other)
    assert event.action == "replaced"
    assert event.former.attribute == 1 - other
    tree = view(table)
    assert tree.block.node(0).attribute == other
    assert table.model(0).summary().leaves == leaves == 9
    assert tree.routed[0] == pytest.approx(routed)
    after = answer(table, whole, mode=ANSWER_ONLY)
    assert np.array_equal(before.prediction, after.prediction)
    assert np.array_equal(before.probability, after.probability)
    validate.check(table.model(0))


def test_efdt_forgets_what_plastic_keeps():
    table, other, _ = crossed()
    seen = view(table).seen[view(table).leaves[0]].sum()
    replace_root(table, other)
    tree = view(table)
    slots = tree.nodes.slot[tree.leaves[0]]
    assert tree.leaf_records.observed[slots].sum() > 0.5 * seen > 0.0


def test_with_branches_of_one_node_it_is_efdt():
    (mine, own), (others, theirs) = grown(max_branch_length=1), grown(name="efdt")
    assert own == theirs
    assert replaced(own)
    assert np.array_equal(view(mine).ints, view(others).ints)


def test_it_keeps_sound_while_it_changes():
    x, y = drifting()
    table, changes = table_of(schema_of(3, 3, None, None), spec_of()), 0
    for first in range(0, len(y), 200):
        changes += len(replaced(answer(table, x[first : first + 200], y[first : first + 200]).events))
        validate.check(table.model(0))
    assert changes >= 5


def test_the_same_bytes_in_any_cut_of_the_run():
    x, y = drifting()
    whole, events = grown()
    table = table_of(schema_of(3, 3, None, None), spec_of())
    for first, end in itertools.pairwise([0, 1, *range(40, 6000, 311), 6000]):
        answer(table, x[first:end], y[first:end])
        restored = Model.restore(table.model(0).snapshot())
        table = ModelTable()
        table.add(restored)
    assert replaced(events)
    assert table.model(0).snapshot() == whole.model(0).snapshot()


def test_a_subtree_that_would_exceed_the_cap_is_replaced_by_new_leaves():
    table, _, _ = crossed()
    limit = table.model(0).summary().leaves - 1
    x = np.random.default_rng(1).integers(0, 3, (4000, 2)).astype(np.float64)
    y = ((x[:, 0] * 2 + x[:, 1] * 1.5) % 3 > 1.2).astype(np.int32)
    small = table_of(schema_of(3, 3), spec_of(revisit_period=1e9, leaf_model="mc", max_leaves=limit))
    answer(small, x, y)
    root = view(small).block.node(0)
    replace_root(small, 1 - int(root.attribute))
    assert small.model(0).summary().leaves <= limit
    validate.check(small.model(0))


@pytest.mark.parametrize("name", FORESTS)
def test_a_member_of_a_forest(name):
    x, y = drifting(3000)
    member = {"name": "plastic", **EAGER}
    spec = Spec.parse({"learner": {"name": name, "members": 2, "member": member}, "evaluation": {"every": 0}})
    table = table_of(schema_of(3, 3, None, None), spec)
    answer(table, x, y)
    validate.check(table.model(0))
    assert Model.restore(table.model(0).snapshot()).snapshot() == table.model(0).snapshot()
    assert (view_of_kinds(table) != LEAF).any()


def view_of_kinds(table):
    """Return the kinds of the nodes of the first member's tree."""
    model = table.model(0)
    forest = model.plan.blocks
    tree = forest.trees.view(model.ints, forest.tree_at(model.ints, model.first, 0))
    return tree.nodes.kind[: tree.block.nodes]
