"""The gate record by record [D19], requests that come back, and the slice within the budget."""

import numpy as np
import pytest

from core.active.label_account import ANSWERED, DECLINED, EXPIRED
from core.errors import ParameterError
from core.spec import Spec
from tests.unit.core.builders import answer, schema_of, spec_of, table_of

ONE = schema_of(None)


def table_with(budget, query="always", evaluation=None):
    return table_of(ONE, spec_of(query=query, budget=budget, evaluation=evaluation))


def test_the_trace_of_the_window():
    """B = 0.1, window 100: the first refusal at t = 12, 31 requests in the first 200, then u/w = 0.108380."""
    table = table_with({"name": "window", "limit": 0.1})
    asked = answer(table, np.zeros((200, 1))).asked
    assert np.flatnonzero(~asked)[0] + 1 == 12
    assert asked.sum() == 31
    model = table.model(0)
    assert model.floats[int(model.plan.record.budget_state)] / 100 == pytest.approx(0.108380, abs=5e-7)


def test_the_window_forgets_what_was_saved():
    """After a long silence count allows a burst, window does not."""
    asked = {}
    for name in ("count", "window"):
        table = table_with({"name": name, "limit": 0.1}, "never")
        answer(table, np.zeros((5000, 1)))
        table.model(0).configure(spec_of(query="always", budget={"name": name, "limit": 0.1}))
        table.refresh(0)
        asked[name] = answer(table, np.zeros((100, 1))).asked.sum()
    assert asked["count"] == 100
    assert asked["window"] < 30


@pytest.mark.parametrize("name", ["count", "window"])
@pytest.mark.parametrize("how", [DECLINED, EXPIRED])
def test_what_came_back_is_spent_again_and_only_once(name, how):
    budget = {"name": name, "limit": 0.1, "respend": True}
    table, plain = table_with(budget), table_with(budget | {"respend": False})
    for each in (table, plain):
        answer(each, np.zeros((300, 1)))
        each.model(0).close(how, 7)
    asked = [answer(each, np.zeros((100, 1))).asked for each in (table, plain)]
    assert asked[0].sum() - asked[1].sum() == pytest.approx(7, abs=1)
    assert asked[0][:7].all()
    assert answer(table, np.zeros((2000, 1))).asked.mean() == pytest.approx(0.1, abs=0.005)


@pytest.mark.parametrize("name", ["count", "window"])
def test_answered_requests_stay_spent(name):
    table = table_with({"name": name, "limit": 0.1, "respend": True})
    answer(table, np.zeros((300, 1)))
    asked = table.model(0).summary().requests
    table.model(0).close(ANSWERED, asked)
    assert answer(table, np.zeros((300, 1))).asked.sum() <= asked
    summary = table.model(0).summary()
    assert summary.outstanding == summary.requests - asked


@pytest.mark.parametrize("query", ["always", "never", "conf_tree", "random"])
@pytest.mark.parametrize("respend", [False, True])
@pytest.mark.parametrize(
    ("limit", "share"), [(0.05, 0.05), (0.05, 0.02), (0.3, 0.01), (1.0, 1.0), (0.11, 0.07)]
)
def test_the_slice_is_within_the_budget(query, limit, share, respend):
    evaluation = {"share": share, "every": 0}
    table = table_with({"limit": limit, "respend": respend}, query, evaluation)
    answers = answer(table, np.zeros((3000, 1)))
    t = np.arange(1, 3001)
    assert (np.cumsum(answers.asked) < limit * t + 1).all()
    reserved = answers.sampled == 2
    assert answers.asked[reserved].all()
    size = int(np.ceil(round(1 / share, 9)))
    assert reserved[: 3000 // size * size].reshape(-1, size).sum(axis=1).tolist() == [1] * (3000 // size)
    if query == "always":
        assert answers.asked.sum() >= limit * 3000 - 2 - limit * size
    if query == "never":
        assert np.array_equal(answers.asked, reserved)


def test_the_place_in_a_block_is_drawn_anew():
    answers = answer(table_with({"limit": 0.1}, evaluation={"share": 0.05}), np.zeros((20_000, 1)))
    places = np.flatnonzero(answers.sampled == 2) % 20
    counts = np.bincount(places, minlength=20)
    assert counts.sum() == 1000
    assert ((counts - 50) ** 2 / 50).sum() < 46  # chi-square, 19 degrees of freedom: beyond 0.9995


def test_labels_that_come_by_themselves_are_drawn_as_well():
    """Nothing has to be asked for, and the slice is the same."""
    asked = table_with({"limit": 0.1}, evaluation={"share": 0.05})
    given = table_with({"limit": 0.1}, evaluation={"share": 0.05})
    drawn = answer(asked, np.zeros((1000, 1))).sampled == 2
    answers = answer(given, np.zeros((1000, 1)), np.zeros(1000))
    assert np.array_equal(answers.sampled == 2, drawn)
    assert given.model(0).evaluation().drawn_labels == 50
    assert given.model(0).summary().requests == 0


def test_a_share_beyond_the_budget_is_refused():
    with pytest.raises(ParameterError, match=r"evaluation.share=0.2 must be at most budget.limit=0.1"):
        Spec.parse({"budget": {"limit": 0.1}, "evaluation": {"share": 0.2}})
