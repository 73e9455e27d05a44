"""Values of McDiarmid's constant and bound [D15], computed apart."""

import math

import pytest

from core.bounds.mcdiarmid import Plugin
from core.criteria import info_gain
from core.errors import ParameterError
from core.spec import Spec

WORKED_LEAD = 0.144192  # of section 2.3, Gini


def epsilon(n, delta, criterion="info_gain", form="corrected"):
    return Plugin(delta=delta, mcd_form=form).epsilon(1.0, n, classes=2, criterion=criterion)


def test_the_constant():
    assert info_gain.sensitivity(1000.0, 2, False) == pytest.approx(204.696458, abs=1e-6)
    assert info_gain.sensitivity(1000.0, 2, True) == pytest.approx(85.107046, abs=1e-6)


@pytest.mark.parametrize(
    ("n", "delta", "corrected", "seed"),
    [
        (1000, 0.05, 7.922219, 3.293836),
        (1000, 1e-7, 18.376051, 7.640247),
        (10_000, 1e-7, 7.508497, 2.981885),
        (100_000, 1e-7, 2.911186, 1.121885),
    ],
)
def test_epsilon_of_information_gain(n, delta, corrected, seed):
    assert epsilon(n, delta) == pytest.approx(corrected, abs=1e-6)
    assert epsilon(n, delta, form="seed") == pytest.approx(seed, abs=1e-6)


@pytest.mark.parametrize(("delta", "expected"), [(0.05, 0.309618), (1e-7, 0.718178)])
def test_epsilon_of_gini(delta, expected):
    assert epsilon(1000, delta, "gini") == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize(
    ("form", "delta", "first"),
    [
        ("corrected", 0.05, 171_406),
        ("corrected", 1e-7, 1_221_196),
        ("seed", 0.05, 18_198),
        ("seed", 1e-7, 130_555),
    ],
)
def test_before_which_no_gain_of_two_classes_is_enough(form, delta, first):
    assert epsilon(first - 1, delta, form=form) >= 1.0 > epsilon(first, delta, form=form)


def test_the_first_split_of_the_worked_leaf_with_gini():
    assert epsilon(4610, 0.05, "gini") >= WORKED_LEAD > epsilon(4611, 0.05, "gini")


@pytest.mark.parametrize("criterion", ["error", "km"])
def test_criteria_without_a_constant_are_refused(criterion):
    with pytest.raises(
        ParameterError, match=f"criterion='{criterion}' must be one of entropy, gini, info_gain"
    ):
        Spec.parse({"learner": {"name": "mcdiarmid-tree", "criterion": criterion}})


def test_there_is_no_closed_form_for_schedules_that_look_ahead():
    gap, tie = Spec.parse("mcdiarmid-tree").learner.limits
    assert math.isnan(gap)
    assert tie == math.inf
