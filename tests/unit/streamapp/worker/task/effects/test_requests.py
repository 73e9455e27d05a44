"""Label requests: features by position are named once for all models that name them alike."""

from __future__ import annotations

import orjson

from streamapp.worker.task.task import Task, TaskRun
from tests.topology.partition import ALWAYS, config
from topics.columns.records import RawRecords


def run(keys: str, documents: list[dict[str, object]], offset: int) -> TaskRun:
    n = len(keys)
    values = [orjson.dumps(each) for each in documents]
    offsets = list(range(offset, offset + n))
    return TaskRun(
        "instances", RawRecords("i", 0, offsets, [0] * n, [key.encode() for key in keys], values, [()] * n)
    )


def test_models_that_met_their_classes_in_another_order_are_asked_together() -> None:
    task = Task(0, config(ALWAYS))
    labels = ("yes", "no", "no", "yes", "yes", "no")
    task.process(run("aabbcc", [{"features": [1.0, 2.0], "label": label} for label in labels], 0))
    assert len({task.models.traits.schema_uid[task.models.keys.slot(key)] for key in "abc"}) == 2
    effects = task.process(run("abcab", [{"features": [float(n), 0.5]} for n in range(5)], 6))
    (requests,) = effects.requests
    (features,) = requests.requests.features
    assert features.rows.tolist() == [0, 1, 2, 3, 4]
    assert features.values[:, 0].tolist() == [0.0, 1.0, 2.0, 3.0, 4.0]


def test_models_that_name_their_features_otherwise_have_groups_of_their_own() -> None:
    task = Task(0, config(ALWAYS))
    task.process(run("ab", [{"features": {"x": 1.0}}, {"features": {"y": 1.0}}], 0))
    effects = task.process(run("aba", [{"features": [float(n)]} for n in range(3)], 2))
    groups = effects.requests[0].requests.features
    assert [(each.names, each.rows.tolist()) for each in groups] == [(("x",), [0, 2]), (("y",), [1])]
