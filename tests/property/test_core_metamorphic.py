"""Changes of the input whose effect on the tree is known exactly.

Where a tree may have nothing to show, it is assumed to have split: hypothesis fails if that is rare.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from core import registry
from core.events import Split
from tests.naive.rows import OBSERVERS
from tests.tiers import examples
from tests.unit.core.builders import answer, schema_of, spec_of, table_of

ROWS = 600
LEARNER = {"grace_period": 40, "delta": 0.05, "tau": 0.15}
CLASSES = 3

seeds = st.integers(0, 10_000)
ANY_CLASSES = [n for n in registry.names("criteria") if registry.plugin("criteria", n).max_classes is None]
criteria = st.sampled_from(ANY_CLASSES)
observers = st.sampled_from(OBSERVERS)
movable = st.sampled_from([observer for observer in OBSERVERS if "edges" not in observer])
leaf_models = st.sampled_from(["mc", "nb", "nba"])


def stream(seed, values=3):
    """Return two numeric columns of multiples of 1/8, a nominal one, and a label with noise."""
    draw = np.random.default_rng(seed)
    numeric = np.round(draw.normal(scale=4.0, size=(ROWS, 2)) * 8) / 8
    nominal = draw.integers(0, values, ROWS)
    label = ((numeric[:, 0] > 1).astype(int) + (nominal == 1)) % CLASSES
    noisy = draw.random(ROWS) < 0.1
    label[noisy] = draw.integers(0, CLASSES, noisy.sum())
    x = np.column_stack([numeric, nominal])
    x[draw.random(x.shape) < 0.03] = np.nan
    return x, label


def grow(x, label, kinds=(None, None, 3), weight=None, classes="abc", **parameters):
    """Return answers and splits of a new model on a stream."""
    table = table_of(schema_of(*kinds, classes=classes), spec_of(**(LEARNER | parameters)))
    answers = answer(table, x, label, weight)
    return answers, [event for event in answers.events if isinstance(event, Split)]


def where(splits):
    return [(s.row, s.node, s.attribute, s.test) for s in splits]


@settings(max_examples=examples(25))
@given(seeds, criteria, movable, st.sampled_from([0.25, 1.0, 4.0]), st.sampled_from([-512.0, 0.0, 3.0]))
def test_scale_and_origin_of_numeric_attributes_are_nothing(seed, criterion, observer, scale, shift):
    """x → a·x + b with a power of two and a b that add exactly: the same tests, thresholds moved along."""
    x, label = stream(seed)
    plain, splits = grow(x, label, criterion=criterion, **observer)
    x[:, :2] = x[:, :2] * scale + shift
    moved, others = grow(x, label, criterion=criterion, **observer)
    assume(splits)
    assert where(others) == where(splits)
    for split, other in zip(splits, others, strict=True):
        expected = split.value if split.test != "numeric" else split.value * scale + shift
        assert other.value == pytest.approx(expected, rel=1e-9, abs=1e-9)
    assert np.array_equal(plain.prediction, moved.prediction)


@settings(max_examples=examples(25))
@given(seeds, criteria, leaf_models, observers, st.permutations(range(CLASSES)))
def test_names_of_classes_are_nothing(seed, criterion, leaf_model, observer, order):
    """Relabelled classes: the same splits, relabelled votes (but the order decides who wins a tie)."""
    x, label = stream(seed)
    order = np.array(order)
    plain, splits = grow(x, label, criterion=criterion, leaf_model=leaf_model, **observer)
    renamed, others = grow(x, order[label], criterion=criterion, leaf_model=leaf_model, **observer)
    assume(splits)
    assert where(others) == where(splits)
    if leaf_model != "nba":
        assert renamed.probability[:, order] == pytest.approx(plain.probability, rel=1e-6, abs=1e-9)


@settings(max_examples=examples(25))
@given(seeds, criteria)
def test_an_integer_weight_is_repetition(seed, criterion):
    """Each record as often as its weight; the one attempt comes at the end, on the same evidence."""
    x, label = stream(seed)
    times = np.random.default_rng(seed).integers(1, 4, ROWS)
    total = float(times.sum())
    once = {"grace_period": total, "criterion": criterion, "delta": 0.1, "tau": 0.5}
    _, weighted = grow(x, label, weight=times, **once)
    _, repeated = grow(np.repeat(x, times, axis=0), np.repeat(label, times), **once)
    assert [s[1:] for s in where(weighted)] == [s[1:] for s in where(repeated)] != []
    for one, other in zip(weighted, repeated, strict=True):
        assert one.n == other.n == total
        assert one.merits == pytest.approx(other.merits, rel=1e-9, abs=1e-12)
        assert one.value == pytest.approx(other.value, rel=1e-12)


@settings(max_examples=examples(25))
@given(seeds, criteria, observers, st.permutations(range(3)))
def test_the_order_of_attributes_is_nothing_up_to_ties(seed, criterion, observer, order):
    x, label = stream(seed)
    kinds = (None, None, 3)
    _, splits = grow(x, label, criterion=criterion, **observer)
    assume(splits and all(s.merits[0] > s.merits[1] + 1e-9 for s in splits))
    _, others = grow(
        x[:, order], label, kinds=tuple(kinds[i] for i in order), criterion=criterion, **observer
    )
    named = [(row, node, order[attribute], test) for row, node, attribute, test in where(others)]
    assert named == where(splits)


@settings(max_examples=examples(15))
@given(seeds, criteria)
def test_a_duplicate_of_every_attribute_blocks_splitting_without_ties(seed, criterion):
    x, label = stream(seed)
    kinds = (None, None, 3) * 2
    surely = {"criterion": criterion, "tau": 0.0, "delta": 0.5}
    _, alone = grow(x, label, **surely)
    assume(alone)
    _, splits = grow(np.hstack([x, x]), label, kinds=kinds, **surely)
    assert splits == []


@settings(max_examples=examples(15))
@given(seeds, criteria)
def test_an_attribute_that_is_always_missing_is_nothing(seed, criterion):
    x, label = stream(seed)
    plain, splits = grow(x, label, criterion=criterion, leaf_model="nba")
    wider = np.hstack([x, np.full((ROWS, 2), np.nan)])
    wide, others = grow(wider, label, kinds=(None, None, 3, None, 4), criterion=criterion, leaf_model="nba")
    assert others == splits != []
    assert np.array_equal(plain.probability, wide.probability)


@settings(max_examples=examples(15))
@given(seeds, leaf_models)
def test_leaves_never_become_fewer(seed, leaf_model):
    x, label = stream(seed)
    table = table_of(schema_of(None, None, 3, classes="abc"), spec_of(leaf_model, **LEARNER))
    leaves = []
    for start in range(0, ROWS, 50):
        answer(table, x[start : start + 50], label[start : start + 50])
        leaves.append(table.model(0).summary().leaves)
    assert leaves == sorted(leaves)
    assert leaves[-1] > 1
