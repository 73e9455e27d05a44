"""Every invariant is broken once: a check that finds nothing proves nothing."""

import pytest

from core.errors import GroveError
from core.kernels.records import offset
from core.layout.model import EVALUATION_ROWS, EvaluationCounters, ModelHeader
from core.layout.tree import Leaf, Node, Tree
from core.model import validate
from core.tree import views
from tests.unit.core.builders import answer, halves, schema_of, spec_of, table_of


@pytest.fixture
def model():
    table = table_of(
        schema_of(None, 3, None), spec_of(grace_period=50, delta=0.01, evaluation={"window": 20})
    )
    x, label = halves(1000)
    x[:, 1] = (3 * x[:, 1]).astype(int)
    answer(table, x, label)
    model = table.model(0)
    assert model.summary().splits > 1
    validate.check(model)
    return model


def damage(model, what):
    tree = views.tree_view(model.plan, model.ints, model.first)
    last = int(tree.header[offset(Tree, "nodes")]) - 1
    leaf = int(tree.node_ints[last, offset(Node, "slot")])
    rows = int(model.plan.record.evaluation) + EvaluationCounters.SIZE
    changes = {
        "words": (model.ints, offset(ModelHeader, "words"), -1),
        "requests": (model.ints, offset(ModelHeader, "requests"), 10_000),
        "classes": (model.ints, offset(ModelHeader, "classes"), 9),
        "root": (tree.node_ints, (0, offset(Node, "parent")), 3),
        "child": (tree.node_ints, (0, offset(Node, "child")), 10**6),
        "parent": (tree.node_ints, (last, offset(Node, "parent")), last),
        "inner": (tree.node_ints, (0, offset(Node, "slot")), 0),
        "leaves": (tree.header, offset(Tree, "leaves"), 99),
        "splits": (tree.header, offset(Tree, "splits"), 99),
        "depth": (tree.header, offset(Tree, "depth"), 99),
        "slot": (tree.node_ints, (last, offset(Node, "slot")), -1),
        "back": (tree.leaf_ints, (leaf, offset(Leaf, "node")), 0),
        "free": (tree.header, offset(Tree, "slots"), tree.shape.slots + 1),
        "seen": (tree.leaf_floats, (leaf, offset(Leaf, "observed")), 1e9),
        "masses": (tree.masses, (last, 0), -1.0),
        "overdue": (tree.leaf_floats, (leaf, offset(Leaf, "next")), -1.0),
        "judged": (model.ints, rows, 12345),
        "window": (
            model.ints,
            rows + EVALUATION_ROWS * 2,
            int(model.ints[rows + EVALUATION_ROWS * 2]) ^ 1,
        ),
    }
    array, position, value = changes[what]
    array[position] = value


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ("words", "words=-1 must be"),
        ("requests", "must not decrease in this order"),
        ("classes", "classes must be from 0 to"),
        ("root", "node 0 must be the root"),
        ("child", "children must lie after"),
        ("parent", "must be an inner node that has this node"),
        ("inner", "node 0: leaf record must be the node's own"),
        ("leaves", "leaves, splits and depth must follow from the nodes"),
        ("splits", "leaves, splits and depth must follow from the nodes"),
        ("depth", "leaves, splits and depth must follow from the nodes"),
        ("slot", "leaf record must be the node's own"),
        ("back", "and point back to it"),
        ("free", "slots must be from 1 to slot_capacity"),
        ("seen", "must add up to"),
        ("masses", "must be finite and not negative"),
        ("overdue", "an attempt is overdue"),
        ("judged", "must add up to the evaluated predictions"),
        ("window", "window counts must equal the numbers of codes"),
    ],
)
def test_damage_is_found(model, what, message):
    damage(model, what)
    with pytest.raises(GroveError, match=message):
        validate.check(model)
