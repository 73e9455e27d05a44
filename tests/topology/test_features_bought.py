"""UFODT in a task: what a schema says of costs and thresholds, what is refused, a model that is moved."""

from __future__ import annotations

from typing import Any

import pytest

from core.learners.ufodt.account import feature_account
from streamapp.worker.task.models.files.exported import write_exported
from streamapp.worker.task.models.files.importing import control_values
from tests.topology.partition import ALWAYS, Partition, Record, config

UFODT: dict[str, Any] = {"learner": {"name": "ufodt", "hypotheses": 20}, "acquire": "none"}
SCHEMA: dict[str, Any] = {
    "attributes": [
        {"name": "age", "range": [0, 100], "cost": 2.5},
        {"name": "dose", "thresholds": [1.5, 3]},
        {"name": "smoker", "kind": "nominal", "values": ["no", "yes"], "cost": 10},
    ],
    "classes": ["well", "ill"],
}
TAKEN: dict[str, Any] = {"prefix": "t.", "partition": 3, "positions": {"instances": 400}}


def features(number: int) -> dict[str, Any]:
    cells: dict[str, Any] = {"age": number * 7 % 100, "dose": number % 5, "smoker": ["no", "yes"][number % 2]}
    if number % 6 == 0:
        del cells["dose"]
    return cells


def feed(partition: Partition, first: int, last: int, key: str = "m") -> None:
    for number in range(first, last):
        label = "ill" if number * 7 % 100 > 50 else "well"
        partition.instances({"id": f"i{number}", "features": features(number), "label": label}, key=key)


def created() -> Partition:
    partition = Partition(config(ALWAYS))
    partition.control("create", spec=UFODT | ALWAYS, schema=SCHEMA)
    return partition


def test_what_a_record_lacks_is_not_charged_and_costs_are_those_of_the_schema() -> None:
    partition = created()
    feed(partition, 0, 120)
    account = feature_account(partition.model())
    assert account.episodes == 120
    assert account.unavailable > 0
    bought = account.by_feature
    assert account.cost == pytest.approx(2.5 * bought["age"] + bought["dose"] + 10 * bought["smoker"])
    assert 0 < account.bought < 3 * 120 - 20
    hits = [
        prediction["label"] == ("ill" if number * 7 % 100 > 50 else "well")
        for number, prediction in enumerate(partition.predictions)
    ]
    assert sum(hits[60:]) > 45
    assert partition.dead_letters == []


def test_a_first_record_with_numbers_makes_a_model_that_finds_thresholds_itself() -> None:
    """A model that is not created by a control has the schema of its first record, which has no ranges."""
    partition = Partition(config(UFODT | ALWAYS))
    partition.instances({"id": "a", "features": {"age": 40, "smoker": "no"}})
    assert partition.dead_letters == []
    assert [answer["id"] for answer in partition.predictions] == ["a"]


@pytest.mark.parametrize(
    ("attribute", "complaint"),
    [
        ({"name": "age", "range": [0, 1], "cost": 0}, "cost=0"),
        ({"name": "age", "thresholds": [2, 1]}, "thresholds=[2, 1]"),
        ({"name": "age", "thresholds": "2"}, "thresholds="),
    ],
)
def test_a_schema_that_cannot_be_learned_with_is_refused(attribute: dict[str, Any], complaint: str) -> None:
    partition = Partition(config(ALWAYS))
    partition.control("create", spec=UFODT, schema={"attributes": [attribute], "classes": ["well", "ill"]})
    (letter,) = partition.dead_letters
    assert letter.reason == "bad-control"
    assert complaint in letter.message


def test_a_model_that_is_exported_and_imported_goes_on_to_the_byte() -> None:
    there, here = created(), Partition(config(ALWAYS))
    feed(there, 0, 70)
    store = there.task.models
    data = write_exported(store.record(store.keys.slot("m")), TAKEN)
    values = control_values(data, "moved", size=1500)
    assert len(values) > 1
    here.feed(*(Record("controls", b"m", value) for value in values))
    assert here.dead_letters == []
    assert here.model().snapshot() == there.model().snapshot()
    feed(there, 70, 140)
    feed(here, 70, 140)
    assert here.model().snapshot() == there.model().snapshot()
    assert feature_account(here.model()) == feature_account(there.model())
