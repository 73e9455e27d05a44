"""A glance never says less than the gap is, and little more."""

import math

import numpy as np
import pytest

from core.kernels.jit import kernel
from core.layout.plan import PlanRecord
from core.layout.tree import Tree
from core.learners.hoeffding.quick_reject import gap_at_most
from core.learners.hoeffding.ranking import BEST_MERIT, RANKING_WORDS, SECOND_MERIT, SUGGESTIONS, rank
from core.model import buffers
from core.model.model import Model
from core.model_table import ModelTable
from core.numeric import special
from core.plan import Plan
from core.spec import Spec
from tests.unit.core.builders import schema_of


@kernel("float64(PlanRecord, Tree, Leaf)")
def gap_of(plan, tree, leaf):
    return gap_at_most(plan, tree, tree.node(leaf.node), leaf)


def plan_of(model):
    return PlanRecord(model.plan.ints, model.plan.floats, 0)


def leaf_of(x, label, classes, weight=None, values=(), **learner):
    """Return the plan and the tree of a model of one leaf that has learned the rows.

    values: the number of values of each nominal attribute, which are the last ones.
    """
    numeric = [None] * (x.shape[1] - len(values))
    schema = schema_of(*numeric, *values, classes=tuple("abcdefgh"[:classes]))
    plan = Plan(Spec.parse({"learner": {"name": "h-tree", "grace_period": 10**9, **learner}}), schema)
    table = ModelTable()
    table.add(Model(plan, buffers.new_model(plan)))
    n = len(x)
    table.answer(
        np.zeros(n, np.int64), x, label.astype(np.int32), np.ones(n) if weight is None else np.asarray(weight)
    )
    model = table.model(0)
    return plan_of(model), Tree(model.ints, model.floats, model.first)


def records(kind, seed):
    """Return rows and labels of a kind, of two to eight classes."""
    rng = np.random.default_rng(seed)
    classes = int(rng.integers(2, 9))
    n, d = int(rng.integers(20, 600)), int(rng.integers(1, 12))
    label = rng.integers(0, classes, n) if kind != "rare" else (rng.random(n) < 0.02).astype(int)
    x = rng.normal(size=(n, d)) + rng.random(d) * label[:, None]
    if kind == "codes":
        x = np.round(x)
    elif kind == "constant":
        x[:, ::2] = 3.0
    elif kind == "missing":
        x[rng.random(x.shape) < 0.3] = math.nan
        x[:, 0] = math.nan
    elif kind == "large":
        x *= 10.0 ** rng.integers(-200, 200, d)
    elif kind == "apart":
        x += 50.0 * label[:, None]
    return x, label, classes


@pytest.mark.parametrize("share", [0.0, 0.01, 0.2])
@pytest.mark.parametrize("kind", ["plain", "rare", "codes", "constant", "missing", "large", "apart"])
def test_the_gap_is_never_more(kind, share):
    for seed in range(8):
        x, label, classes = records(kind, seed)
        weight = np.random.default_rng(seed).choice([1e-3, 1.0, 7.5], len(x)) if seed % 2 else None
        plan, tree = leaf_of(x, label, classes, weight, min_branch_frac=share)
        assert plan.quick_reject == 1
        out = np.empty(RANKING_WORDS)
        rank(plan, tree, tree.leaf(0), out)
        most = gap_of(plan, tree, tree.leaf(0))
        if out[SUGGESTIONS] < 2:
            assert most == math.inf
            continue
        gap = out[BEST_MERIT] - out[SECOND_MERIT]
        assert gap <= most
        if share == 0.0:
            assert most <= gap + 1e-3


@pytest.mark.parametrize("share", [0.0, 0.01, 0.2])
@pytest.mark.parametrize("binary", [False, True])
@pytest.mark.parametrize("kind", ["plain", "rare", "missing", "halves", "one value"])
def test_the_gap_of_nominal_attributes_is_never_more(kind, binary, share):
    for seed in range(8):
        rng = np.random.default_rng(seed)
        x, label, classes = records("rare" if kind == "rare" else "plain", seed)
        numeric = seed % 3
        values = [2] * 5 if kind == "halves" else rng.integers(2, 7, 4).tolist()
        codes = (rng.integers(0, 100, (len(x), len(values))) + 7 * label[:, None]) % np.array(values)
        codes = codes.astype(float) if kind != "one value" else np.zeros((len(x), len(values)))
        if kind == "missing":
            codes[rng.random(codes.shape) < 0.3] = math.nan
            codes[:, 0] = -1.0
        learner = {"min_branch_frac": share, "binary_splits": binary}
        rows = np.hstack((x[:, :numeric], codes))
        plan, tree = leaf_of(rows, label, classes, values=values, **learner)
        assert plan.quick_reject == 1
        out = np.empty(RANKING_WORDS)
        rank(plan, tree, tree.leaf(0), out)
        most = gap_of(plan, tree, tree.leaf(0))
        if out[SUGGESTIONS] < 2:
            assert most == math.inf
            continue
        gap = out[BEST_MERIT] - out[SECOND_MERIT]
        assert gap <= most
        if share == 0.0 or numeric == 0:
            assert most <= gap + 1e-3


def test_the_short_functions_keep_their_word():
    x = np.concatenate((np.linspace(1e-6, 4.0, 20_001), 10.0 ** np.arange(-300, 300)))
    assert max(abs(special.rough_log2(v) - math.log2(v)) for v in x.tolist()) < 4e-7
    assert special.rough_log2(0.0) * 0.0 == 0.0
    z = np.linspace(-45.0, 45.0, 20_001).tolist()
    assert max(abs(special.rough_cdf(v) - 0.5 * math.erfc(-v / math.sqrt(2.0))) for v in z) < 2e-7
    assert [special.rough_cdf(v) for v in (-math.inf, math.inf)] == [0.0, 1.0]
    turns = np.linspace(0.0, 1.0, 20_001).tolist()
    assert max(abs(special.rough_cosine(v) - math.cos(2.0 * math.pi * v)) for v in turns) < 1e-6


def test_only_what_can_be_rough_is_glanced_at():
    for schema, learner, expected in (
        (schema_of(None), {}, 1),
        (schema_of(None, 3), {}, 1),
        (schema_of(2, 3), {}, 1),
        (schema_of(None), {"criterion": "gini"}, 0),
        (schema_of(None), {"compat": "moa"}, 0),
    ):
        plan = Plan(Spec.parse({"learner": {"name": "h-tree", **learner}}), schema)
        assert PlanRecord(plan.ints, plan.floats, 0).quick_reject == expected
