"""Many episodes in one run: answered together, with the results of runs of one record each."""

from __future__ import annotations

from typing import Any

from streamapp.worker.outputs.encoder import Encoder
from tests.topology.partition import ALWAYS, NEVER, Partition, Record, config, instance
from tests.topology.test_acquisition import SCHEMA, partition, value
from topics.definitions import TopicNames

ALL: dict[str, Any] = {"name": "random", "share": 1.0, "timeout_ms": 1000}


def buying(spec: dict[str, Any] = NEVER, **settings: Any) -> Partition:
    here = Partition(config({"acquire": ALL} | spec, **settings))
    here.control("create", schema=SCHEMA)
    return here


def opened(n: int) -> list[Record]:
    return [instance({"id": f"i{number}", "features": {"y": 1.0}}, at=number) for number in range(n)]


def came(n: int) -> list[Record]:
    values = [{"x": float(number), "c": "red"} for number in range(n)]
    return [value({"id": f"i{number}", "features": values[number]}, at=n + number) for number in range(n)]


def one_by_one(here: Partition, records: list[Record]) -> None:
    for record in records:
        here.feed(record)


def test_the_values_of_a_run_lead_to_one_group_of_answers() -> None:
    """Each group costs some hundred calls of NumPy, however many answers it has."""
    here, alone = buying(), buying()
    here.feed(*opened(40))
    effects = here.feed(*came(40))
    assert [len(group.record) for group in effects.answers] == [40]
    assert effects.counts["feature_values.taken"] == 40
    for records in (opened(40), came(40)):
        one_by_one(alone, records)
    assert here.predictions == alone.predictions
    assert here.task.digest() == alone.task.digest()


def test_records_that_need_no_feature_are_answered_together() -> None:
    here = buying()
    features = {"x": 1.0, "y": 2.0, "c": "red"}
    here.instances({"id": "first", "features": features})  # "red" gets its code
    effects = here.instances(*({"id": f"i{number}", "features": features} for number in range(40)))
    assert [len(group.record) for group in effects.answers] == [40]


def test_labels_are_requested_for_all_of_them_with_the_features_that_were_bought() -> None:
    here, alone = buying(ALWAYS), buying(ALWAYS)
    here.feed(*opened(20))
    here.feed(*came(20))
    for records in (opened(20), came(20)):
        one_by_one(alone, records)
    assert [request["instance_id"] for request in here.requests] == [f"i{number}" for number in range(20)]
    assert here.requests[7]["features"] == {"x": 7.0, "y": 1.0, "c": "red"}
    assert here.requests == alone.requests
    assert here.task.digest() == alone.task.digest()


def test_a_record_that_makes_its_model_is_the_first_of_a_run_or_a_later_one() -> None:
    for first in (0, 1, 3):
        here = Partition(config({"acquire": ALL} | NEVER))
        here.control("create", key="known", schema=SCHEMA)
        known = [
            instance({"id": f"k{number}", "features": {"y": 1.0}}, key="known") for number in range(first)
        ]
        new = [{"id": "a", "features": {"x": 1.0, "y": 2.0}}, {"id": "b", "features": {"x": 1.0}}]
        here.feed(*known, *(instance(one, key="new") for one in new))
        assert [prediction["id"] for prediction in here.predictions] == ["a"]
        assert here.feature_requests[-1]["instance_id"] == "b"
        assert here.feature_requests[-1]["features"] == ["y"]


def test_a_deadline_within_a_run_is_met_by_the_record_after_it() -> None:
    here = buying()
    records = opened(2)
    here.feed(*records, instance({"id": "late", "features": {"y": 2.0}}, at=5000))
    assert [prediction["id"] for prediction in here.predictions] == ["i0", "i1"]
    assert {prediction["acquired"]["stop"] for prediction in here.predictions} == {"deadline"}
    assert here.task.open_episodes == 1


def test_a_label_in_a_run_teaches_before_the_next_record_is_asked_about() -> None:
    """The tree splits at a label in the middle of a run, and requests what it tests from then on."""
    here, alone = partition(), partition()
    documents: list[dict[str, Any]] = []
    for number in range(400):
        y = float(number % 10)
        documents.append(
            {"id": f"t{number}", "features": {"x": 1.0, "y": y}, "label": "high" if y > 5 else "low"}
        )
        documents.append({"id": f"q{number}", "features": {"x": 1.0}})
    here.instances(*documents)
    for document in documents:
        alone.instances(document)
    asked = [request["instance_id"] for request in here.feature_requests]
    assert asked and asked[0] != "q0"
    assert here.feature_requests == alone.feature_requests
    assert here.task.digest() == alone.task.digest()


def test_dead_letters_of_a_run_are_in_the_order_of_its_records() -> None:
    here, alone = buying(), buying()
    records = opened(3)
    bad = [
        value({"id": "i0", "features": {"nonsense": 1.0}}, at=10),
        value({"id": "i1", "features": {"x": 1.0, "c": "red"}}, at=11),
        value({"id": "i2", "features": {"x": "no number"}}, at=12),
    ]
    here.feed(*records)
    here.feed(*bad)
    one_by_one(alone, [*records, *bad])
    assert [letter.reason for letter in here.dead_letters] == ["not-asked", "wrong-schema"]
    assert here.dead_letters == alone.dead_letters


def test_event_ids_do_not_depend_on_the_runs() -> None:
    """Two episodes end at one record; the second is answered apart where its instance came again before."""
    encoders = [Encoder(TopicNames("t."), headers="full") for _ in range(2)]
    here, alone = (Partition(config({"acquire": ALL} | NEVER), encoder=encoder) for encoder in encoders)
    again = [
        instance({"id": "i1", "features": {"y": 1.0}}, at=4),
        instance({"id": "late", "features": {"y": 2.0}}, at=5000),
    ]
    for tried in (here, alone):
        tried.control("create", schema=SCHEMA)
    here.feed(*opened(2), *again)
    one_by_one(alone, [*opened(2), *again])
    assert [prediction["id"] for prediction in here.predictions] == ["i1", "i0", "i1"]
    assert {topic: sent for topic, sent in here.sent.items() if sent} == dict(alone.sent)
