"""Reaction to drifts, told by wrong answers at will, as the twin reacts: with warnings and without."""

import numpy as np
import pytest

from core.events import Drift
from core.model.model import Model as CoreModel
from core.model_table import ModelTable
from core.spec import Spec
from tests.naive.compare import assert_same_tree, twin_of
from tests.naive.rows import numeric

N = 4_000
LEARNER = {"name": "h-tree", "grace_period": 40, "delta": 0.05, "tau": 0.2}


def wrong_answers():
    """Return bool[N]: one in ten, and bursts of every length: alarms come with and without a warning."""
    rng = np.random.default_rng(10)
    wrong = rng.random(N) < 0.1
    for start in range(150, N, 150):
        length = int(rng.integers(2, 40))
        wrong[start : start + length] |= rng.random(length) < rng.choice([0.4, 1.0])
    return wrong


@pytest.mark.parametrize("compat", [None, "moa"])
def test_trees_change_as_the_twin_changes_them(compat):
    """[D24] A drift without a warning begins with a new tree; MOA's with the tree of the last false alarm."""
    stream = numeric(N)
    spec = {
        "learner": LEARNER | {"compat": compat},
        "drift": {"name": "ddm", "warning": 2.8},  # near the drift's 3: a drift often comes without a warning
    }
    twin = twin_of(spec, stream)
    table = ModelTable()
    index = table.add(CoreModel.create(Spec.parse(spec), stream.schema()))
    answers = np.where(wrong_answers(), 1 - stream.y, stream.y).astype(np.int32)
    events = []
    for start in range(0, N, 137):
        rows = slice(start, start + 137)
        n = len(stream.y[rows])
        learned = table.learn(
            np.full(n, index),
            stream.x[rows],
            stream.y[rows],
            stream.weight[rows],
            answers[rows],
            np.zeros(n, dtype=bool),
        )
        events += [(start + event.row, event) for event in learned if isinstance(event, Drift)]
    levels, before = [], "in-control"
    stale = False  # a background tree is left over from a false alarm
    taken_over_stale = 0
    for row in range(N):
        alarmed = not twin.background_is_stale
        twin.learn(stream.x[row].tolist(), int(stream.y[row]), float(stream.weight[row]), int(answers[row]))
        if twin.level != before:
            levels.append((row, twin.level))
        if twin.level == "drift":
            taken_over_stale += stale and not alarmed
            stale = False
        elif alarmed and twin.level == "in-control":
            stale = True
        before = twin.level
    assert [(row, event.level) for row, event in events] == levels
    assert twin.rebuilds == table.model(index).summary().rebuilds > 3
    assert taken_over_stale > 0, "the stream has the case that divides ours from MOA's"
    actions = [event.action for _, event in events if event.level == "drift"]
    assert {"new tree", "background tree took over"} == set(actions)
    assert_same_tree(table.model(index), twin.tree)
