"""UFODT in a stream whose numbers have no declared thresholds: the first values make them."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import orjson
import pytest

from core.learners.ufodt.account import feature_account, thresholds_of
from streamapp.worker.task.models.files.exported import write_exported
from streamapp.worker.task.models.files.importing import control_values
from streamapp.worker.task.task import Task
from tests.topology.partition import ALWAYS, PARTITION, Partition, Record, config

WARM_UP = 12
LEARNER: dict[str, Any] = {"name": "ufodt", "warm_up": WARM_UP, "n_thresholds": 3, "hypotheses": 20}
SET = {"attributes": 2, "left": 0}


def rows(n: int) -> list[dict[str, Any]]:
    """Return instances of two numbers and nothing else; the first one decides the class."""
    draw = random.Random(4)
    made_rows = []
    for number in range(n):
        age = draw.gauss(50, 9)
        label = "old" if age > 52 else "young"
        cells = {"age": age, "dose": draw.choice([1, 2, 3])}
        made_rows.append({"id": f"i{number}", "features": cells, "label": label})
    return made_rows


def made(here: Partition) -> list[dict[str, Any]]:
    return [
        event.json["detail"] for event in here.sent["model-events"] if event.json["event"] == "thresholds-set"
    ]


def test_numbers_without_any_schema_are_learned_and_their_thresholds_are_said_once() -> None:
    here = Partition(config(ALWAYS | {"learner": LEARNER}))
    here.instances(*rows(120))
    assert here.dead_letters == []
    assert made(here) == [SET]
    (notice,) = [notice.text for notice in here.notices if "thresholds" in notice.text]
    assert notice == "numeric attributes that got thresholds of their first values (warm_up): 2"
    right = [answer["label"] == row["label"] for answer, row in zip(here.predictions, rows(120), strict=True)]
    assert np.mean(right[WARM_UP + 20 :]) > 0.75
    cuts = thresholds_of(here.model())
    ages = sorted(row["features"]["age"] for row in rows(WARM_UP))
    assert cuts["age"] == pytest.approx([(ages[i - 1] + ages[i]) / 2 for i in (3, 6, 9)])


def test_a_stream_that_brings_no_features_is_asked_for_all_of_them_until_there_are_thresholds() -> None:
    schema = {"attributes": [{"name": "age"}, {"name": "dose", "cost": 2}], "classes": ["young", "old"]}
    asking, whole = (Partition(config(ALWAYS)) for _ in range(2))
    for one_partition, acquire in ((asking, "utility"), (whole, "none")):
        one_partition.control("create", spec=ALWAYS | {"learner": LEARNER, "acquire": acquire}, schema=schema)
    for number, row in enumerate(rows(60)):
        asking.instances(row | {"features": {"unrelated": 1}})
        asked = []
        while asking.task.open_episodes:
            (name,) = asking.feature_requests[-1]["features"]
            asked.append(name)
            value = {"id": row["id"], "features": {name: row["features"][name]}}
            asking.feed(Record("feature_values", b"m", orjson.dumps(value)))
        if number < WARM_UP:
            assert asked == ["age", "dose"]
        whole.instances(row)
    assert made(asking) == made(whole) == [SET]
    assert np.array_equal(asking.model().ints, whole.model().ints)
    assert feature_account(asking.model()).bought < 2 * 60


@pytest.mark.parametrize("cut", [5, WARM_UP, 30])
def test_thresholds_survive_a_restore_and_an_export(cut: int) -> None:
    here = Partition(config(ALWAYS | {"learner": LEARNER}))
    here.instances(*rows(cut))
    again = Partition(here.task.config)
    again.task = Task.from_units(PARTITION, here.task.config, None, [*here.task.cut().units()])
    again._offsets.update(here._offsets)
    store = here.task.models
    taken: dict[str, Any] = {"prefix": "t.", "partition": 3, "positions": {"instances": cut}}
    there = Partition(config(ALWAYS))
    values = control_values(write_exported(store.record(store.keys.slot("m")), taken), "moved", size=1500)
    there.feed(*(Record("controls", b"m", value) for value in values))
    assert thresholds_of(there.model()) == thresholds_of(here.model())
    for one_partition in (here, again, there):
        one_partition.instances(*rows(60)[cut:])
    assert again.task.digest() == here.task.digest()
    assert np.array_equal(there.model().ints, here.model().ints)
    assert made(here) == [SET]
    assert made(there) == ([SET] if cut < WARM_UP else [])
