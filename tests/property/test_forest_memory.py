"""A full forest keeps to its bytes after every run, and is the same however runs are cut."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.errors import SchemaError
from core.events import GrowthStopped, Split
from core.learners.forest import placement
from core.model import validate
from core.model.model import Model
from core.model_table import LABELLED, ON_REQUEST, ModelTable
from core.schema.schema import Attribute, Schema
from core.spec import Spec
from tests.tiers import examples
from tests.unit.core.builders import FORESTS, schema_of

ROWS = 320
OFTEN = 16
"""Labels between two reviews: so few that a short stream has many."""
SCHEMA = schema_of(None, None, 3, classes=("a", "b", "c"))


@pytest.fixture(scope="module", autouse=True)
def _reviewed_often() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(placement, "REVIEW", OFTEN)
        yield


@st.composite
def forests(draw: st.DrawFn) -> dict[str, Any]:
    """Return the spec of a forest whose cap is a few leaves above what it must be."""
    member = {"name": draw(st.sampled_from(["h-tree", "c-tree", "mcdiarmid-tree"])), "grace_period": 10}
    if member["name"] == "mcdiarmid-tree":
        member["criterion"] = "gini"
    elif member["name"] == "h-tree":
        member |= {"delta": 0.4, "tau": 0.4, "leaf_model": draw(st.sampled_from(["mc", "nb", "nba", "idbd"]))}
    learner = {"name": draw(st.sampled_from(FORESTS)), "members": draw(st.integers(1, 4)), "member": member}
    # Odd: no other test's plan, with reviews as seldom as usual, is at hand.
    learner["max_bytes"] = float(draw(st.integers(20_000, 90_000)) * 2 + 1)
    return {
        "learner": learner,
        "drift": draw(st.sampled_from(["none", {"name": "ddm", "warm_up": 20, "warning": 1.0}])),
        "evaluation": {"every": 0, "window": 20},
        "seed": draw(st.integers(1, 5)),
    }


def rows_of(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return records of a chequered pattern that changes halfway, labels and weights."""
    draw = np.random.default_rng(seed)
    x = np.column_stack([draw.random((ROWS, 2)), draw.integers(0, 3, ROWS)])
    y = (np.floor(3 * x[:, 0]) + np.floor(3 * x[:, 1]) + x[:, 2]) % 3
    y[ROWS // 2 :] = 2 - y[ROWS // 2 :]
    x[draw.random(x.shape) < 0.03] = np.nan
    y[draw.random(ROWS) < 0.1] = -1
    return x, y.astype(np.int32), draw.choice([0.1, 0.3, 0.7, 2.0], ROWS)


def is_ranked(model: Model) -> bool:
    """Return whether the leaves of a forest are ranked at reviews."""
    return bool(model.plan.blocks.forest(model.ints, model.first).ranked)


def played(spec: Spec, seed: int, mode: int, cuts: list[int]) -> tuple[bytes, np.ndarray, bool]:
    """Return the snapshot after all rows, the votes, and whether leaves were ranked."""
    x, y, weight = rows_of(seed)
    table, votes = ModelTable(), []
    table.add(Model.create(spec, SCHEMA))
    edges = [0, *sorted(cuts), ROWS]
    for first, end in itertools.pairwise(edges):
        rows = slice(first, end)
        answers = table.answer(np.zeros(end - first, dtype=np.int64), x[rows], y[rows], weight[rows], mode)
        votes.append(answers.probability)
        assert table.model(0).ints.nbytes <= spec.learner.max_bytes
    model = table.model(0)
    validate.check(model)
    words = model.snapshot()
    assert Model.restore(words).snapshot() == words
    return words, np.concatenate(votes), is_ranked(model)


@settings(max_examples=examples(30), deadline=None)
@given(
    body=forests(),
    seed=st.integers(0, 99),
    mode=st.sampled_from([LABELLED, ON_REQUEST]),
    cuts=st.lists(st.integers(1, ROWS - 1), max_size=6, unique=True),
)
def test_a_full_forest_is_within_its_bytes_and_the_same_in_every_cut(
    body: dict[str, Any], seed: int, mode: int, cuts: list[int]
) -> None:
    spec = Spec.parse(body)
    try:
        Model.create(spec, SCHEMA)
    except SchemaError:
        return  # the cap is below what a forest of leaves takes
    words, votes, _ = played(spec, seed, mode, cuts)
    one_by_one = played(spec, seed, mode, list(range(1, ROWS)))
    assert one_by_one[0] == words
    assert np.array_equal(one_by_one[1], votes)


MEMBER: dict[str, Any] = {"name": "h-tree", "delta": 0.5, "tau": 0.3, "leaf_model": "mc"}


def bagging(max_bytes: float, **member: float) -> Spec:
    """Return the spec of two trees that are never replaced."""
    learner = {"name": "leveraging-bagging", "members": 2, "max_bytes": max_bytes, "drift_confidence": 0}
    return Spec.parse({"learner": learner | {"member": MEMBER | member}, "evaluation": {"every": 0}})


def test_a_class_that_a_run_brings_at_its_end_changes_nothing_before() -> None:
    """A schema grows before its run is learned: sums over more classes would be rounded otherwise."""
    n, draw = 800, np.random.default_rng(3)
    x, weight = draw.random((n, 2)), draw.choice([0.1, 0.3, 0.7], n)
    y = ((np.floor(4 * x[:, 0]) * 4 + np.floor(4 * x[:, 1])) % 7).astype(np.int32)
    noise = draw.random(n) < 0.3
    y[noise] = draw.integers(0, 7, int(noise.sum()))
    y[-1] = 7
    few = Schema.of([Attribute("a"), Attribute("b")], tuple("abcdefg"), classes_open=True)
    spec, words = bagging(60_003.0, grace_period=4, tau=0.5), []
    for cut in (0, n - 1):
        table = ModelTable()
        table.add(Model.create(spec, few))
        for first, end in ((0, cut), (cut, n)):
            if end == n:
                table.model(0).adopt(few.with_class("h"))
                table.refresh(0)
            which = np.zeros(end - first, dtype=np.int64)
            table.answer(which, x[first:end], y[first:end], weight[first:end], LABELLED)
        assert is_ranked(table.model(0))
        words.append(table.model(0).snapshot())
    assert words[0] == words[1]


def test_a_test_of_many_branches_that_has_no_room_costs_nobody_a_leaf() -> None:
    n, values, draw = 1600, 60, np.random.default_rng(5)
    x = np.column_stack([draw.random((n, 2)), draw.integers(0, values, n)])
    y = np.where(x[:, 0] < 0.5, (np.floor(6 * x[:, 0]) + np.floor(6 * x[:, 1])) % 2, 0)
    by_value = (x[:, 0] >= 0.5) & (np.arange(n) > 400)
    y = np.where(by_value, draw.integers(0, 2, values)[x[:, 2].astype(int)], y).astype(np.int32)
    nominal = Attribute("n", "nominal", tuple(f"v{number}" for number in range(values)))
    table, cap = ModelTable(), 130_001.0
    schema = Schema.of([Attribute("a"), Attribute("b"), nominal], ("a", "b"))
    table.add(Model.create(bagging(cap, grace_period=8), schema))
    answers = table.answer(np.zeros(n, dtype=np.int64), x, y, np.ones(n), LABELLED)
    assert 0.9 * cap < table.model(0).ints.nbytes <= cap
    late = [event for event in answers.events if isinstance(event, Split) and event.row > n // 2]
    assert len(late) > 20, "it grows on where there is room"


def test_many_branches_that_are_more_leaves_than_a_tree_may_have_are_no_lack_of_bytes() -> None:
    n, draw = 500, np.random.default_rng(3)
    x = np.column_stack([draw.integers(0, 5, n), draw.integers(0, 5, n), draw.random(n)])
    y = ((x[:, 0] + x[:, 1] + np.floor(3 * x[:, 2])) % 3).astype(np.int32)
    attributes = [Attribute(name, "nominal", tuple("vwxyz")) for name in "ab"]
    table = ModelTable()
    spec = bagging(float(1 << 30) + 1, grace_period=8, tau=0.5, max_leaves=7)
    table.add(Model.create(spec, Schema.of([*attributes, Attribute("c")], tuple("abc"))))
    answers = table.answer(np.zeros(n, dtype=np.int64), x, y, np.ones(n), LABELLED)
    stopped = [event.row for event in answers.events if isinstance(event, GrowthStopped)]
    assert stopped
    assert not [event for event in answers.events if isinstance(event, Split) and event.row > max(stopped)]
    assert not is_ranked(table.model(0))


def test_the_property_is_of_forests_that_are_ranked() -> None:
    member = {"name": "h-tree", "grace_period": 10, "delta": 0.4, "tau": 0.4}
    learner = {"name": "arf", "members": 2, "max_bytes": 60_001.0, "member": member}
    spec = Spec.parse({"learner": learner, "evaluation": {"every": 0, "window": 20}})
    assert played(spec, 1, LABELLED, [])[2]
