"""The observer of discriminants: one threshold for two classes, else one between each class and the rest."""

import numpy as np
import pytest

from core.events import Split
from core.layout.plan import PlanRecord
from core.layout.tree import Tree
from core.numeric.qda import cut_of, gain_of
from core.observers import qda
from core.observers.base import Candidates
from core.observers.gaussian import GaussianStatistics
from tests.unit.core.builders import answer, schema_of, spec_of, table_of

LEARNER = {"numeric_observer": "qda", "grace_period": 200, "delta": 1e-3, "tau": 0.0}


def moments(values):
    return float(len(values)), float(np.mean(values)), float(np.std(values, ddof=1))


def first_split(x, label, classes):
    """Return the first split, and how many records had been learned."""
    table = table_of(schema_of(*(None,) * x.shape[1], classes=classes), spec_of(**LEARNER))
    for event in answer(table, x, label).events:
        if isinstance(event, Split):
            return event, event.row + 1
    raise AssertionError("no split")


def test_two_classes_are_cut_where_their_densities_are_equal():
    draw = np.random.default_rng(3)
    label = (draw.random(2000) < 0.4).astype(np.int32)
    x = np.column_stack(
        [draw.normal(np.where(label == 1, 2.0, 0.0), np.where(label == 1, 2.0, 1.0)), draw.random(2000)]
    )
    split, n = first_split(x, label, "ab")
    a, b = (moments(x[:n, 0][label[:n] == c]) for c in (0, 1))
    has_cut, cut = cut_of(*a, *b)
    assert has_cut
    assert (split.attribute, split.test) == (0, "numeric")
    assert split.value == pytest.approx(cut, rel=1e-9)
    assert split.merits[0] == pytest.approx(gain_of(*[*a, *b, cut]), rel=1e-9)


def test_more_classes_are_cut_each_from_all_others():
    draw = np.random.default_rng(5)
    label = draw.integers(0, 3, 3000).astype(np.int32)
    x = draw.normal(np.array([0.0, 1.0, 9.0])[label], np.array([1.0, 1.0, 1.5])[label])[:, None]
    split, n = first_split(x, label, "abc")
    cuts = []
    for c in range(3):
        own, rest = x[:n, 0][label[:n] == c], x[:n, 0][label[:n] != c]
        has_cut, cut = cut_of(*moments(own), *moments(rest))
        cuts += [cut] if has_cut else []
    assert min(abs(split.value - cut) for cut in cuts) < 1e-9
    assert 1.0 < split.value < 9.0, "the class that stands alone"


def test_thresholds_ascend_and_a_class_with_one_record_has_none():
    draw = np.random.default_rng(6)
    label = np.concatenate([draw.integers(0, 3, 300), [3]]).astype(np.int32)
    x = draw.normal(label * 3.0, 1.0)[:, None]
    table = table_of(schema_of(None, classes="abcde"), spec_of(numeric_observer="qda", grace_period=1e9))
    answer(table, x, label)
    model = table.model(0)
    plan = PlanRecord(model.plan.ints, model.plan.floats, 0)
    tree = Tree(model.ints, model.floats, model.first)
    words = tree.numeric_statistics(plan, tree.leaf_of(tree.root))
    statistics = GaussianStatistics(words.ints, words.floats, words.start)
    left, right, value = np.zeros((5, 5)), np.zeros((5, 5)), np.zeros(5)
    candidates = Candidates(left, right, value)
    qda.propose_numeric(plan, qda.Plugin().numbers(), statistics, 4, 0, 1, candidates)
    known = value[~np.isnan(value)]
    assert len(known) == 3
    assert (np.diff(known) > 0.0).all()
    assert (left + right)[:, 0].tolist() == [*np.bincount(label).tolist(), 0.0]


def test_equal_values_have_no_threshold_and_points_are_cut_between():
    same = table_of(schema_of(None), spec_of(**LEARNER))
    assert answer(same, np.ones((1000, 1)), np.arange(1000) % 2).events == []
    label = (np.arange(1000) % 2).astype(np.int32)
    split, _ = first_split(np.where(label == 1, 3.0, 1.0)[:, None], label, "ab")
    assert split.value == 2.0
