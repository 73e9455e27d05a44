"""The strategy ``rate`` asks for the share of the budget, whatever the scores are distributed like.

A tree with a leaf for each value of one attribute, whose class shares are given, answers records without
labels: so a test says how sure the model is of each record.
"""

from __future__ import annotations

import functools

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.active.label_account import SAMPLED_BY_STRATEGY
from core.layout.tree import NODE_FIELDS, Tree
from core.model.model import Model
from core.model_table import Answers, ModelTable
from core.schema.schema import Attribute, Schema
from tests.tiers import examples
from tests.unit.core.builders import spec_of

LEAVES = 64
WINDOW = 1000
RECORDS = 12_000
LIMITS = (0.02, 0.1, 0.5)

Floats = npt.NDArray[np.float64]


@functools.cache
def grown() -> bytes:
    """Return a tree with a leaf for each value, grown on classes that the value decides."""
    values = tuple(map(str, range(LEAVES)))
    table = ModelTable()
    spec = spec_of(grace_period=LEAVES * 8, delta=0.5, tau=1.0)
    table.add(Model.create(spec, Schema.of([Attribute("v", "nominal", values)], ("a", "b"))))
    x = np.tile(np.arange(LEAVES, dtype=np.float64), 16).reshape(-1, 1)
    table.answer(np.zeros(len(x), np.int64), x, (x[:, 0] % 2).astype(np.int32), np.ones(len(x)))
    model = table.model(0)
    assert model.summary().leaves == LEAVES
    return model.snapshot()


def model_of(scores: Floats, limit: float, seed: int = 1, **rate: object) -> ModelTable:
    """Return a model whose leaves have these scores (float64[LEAVES], up to one half), and no records yet."""
    model = Model.restore(grown())
    model.header.records = model.header.labels = 0
    model.configure(spec_like(model, limit, seed, rate))
    for node in range(1, LEAVES + 1):
        masses = Tree(model.ints, model.floats, model.first).node(node).start + NODE_FIELDS
        model.floats[masses : masses + 2] = 1.0 - scores[node - 1], scores[node - 1]
    table = ModelTable()
    table.add(model)
    return table


def spec_like(model, limit, seed, rate):
    body = model.spec.to_dict()
    query = {"name": "rate", "window": WINDOW} | rate
    return type(model.spec).parse(body | {"query": query, "budget": {"limit": limit}, "seed": seed})


def answered(table: ModelTable, leaves: npt.NDArray[np.int64]) -> Answers:
    """Answer records that end at these leaves; nothing is learned."""
    n = len(leaves)
    x = leaves.astype(np.float64).reshape(-1, 1)
    return table.answer(np.zeros(n, np.int64), x, np.full(n, -1, np.int32), np.ones(n))


def drawn(seed: int, records: int, first: int = 0, last: int = LEAVES) -> npt.NDArray[np.int64]:
    """Return leaves, drawn evenly from first up to last."""
    return np.random.default_rng(seed).integers(first, last, records)


def assert_within_the_budget(asked: npt.NDArray[np.bool_], limit: float) -> None:
    t = np.arange(1, len(asked) + 1)
    assert (np.cumsum(asked) < limit * t + 1).all()


DISTRIBUTIONS = {
    "constant": np.full(LEAVES, 0.2),
    "all pure": np.zeros(LEAVES),
    "two values": np.repeat([0.1, 0.3], LEAVES // 2),
    "few of many": np.where(np.arange(LEAVES) % 16 == 0, 0.5, 1e-9),
    "even": np.linspace(0.0, 0.5, LEAVES),
    "over many octaves": 2.0 ** -np.linspace(1, 20, LEAVES),
    "pure ones and others": np.where(np.arange(LEAVES) < 45, 0.0, np.linspace(0.0, 0.5, LEAVES)),
}


@pytest.mark.parametrize("limit", LIMITS)
@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_the_rate_is_that_of_the_budget(name: str, limit: float) -> None:
    """After the first window: within 2 % of the limit; the gate refuses less than 5 % of the records."""
    records = int(max(RECORDS, 600 / limit))
    table = model_of(DISTRIBUTIONS[name], limit)
    leaves = drawn(1, records)
    asked = answered(table, leaves[:WINDOW]).asked
    refused = table.model(0).summary().refused
    asked = np.concatenate([asked, answered(table, leaves[WINDOW:]).asked])
    assert_within_the_budget(asked, limit)
    assert asked[WINDOW:].mean() == pytest.approx(limit, rel=0.02)
    assert (table.model(0).summary().refused - refused) / (records - WINDOW) < 0.05


scores = st.lists(
    st.one_of(st.floats(0.0, 0.5), st.sampled_from([0.0, 0.25, 0.5])), min_size=1, max_size=LEAVES
).map(lambda drawn: np.resize(drawn, LEAVES))


@settings(max_examples=examples(40))
@given(before=scores, after=scores, limit=st.sampled_from(LIMITS[1:]), seed=st.integers(0, 1000))
def test_any_scores_and_any_shift(before: Floats, after: Floats, limit: float, seed: int) -> None:
    """Half way the scores become others: one window later the rate is what it was."""
    table = model_of(before, limit, seed)
    leaves = drawn(seed, RECORDS)
    asked = answered(table, leaves[: RECORDS // 2]).asked
    other = Model.restore(table.model(0).snapshot())
    for node in range(1, LEAVES + 1):
        masses = Tree(other.ints, other.floats, other.first).node(node).start + NODE_FIELDS
        other.floats[masses : masses + 2] = 1.0 - after[node - 1], after[node - 1]
    shifted = ModelTable()
    shifted.add(other)
    asked = np.concatenate([asked, answered(shifted, leaves[RECORDS // 2 :]).asked])
    assert_within_the_budget(asked, limit)
    for first, last in ((WINDOW, RECORDS // 2), (RECORDS // 2 + WINDOW, RECORDS)):
        # Four labels are in hand, with a deviation of 1.4: four of these more or less at both ends.
        assert asked[first:last].sum() == pytest.approx(limit * (last - first), rel=0.02, abs=8.0)


@pytest.mark.parametrize("limit", LIMITS[:2])
def test_the_least_sure_are_asked_for(limit: float) -> None:
    """Beside the drawn ones those of the upper share of the scores; two leaves have the same code."""
    table = model_of(DISTRIBUTIONS["even"], limit)
    leaves = drawn(3, 4 * RECORDS)
    answers = answered(table, leaves)
    chosen = answers.asked & (answers.sampled != SAMPLED_BY_STRATEGY)
    late = np.arange(len(leaves)) > WINDOW
    assert leaves[chosen & late].min() >= LEAVES * (1.0 - 2.5 * limit) - 2
    # Of the mean of max(q, B), which is a seventh above B: q has a deviation of a third.
    assert (answers.asked & ~chosen).sum() == pytest.approx(0.4 * limit * len(leaves), rel=0.2)


def test_equal_scores_are_told_apart_by_the_draw() -> None:
    """Where all are equal each has the same chance: no period, whatever the places."""
    asked = answered(model_of(DISTRIBUTIONS["constant"], 0.1), drawn(1, 40_000)).asked
    gaps = np.diff(np.flatnonzero(asked))
    assert 5.0 < gaps.std() < 10.0
    assert gaps.mean() == pytest.approx(10.0, rel=0.02)


def test_labels_stand_for_the_records_that_were_not_asked_for() -> None:
    """Weights of the labels add up to the records, by leaf and altogether."""
    leaves = drawn(5, 60_000)
    answers = answered(model_of(DISTRIBUTIONS["pure ones and others"], 0.1), leaves)
    assert (answers.importance[answers.asked] > 0.0).all()
    assert answers.importance[answers.asked].max() <= 1.0 / (0.1 * 0.1) * 4.0
    for part in (leaves < LEAVES, leaves < 45, leaves >= 45):
        assert answers.importance[part & answers.asked].sum() == pytest.approx(part.sum(), rel=0.15)


def test_without_exploration_they_stand_for_nobody() -> None:
    answers = answered(model_of(DISTRIBUTIONS["even"], 0.1, explore=0.0), drawn(1, 3000))
    assert answers.asked.sum() > 250
    assert not answers.importance.any()
    assert not (answers.sampled == SAMPLED_BY_STRATEGY).any()


def test_times_without_unlabelled_records_are_not_made_up_for() -> None:
    """After 20,000 records that came with their labels: no heap of requests, but the rate of the budget."""
    table = model_of(DISTRIBUTIONS["even"], 0.1)
    leaves = drawn(1, 26_000)
    x = leaves[:20_000].astype(np.float64).reshape(-1, 1)
    table.answer(np.zeros(len(x), np.int64), x, np.zeros(len(x), np.int32), np.ones(len(x)))
    asked = answered(table, leaves[20_000:]).asked
    assert asked[:2000].sum() < 0.1 * 2000 + 1.0 / 0.1 * 4.0 + 10.0
    assert asked[2000:].mean() == pytest.approx(0.1, rel=0.05)


@settings(max_examples=examples(20))
@given(
    values=scores,
    limit=st.sampled_from(LIMITS),
    window=st.sampled_from([10, 17, 100, 1000]),
    cuts=st.lists(st.integers(0, 3000), max_size=6),
)
def test_cuts_and_restored_snapshots_change_nothing(
    values: Floats, limit: float, window: int, cuts: list[int]
) -> None:
    """A model restored from bytes in the middle of its window goes on to the same bytes."""
    leaves = drawn(9, 3000)
    whole = model_of(values, limit, window=window)
    asked = answered(whole, leaves).asked
    table, asked_rows = model_of(values, limit, window=window), []
    for first, last in zip([0, *sorted(cuts)], [*sorted(cuts), 3000], strict=True):
        asked_rows.append(answered(table, leaves[first:last]).asked)
        model = Model.restore(table.model(0).snapshot())
        table = ModelTable()
        table.add(model)
    assert np.array_equal(asked, np.concatenate(asked_rows))
    assert table.model(0).snapshot() == whole.model(0).snapshot()


def test_another_window_or_score_begins_anew() -> None:
    """A living model's window is of its own length and scores; ``explore`` may change under way."""
    table = model_of(DISTRIBUTIONS["even"], 0.1)
    answered(table, drawn(1, 3000))
    model = table.model(0)
    query = int(model.plan.record.query_state)
    state = model.ints[query : query + len(model.spec.query.initial())].copy()
    for change, kept in (({"explore": 0.3}, True), ({"window": 500}, False), ({"score": "conf_tree"}, False)):
        other = Model.restore(model.snapshot())
        other.configure(spec_like(other, 0.1, 1, change))
        words = other.ints[query : query + len(other.spec.query.initial())]
        assert np.array_equal(words, state) if kept else not words.any()


@pytest.mark.parametrize("limit", LIMITS)
def test_requests_at_random_do_not_close_the_budget(limit: float) -> None:
    """They become rarer while the reserve runs out, and the labels represent all records, by leaf."""
    table = model_of(DISTRIBUTIONS["even"], limit, explore=1.0)
    leaves = drawn(4, 4 * RECORDS)
    answers = answered(table, leaves)
    assert table.model(0).summary().refused <= 0.02 * len(leaves)
    assert answers.asked[WINDOW:].mean() == pytest.approx(limit, rel=0.02)
    assert (answers.sampled[answers.asked] == SAMPLED_BY_STRATEGY).all()
    weights = answers.importance[answers.asked]
    assert weights.min() > 0.0
    assert weights.max() <= 2.0 / limit + 4.0 / limit
    for part in (leaves < LEAVES // 2, leaves >= LEAVES // 2):
        assert answers.importance[part & answers.asked].sum() == pytest.approx(part.sum(), rel=0.1)
