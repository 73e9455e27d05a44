"""Attempts concluded in compiled code change the time, never the tree."""

import math

import numpy as np
import pytest

from core import arena
from core.learners.h_tree import MIN_GAIN
from core.model import Model
from core.model_table import ModelTable
from core.plan import Plan
from core.spec import Spec
from core.tree import layout as at
from tests.naive.rows import STREAMS


def grown(spec, stream, screened):
    """Return the state of a model after a stream, with or without the screen."""
    schema = stream.schema(known=stream.classes)
    plan = Plan(Spec.parse(spec), schema)
    assert plan.ints[at.PLAN_SCREEN] > 0
    if not screened:
        plan.ints[at.PLAN_SCREEN] = 0
    table = ModelTable()
    index = table.add(Model(plan, arena.new_model(plan)))
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


def test_what_h_tree_needs_for_a_split():
    learner = Spec.parse(
        {"learner": {"name": "h-tree", "delta": 0.05, "tau": 0.1, "bound_factor": 2.0, "grace_period": 70}}
    ).learner
    constant = math.log(20.0) / 2.0
    assert learner.screen() == pytest.approx((4.0 * constant, constant / 0.01, MIN_GAIN))
    epsilon = learner.bound.epsilon(1.0, 500.0)
    assert epsilon**2 * 500.0 == pytest.approx(learner.bound.constant)


def test_no_ties_means_no_weight_is_enough_by_itself():
    assert Spec.parse({"learner": {"name": "h-tree", "tau": 0.0}}).learner.screen()[1] == math.inf


def test_moa_decides_by_inherited_weight_and_is_not_screened():
    assert Spec.parse({"learner": {"name": "h-tree", "compat": "moa"}}).learner.screen() is None
