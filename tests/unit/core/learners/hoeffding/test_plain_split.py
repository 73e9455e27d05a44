"""Splits made in compiled code are those that Python makes: the same bytes, the same events."""

import numpy as np
import pytest

from core import run
from core.learners.hoeffding.growth import splitting
from core.model import buffers, validate
from core.model.model import Model
from core.model_table import ModelTable
from core.plan import Plan
from core.spec import Spec
from tests.naive.rows import STREAMS

QUICK = {"grace_period": 20, "delta": 0.05, "tau": 0.3}


def grown(spec, streams, is_plain, rows=None):
    """Return the models of some streams learned in turns in one table, and all events."""
    table, models = ModelTable(), []
    for stream in streams:
        plan = Plan(Spec.parse(spec), stream.schema(known=stream.classes))
        assert plan.record.plain_splits == 1
        plan.record.plain_splits = is_plain
        models.append(table.add(Model(plan, buffers.new_model(plan))))
    n = min(len(stream.y) for stream in streams)
    order = np.argsort(np.tile(np.arange(n), len(streams)), kind="stable")
    model = np.repeat(models, n)[order]
    x = np.full((len(model), max(stream.x.shape[1] for stream in streams)), np.nan)
    for each, stream in zip(models, streams, strict=True):
        x[model == each, : stream.x.shape[1]] = stream.x[:n]
    y, weight = (np.concatenate([getattr(s, name)[:n] for s in streams])[order] for name in ("y", "weight"))
    events = []
    for first in range(0, len(model), rows or len(model)):
        part = slice(first, first + (rows or len(model)))
        answers = table.answer(model[part], x[part], y[part], weight[part])
        events += [
            (first + event.row, event.model, repr(event).partition("model=")[2]) for event in answers.events
        ]
    return [table.model(index) for index in models], events


def assert_alike(spec, *streams, rows=None):
    """Compare both ways; return the models."""
    (ours, events), (others, expected) = (grown(spec, streams, plain, rows) for plain in (1, 0))
    for model, other in zip(ours, others, strict=True):
        assert np.array_equal(model.ints, other.ints)
        assert validate.check(model) is None
    assert events == expected
    return ours


@pytest.mark.parametrize("schedule", ["grace_period", "cgd", "osm", "imac", "every_record"])
@pytest.mark.parametrize("name", STREAMS)
def test_bytes_and_events_are_the_same(name, schedule):
    learner = {"name": "h-tree", "schedule": schedule, "delta": 0.05, "tau": 0.3}
    (model,) = assert_alike({"learner": learner}, STREAMS[name]())
    assert model.summary().splits > 0


@pytest.mark.parametrize("leaf_model", ["mc", "nb", "nba"])
def test_every_leaf_model_that_keeps_nothing_of_its_own(leaf_model):
    assert_alike({"learner": {"name": "h-tree", "leaf_model": leaf_model} | QUICK}, STREAMS["numeric"]())


def test_what_a_leaf_model_keeps_is_inherited_in_python():
    plan = Plan(
        Spec.parse({"learner": {"name": "h-tree", "leaf_model": "idbd"}}), STREAMS["numeric"]().schema()
    )
    assert plan.record.plain_splits == 0


@pytest.mark.parametrize("caps", [{"max_leaves": 3}, {"max_bytes": 9000.0}, {"max_bytes": 20000.0}])
def test_a_tree_stops_at_its_caps_as_before(caps):
    for name in STREAMS:
        learner = {"name": "h-tree"} | QUICK | caps
        (model,) = assert_alike({"learner": learner, "evaluation": {"window": 1}}, STREAMS[name]())
        assert model.summary().leaves >= 1


def test_a_background_tree_splits_too():
    spec = {"learner": {"name": "h-tree"} | QUICK, "drift": {"name": "ddm", "warning": 0.5, "drift": 6.0}}
    (model,) = assert_alike(spec, STREAMS["numeric"]())
    assert model.header.second > 0


def test_most_splits_are_plain(monkeypatch):
    """Python makes those alone for which the block has no room: it doubles."""
    calls, install = [], splitting.install
    monkeypatch.setattr(splitting, "install", lambda *given: calls.append(given) or install(*given))
    learner = {"name": "h-tree", "grace_period": 5, "delta": 0.5, "tau": 1.0}
    (model,), _ = grown({"learner": learner}, [STREAMS["numeric"]()], 1)
    assert 2 * len(calls) < model.summary().splits


def test_a_full_log_stops_no_split():
    learner = {"name": "h-tree", "grace_period": 5, "delta": 0.5, "tau": 1.0}
    streams = [STREAMS["numeric"]() for _ in range(8)]
    models = assert_alike({"learner": learner}, *streams)
    assert sum(model.summary().splits for model in models) > 2 * run.LOG_ENTRIES


def test_where_a_run_is_cut_changes_nothing():
    learner = {"name": "h-tree"} | QUICK
    whole = assert_alike({"learner": learner}, STREAMS["numeric"](), STREAMS["mixed"]())
    cut = assert_alike({"learner": learner}, STREAMS["numeric"](), STREAMS["mixed"](), rows=7)
    for one, other in zip(whole, cut, strict=True):
        assert np.array_equal(one.ints, other.ints)


def test_names_that_take_much_of_the_bytes_leave_the_caps_to_python():
    stream = STREAMS["numeric"]()
    schema = stream.schema(known=stream.classes)
    plenty = Spec.parse({"learner": {"name": "h-tree", "max_bytes": 1e6}})
    little = Spec.parse({"learner": {"name": "h-tree", "max_bytes": 3.9 * schema.content_bytes}})
    assert Plan.of(plenty, schema).record.sure_words > 0
    assert Plan.of(little, schema).record.sure_words == 0
