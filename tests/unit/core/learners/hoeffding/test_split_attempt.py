"""Attempts concluded in compiled code change the time, never the tree."""

import math

import numpy as np
import pytest

from core.learners.hoeffding.growth import splitting
from core.model import buffers
from core.model.model import Model
from core.model_table import ModelTable
from core.plan import Plan
from core.spec import Spec
from tests.naive.rows import STREAMS


def grown(spec, stream, screened):
    """Return the state of a model after a stream, with or without the screen."""
    schema = stream.schema(known=stream.classes)
    plan = Plan(Spec.parse(spec), schema)
    assert plan.record.compiled > 0
    if not screened:
        plan.record.compiled = 0
    table = ModelTable()
    index = table.add(Model(plan, buffers.new_model(plan)))
    table.answer(np.full(len(stream.y), index), stream.x, stream.y, stream.weight)
    return table.model(index)


@pytest.mark.parametrize("criterion", ["info_gain", "gini"])
@pytest.mark.parametrize("tau", [0.0, 0.1])
@pytest.mark.parametrize("name", STREAMS)
def test_the_state_is_the_same_to_the_last_bit(name, tau, criterion):
    learner = {"name": "h-tree", "grace_period": 30, "delta": 0.01, "tau": tau, "criterion": criterion}
    one, other = (grown({"learner": learner}, STREAMS[name](), screened) for screened in (True, False))
    assert np.array_equal(one.ints, other.ints)
    assert one.summary().attempts > one.summary().splits


@pytest.mark.parametrize("name", ["corrh-tree", "mcdiarmid-tree", "c-tree"])
def test_presets_fail_in_compiled_code_too(name):
    learner = {"name": name, "grace_period": 30, "tau": 0.0 if name == "c-tree" else 0.1}
    one, other = (grown({"learner": learner}, STREAMS["numeric"](), screened) for screened in (True, False))
    assert np.array_equal(one.ints, other.ints)
    assert one.summary().attempts > one.summary().splits


def test_python_hears_only_of_splits_that_need_room(monkeypatch):
    """Whatever the bound: ``attempt`` is called as often as a block is laid out anew."""
    calls, rooms = [], []
    attempt, make_room = splitting.attempt, Model.make_room
    monkeypatch.setattr(Model, "make_room", lambda *given: rooms.append(given) or make_room(*given))
    monkeypatch.setattr(
        splitting, "attempt", lambda *arguments: calls.append(arguments) or attempt(*arguments)
    )
    for name, tau in (("h-tree", 0.15), ("corrh-tree", 0.15), ("mcdiarmid-tree", 0.15), ("c-tree", 0.02)):
        calls.clear()
        rooms.clear()
        learner = {"name": name, "grace_period": 25, "delta": 0.05, "tau": tau, "leaf_model": "mc"}
        summary = grown({"learner": learner}, STREAMS["two_classes"](), True).summary()
        assert 0 < len(calls) == len(rooms) <= summary.splits
        assert summary.attempts > 1.5 * summary.splits


def test_what_schedules_that_look_ahead_reckon_with():
    learner = Spec.parse(
        {"learner": {"name": "h-tree", "delta": 0.05, "tau": 0.1, "bound_factor": 2.0, "grace_period": 70}}
    ).learner
    constant = math.log(20.0) / 2.0
    assert learner.limits == pytest.approx((4.0 * constant, constant / 0.01))
    epsilon = learner.bound.epsilon(1.0, 500.0)
    assert epsilon**2 * 500.0 == pytest.approx(learner.bound.constant)
    assert Spec.parse({"learner": {"name": "h-tree", "tau": 0.0}}).learner.limits[1] == math.inf


def test_moa_s_schedule_counts_inherited_weight_so_that_its_attempts_are_the_learner_s():
    spec = Spec.parse({"learner": {"name": "h-tree", "compat": "moa"}})
    assert Plan(spec, STREAMS["numeric"]().schema()).record.compiled == 0
