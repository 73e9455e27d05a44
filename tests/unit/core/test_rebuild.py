import numpy as np
import pytest

from core import validate
from core.events import Drift
from core.model import Model
from core.model_table import ModelTable
from core.tree import layout as at
from tests.unit.core.builders import schema_of, spec_of, table_of

SCHEMA = schema_of(None, None)
DDM = {"name": "ddm"}


def rows(n=400, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.random((n, 2))
    return x, (x[:, 0] > 0.5).astype(np.int32)


def learn(table, x, label, predicted):
    n = len(x)
    zeros = np.zeros(n, dtype=np.int64)
    return table.learn(zeros, x, label, np.ones(n), predicted.astype(np.int32), np.zeros(n, dtype=np.bool_))


def errors_to(label, wrong):
    """Return predictions that are wrong where asked."""
    return np.where(wrong, 1 - label, label)


def tree_words(model):
    t = model.main
    return model.ints[t : t + int(model.ints[t + at.TREE_WORDS])]


def test_the_tree_restarts_from_the_first_warning_of_the_run_of_warnings():
    """Model == a fresh tree trained on exactly the records from that warning to the drift, each once."""
    x, label = rows()
    wrong = np.zeros(400, dtype=bool)
    wrong[4:100:5] = True
    wrong[100:] = True
    spec = spec_of(drift=DDM, grace_period=1000)
    table = table_of(SCHEMA, spec)
    events = [e for e in learn(table, x, label, errors_to(label, wrong)) if isinstance(e, Drift)]
    assert [(e.row, e.level, e.action) for e in events[:3]] == [
        (103, "warning", "background tree started"),
        (109, "drift", "background tree took over"),
        (110, "in-control", "none"),
    ]
    assert events[0].detector == "ddm"
    assert events[1].error_rate == pytest.approx(0.272727, abs=1e-6)

    drifted, fresh = table_of(SCHEMA, spec), table_of(SCHEMA, spec)
    learn(drifted, x[:110], label[:110], errors_to(label, wrong)[:110])
    unknown = np.full(7, -1)
    learn(fresh, x[103:110], label[103:110], unknown)
    model = drifted.model(0)
    assert model.ints[at.MODEL_BACKGROUND] == 0
    assert model.summary().rebuilds == 1
    ours, theirs = tree_words(model), tree_words(fresh.model(0))
    # The background tree is only ever trained, so that it counts what passes through it then.
    routed = at.TREE_HEADER + at.NODE_ROUTED
    assert model.floats[model.main + routed] == 6.0
    different = np.flatnonzero(ours != theirs)
    assert different.tolist() in ([], [routed])
    validate.check(model)


def test_a_false_alarm_leaves_no_background_tree():
    x, label = rows()
    wrong = np.zeros(400, dtype=bool)
    wrong[4:100:5] = True
    wrong[100:105] = True
    table = table_of(SCHEMA, spec_of(drift=DDM, grace_period=1000))
    small = table.model(0).nbytes
    events = [
        e for e in learn(table, x[:200], label[:200], errors_to(label, wrong)[:200]) if isinstance(e, Drift)
    ]
    assert [e.action for e in events] == ["background tree started", "background tree dropped"]
    assert table.model(0).nbytes == small
    assert table.model(0).summary().rebuilds == 0


def test_a_drift_without_warning_begins_with_a_new_tree():
    x, label = rows()
    table = table_of(SCHEMA, spec_of(drift=DDM))
    wrong = np.arange(41) == 40
    events = learn(table, x[:41], label[:41], errors_to(label[:41], wrong))
    assert [(e.row, e.level, e.action) for e in events] == [(40, "drift", "new tree")]
    t = table.model(0).main
    assert table.model(0).ints[t + at.TREE_LABELS] == 1  # the record of the drift
    assert table.model(0).summary().labels == 41


def test_moa_puts_a_stale_tree_in_place_of_one_without_warning():
    """[D24]: a false alarm, then a drift straight from in control."""
    x, label = rows(2000)
    wrong = np.zeros(2000, dtype=bool)
    wrong[4:100:5] = True
    wrong[100:105] = True  # the false alarm, until p + s has fallen below the warning
    actions = {}
    for compat in (None, "moa"):
        table = table_of(SCHEMA, spec_of(drift=DDM | {"warning": 2.9}, compat=compat))
        found = []
        for i in range(400):
            predicted = errors_to(label[i : i + 1], wrong[i : i + 1] if i < 300 else np.array([True]))
            found += [
                e for e in learn(table, x[i : i + 1], label[i : i + 1], predicted) if isinstance(e, Drift)
            ]
            if found and found[-1].level == "drift":
                break
        actions[compat] = [e.action for e in found]
        validate.check(table.model(0))
    assert actions[None][-1] in ("new tree", "background tree took over")
    assert actions["moa"][-1] == "background tree took over"


def test_detection_is_blind_to_which_class_is_which():
    x, label = rows()
    wrong = np.random.default_rng(1).random(400) < np.where(np.arange(400) < 200, 0.1, 0.5)
    levels = []
    for labels in (label, 1 - label):
        table = table_of(SCHEMA, spec_of(drift=DDM))
        events = learn(table, x, labels, errors_to(labels, wrong))
        levels.append([(e.row, e.level) for e in events if isinstance(e, Drift)])
    assert levels[0] == levels[1] != []


def test_a_snapshot_in_the_middle_of_a_warning_holds_both_trees():
    x, label = rows()
    wrong = np.zeros(400, dtype=bool)
    wrong[4:100:5] = True
    wrong[100:] = True
    predicted = errors_to(label, wrong)
    whole, first = (table_of(SCHEMA, spec_of(drift=DDM, grace_period=3)) for _ in range(2))
    learn(whole, x, label, predicted)
    learn(first, x[:106], label[:106], predicted[:106])
    model = Model.restore(first.model(0).snapshot())
    assert model.ints[at.MODEL_BACKGROUND] > model.main
    validate.check(model)
    second = ModelTable()
    second.add(model)
    learn(second, x[106:], label[106:], predicted[106:])
    assert second.model(0).snapshot() == whole.model(0).snapshot()
