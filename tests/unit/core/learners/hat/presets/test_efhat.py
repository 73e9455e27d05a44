"""EFHAT: it splits as EFDT does, and replaces subtrees as HAT does."""

import dataclasses
import itertools

import numpy as np
import pytest

from core.errors import ParameterError
from core.events import Drift, Split
from core.learners.protocol import build
from core.model import validate
from core.model.model import Model
from core.model_table import ModelTable
from core.spec import Spec
from tests.naive.rows import mixed
from tests.unit.core.builders import answer, table_of

EAGER = {"grace_period": 25, "delta": 0.1, "drift_confidence": 0.05, "switch_records": 60}


def spec_of(name, **learner):
    return Spec.parse({"learner": {"name": name, **learner}, "evaluation": {"every": 0}})


def turning(n=3000, seed=0):
    """Return records of three attributes; in the middle the class begins to follow another one."""
    draw = np.random.default_rng(seed)
    x = draw.random((n, 3))
    y = np.where(np.arange(n) < n // 2, x[:, 0] > 0.5, x[:, 1] > 0.3) ^ (draw.random(n) < 0.02)
    rows = dataclasses.replace(mixed(n), x=x, attributes=(None, None, None), classes=2)
    return dataclasses.replace(rows, y=y.astype(np.int32), weight=np.ones(n))


def grown(spec, rows):
    table = table_of(rows.schema(known=rows.classes), spec)
    return table, answer(table, rows.x, rows.y, rows.weight)


def test_two_attributes_that_are_equally_good_do_not_keep_a_leaf_from_its_split():
    """HAT waits until the one leads the other, EFHAT until the best leads no split."""
    draw = np.random.default_rng(3)
    x = draw.random((1500, 2))
    x[:, 1] = x[:, 0]
    label = (x[:, 0] > 0.5).astype(np.int32)
    splits = {}
    for name in ("hat", "efhat"):
        table = table_of(turning().schema(known=2), spec_of(name, tau=0.0))
        rows = np.column_stack([x, draw.random(1500)])
        splits[name] = [e for e in answer(table, rows, label).events if isinstance(e, Split)]
    assert splits["hat"] == []
    assert splits["efhat"][0].row < 400
    assert splits["efhat"][0].merits[0] > splits["efhat"][0].bound


def test_a_subtree_whose_error_rises_is_replaced():
    rows = turning(6000)
    table, answers = grown(spec_of("efhat", **EAGER), rows)
    actions = {event.action for event in answers.events if isinstance(event, Drift)}
    assert {"alternate tree started", "alternate tree took over"} <= actions
    assert (answers.prediction == rows.y)[4000:].mean() > 0.93
    validate.check(table.model(0))


def test_the_same_bytes_in_any_cut_of_the_run():
    rows = turning()
    spec = spec_of("efhat", **EAGER)
    whole, answers = grown(spec, rows)
    table, events = table_of(rows.schema(known=2), spec), []
    for first, end in itertools.pairwise([0, 1, *range(40, 3000, 137), 3000]):
        part = slice(first, end)
        got = answer(table, rows.x[part], rows.y[part], rows.weight[part])
        events += [dataclasses.replace(event, row=event.row + first) for event in got.events]
        restored = Model.restore(table.model(0).snapshot())
        table = ModelTable()
        table.add(restored)
    assert events == answers.events
    assert table.model(0).snapshot() == whole.model(0).snapshot()


def test_there_is_no_published_code_to_be_compatible_with():
    with pytest.raises(ParameterError, match=r"^compat='moa' must be one of null for 'efhat'"):
        spec_of("efhat", compat="moa")
    assert build({"name": "extremely-fast-hoeffding-adaptive-tree"}).to_dict()["name"] == "efhat"
