"""LAST: leaves split when their error rises; the state of their detectors is a part of the model."""

import itertools

import numpy as np
import pytest

from core.errors import ParameterError, SnapshotError
from core.events import GrowthStopped, Split
from core.layout.model import ModelHeader
from core.learners.hoeffding.blocks import tree_at
from core.model import snapshot, validate
from core.model.model import Model
from core.model_table import ModelTable
from core.spec import Spec
from core.tree import allocation
from tests.unit.core.builders import FORESTS, answer, schema_of, table_of


def spec_of(**learner):
    return Spec.parse({"learner": {"name": "last", **learner}, "evaluation": {"every": 0}})


def turning(n=4000, seed=0):
    """Return records whose class follows one attribute, and after the middle both."""
    x = np.random.default_rng(seed).random((n, 2))
    first, second = x[:, 0] > 0.5, x[:, 1] > 0.5
    y = np.where(np.arange(n) < n // 2, first, first ^ second)
    return x, y.astype(np.int32)


def restless(n=4000):
    """Return noisy records whose class follows something else after every 500 records."""
    draw = np.random.default_rng(2)
    x = draw.random((n, 2))
    first, second = x[:, 0] > 0.5, x[:, 1] > 0.4
    concepts = np.stack([first, first ^ second, second, ~first])
    y = concepts[np.arange(n) // 500 % 4, np.arange(n)] ^ (draw.random(n) < 0.05)
    return x, y.astype(np.int32)


def grown(make=turning, **learner):
    x, y = make()
    table = table_of(schema_of(None, None), spec_of(**learner))
    return table, answer(table, x, y)


def splits(answers):
    return [event for event in answers.events if isinstance(event, Split)]


@pytest.mark.parametrize("detector", ["adwin", "hddm_a"])
def test_a_leaf_splits_when_its_error_rises_and_not_before(detector):
    table, answers = grown(change_detector=detector)
    first = splits(answers)[0]
    assert 2000 <= first.row < 2200
    assert first.bound == 0.0
    validate.check(table.model(0))


def test_a_proof_can_be_required_as_well():
    """At the change the best test, of the attribute that decided so far, has the proof that others lack."""
    _, answers = grown(delta=1e-7)
    assert all(event.merits[0] > event.bound > 0.0 for event in splits(answers))
    assert len(splits(answers)) <= len(splits(grown()[1]))


def test_a_least_weight_can_be_required_as_well():
    _, answers = grown(grace_period=2500)
    assert all(event.row >= 2499 for event in splits(answers))


def test_the_same_bytes_in_any_cut_of_the_run():
    x, y = restless()
    whole, _ = grown(restless, change_confidence=0.1)
    table = table_of(schema_of(None, None), spec_of(change_confidence=0.1))
    for first, end in itertools.pairwise([0, 1, *range(40, 4000, 171), 4000]):
        answer(table, x[first:end], y[first:end])
        restored = Model.restore(table.model(0).snapshot())
        validate.check(restored)
        table = ModelTable()
        table.add(restored)
    assert whole.model(0).summary().splits > 1
    assert table.model(0).snapshot() == whole.model(0).snapshot()


def test_a_tree_at_its_cap_makes_no_more_attempts():
    table, answers = grown(restless, max_leaves=2, change_confidence=0.3)
    assert [type(event) for event in answers.events].count(GrowthStopped) == 1
    assert table.model(0).summary().leaves == 2


@pytest.mark.parametrize("name", FORESTS)
def test_a_member_of_a_forest(name):
    x, y = restless()
    member = {"name": "last", "change_confidence": 0.5}
    spec = Spec.parse({"learner": {"name": name, "members": 3, "member": member}, "evaluation": {"every": 0}})
    table = table_of(schema_of(None, None), spec)
    members = {event.member for event in splits(answer(table, x, y))}
    # Boosting teaches a member what is hard for it all the time: the error of its leaves hardly rises.
    assert len(members) > 1 or name == "ozaboost"
    validate.check(table.model(0))
    again = Model.restore(table.model(0).snapshot())
    assert again.snapshot() == table.model(0).snapshot()


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"change_detector": "ddm"}, r"^change_detector='ddm' must be one of 'adwin', 'hddm_a'"),
        ({"change_confidence": 0}, r"^change_confidence=0.0 must be above 0"),
        ({"compat": "imac"}, r"^compat='imac' must be one of null, 'moa' for 'last'"),
        ({"check_period": 3}, r"^check_period=3 is no parameter of 'last'"),
    ],
)
def test_a_wrong_parameter_is_refused(given, words):
    with pytest.raises(ParameterError, match=words):
        spec_of(**given)


@pytest.mark.parametrize(("word", "value"), [(0, 3.0), (0, 0.5), (1, -1.0), (2, 7.0)])
def test_words_that_no_detector_has_are_refused(word, value):
    table, _ = grown()
    model = table.model(0)
    plan, sound = model.plan, snapshot.trim(model.plan, model.ints)
    snapshot.check_words(plan, sound)
    wrong = allocation.aligned_words(len(sound))
    wrong[:] = sound
    block = tree_at(wrong, int(ModelHeader.over(wrong).first))
    leaf = block.leaf(int(block.node(block.nodes - 1).slot))
    leaf.floats[leaf.start + plan.record.schedule_state + word] = value
    with pytest.raises(SnapshotError):
        snapshot.check_words(plan, wrong)
