"""Trees of attributes with two values: what is quicker for them changes nothing."""

import math

import numpy as np
import pytest

from core.kernels.records import offset
from core.layout.tree import TREE_HEADER, Node
from core.model import buffers
from core.model.model import Model
from core.model_table import ANSWER_ONLY, ModelTable
from core.plan import Plan
from core.spec import Spec
from core.tree import prefetch
from tests.unit.core.builders import schema_of

ODD = (math.nan, -1.0, 2.0)
"""Values that a test of two values cannot place."""


def rows(odd):
    """Return records of five binary attributes, some with an odd value, and labels that depend on three."""
    rng = np.random.default_rng(4)
    x = rng.integers(0, 2, (6000, 5)).astype(float)
    label = (2 * x[:, 0] + (x[:, 1] == x[:, 3])).astype(np.int32) % 3
    if odd is not None:
        x[rng.random(x.shape) < 0.002] = odd
    return x, label


def grown(x, label, together=True, **learner):
    """Return a table with one model that has learned the rows, with or without what is quicker."""
    schema = schema_of(*[2] * x.shape[1], classes=("a", "b", "c"))
    spec = {"learner": {"name": "h-tree", "grace_period": 30, "tau": 0.2, "leaf_model": "mc", **learner}}
    plan = Plan(Spec.parse(spec), schema)
    assert plan.record.halves == 1
    if not together:
        plan.record.halves = 0
        plan.record.route_ahead = prefetch.NONE
    table = ModelTable()
    table.add(Model(plan, buffers.new_model(plan)))
    n = len(x)
    table.answer(np.zeros(n, np.int64), x, label, np.linspace(0.5, 2.0, n))
    return table


@pytest.mark.parametrize("odd", [None, *ODD])
@pytest.mark.parametrize("learner", [{}, {"binary_splits": True}, {"compat": "moa"}])
def test_the_model_is_the_same_to_the_last_bit(odd, learner):
    x, label = rows(odd)
    quick, plain = (grown(x, label, together, **learner).model(0) for together in (True, False))
    assert np.array_equal(quick.ints, plain.ints)
    assert quick.summary().depth >= 2
    expected = prefetch.NONE if learner else prefetch.HALVES
    assert quick.plan.record.route_ahead == expected


def test_an_odd_value_in_the_way_is_left_to_others():
    table = grown(*rows(None))
    plan, model = table.model(0).plan, table.model(0)
    root = int(model.ints[model.first + TREE_HEADER + offset(Node, "attribute")])
    x = np.zeros((prefetch.WIDTH, 5))
    x[:4, root] = 1.0
    for odd in ODD:
        x[5, root] = odd
        answers = []
        for kind in (prefetch.HALVES, prefetch.NONE):
            plan.record.route_ahead = kind
            n = len(x)
            zeros, none = np.zeros(n, np.int64), np.full(n, -1, np.int32)
            answers.append(table.answer(zeros, x, none, np.ones(n), ANSWER_ONLY).probability)
        assert np.array_equal(*answers)


def test_only_what_can_go_together_does():
    for schema, learner, expected in (
        (schema_of(None), {}, prefetch.THRESHOLDS),
        (schema_of(2, 2), {}, prefetch.HALVES),
        (schema_of(2, 3), {}, prefetch.NONE),
        (schema_of(None, 2), {}, prefetch.NONE),
        (schema_of(2, 2), {"binary_splits": True}, prefetch.NONE),
        (schema_of(2, 2), {"compat": "moa"}, prefetch.NONE),
    ):
        plan = Plan(Spec.parse({"learner": {"name": "h-tree", **learner}}), schema)
        assert plan.record.route_ahead == expected
