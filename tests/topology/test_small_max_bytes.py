"""A spec whose `max_bytes` has no room for the features of its key hurts no other key and no later record."""

from __future__ import annotations

from typing import Any

import pytest

from tests.topology.logged import Logged
from tests.topology.partition import ALWAYS, Partition, config
from tests.topology.test_refused_controls import replayed

TINY: dict[str, Any] = {"learner": {"name": "h-tree", "max_bytes": 1}}
WIDE = {f"f{number}": 1.0 for number in range(300)}
SCHEMA = {"attributes": [{"name": "x"}]}


@pytest.mark.parametrize(
    ("command", "key", "body"),
    [
        ("create", "k", {"schema": SCHEMA}),
        ("reset", "awaits", {"schema": SCHEMA}),
        ("reset", "m", {}),
        ("challenge", "m", {}),
    ],
)
def test_a_refused_command_takes_no_place_and_changes_no_model(
    command: str, key: str, body: dict[str, Any]
) -> None:
    live = Logged(config(ALWAYS, models_max_count=2))
    live.control("create", key="awaits", spec="majority-class")
    live.instances({"features": {"x": 1.0}})
    for _ in range(3):
        live.control(command, key=key, spec=TINY, **body)
    assert [letter.reason for letter in live.dead_letters] == ["bad-control"] * 3
    assert "max_bytes=1 must be at least" in live.dead_letters[0].message
    assert replayed(live, lambda entry: entry).digest() == live.task.digest()
    live.instances({"features": {"x": 1.0, "y": 2.0}})
    assert live.model().schema.names == ("x", "y")
    live.instances({"features": {"x": 1.0}}, key="awaits")
    assert live.model("awaits").spec.learner.name == "majority_class"
    assert len(live.dead_letters) == 3


def test_the_first_record_of_a_key_without_room_becomes_a_dead_letter() -> None:
    partition = Partition(config(ALWAYS, models_max_count=1))
    partition.control("create", key="k", spec=TINY)
    partition.instances({"features": {"x": 1.0}}, key="k")
    ((reason, message),) = [(letter.reason, letter.message) for letter in partition.dead_letters]
    assert reason == "wrong-schema" and "max_bytes=1 must be at least" in message
    partition.instances({"features": {"x": 1.0}})
    assert len(partition.predictions) == 1


def test_features_beyond_the_room_come_in_the_run_that_makes_the_model_or_later() -> None:
    small = config(ALWAYS | {"learner": {"name": "h-tree", "max_bytes": 2500}})
    documents = [{"features": {"x": 1.0}}, {"features": WIDE}]
    whole, cut = Partition(small), Partition(small)
    whole.instances(*documents)
    for document in documents:
        cut.instances(document)
    assert not whole.dead_letters
    assert len(whole.model().schema.names) == 1 + len(WIDE)
    assert whole.task.digest() == cut.task.digest()
