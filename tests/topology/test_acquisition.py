"""Feature acquisition: the rules of an episode, one by one."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import orjson
import pytest

from core.active.acquirers.path import Plugin as Path
from tests.topology.partition import ALWAYS, NEVER, NOW, Partition, Record, config, label
from topics.codecs import encode_instances
from topics.columns.records import Features

BUYS: dict[str, Any] = {"name": "path", "explore": 0.001, "timeout_ms": 1000}
"""One record in a thousand is bought whole: none of the few here."""
SCHEMA: dict[str, Any] = {
    "attributes": [{"name": "x"}, {"name": "y"}, {"name": "c", "kind": "nominal", "open": True}],
    "classes_open": True,
    "max_classes": 3,
}


def value(document: dict[str, Any], *, key: str = "m", at: int = 0) -> Record:
    return Record("feature_values", key.encode(), orjson.dumps(document), at)


def partition(spec: dict[str, Any] | None = None, *, acquire: Any = None, **settings: Any) -> Partition:
    """Return a partition whose model `m` has one split, at x = 5."""
    trained_partition = Partition(config({"acquire": acquire or BUYS} | (spec or ALWAYS), **settings))
    trained(trained_partition, "m")
    return trained_partition


def trained(here: Partition, key: str, schema: dict[str, Any] = SCHEMA) -> None:
    here.control("create", key=key, schema=schema)
    draw = random.Random(1)
    for number in range(40):
        x = draw.choice([draw.uniform(0, 4), draw.uniform(6, 10)])
        cells = {"x": x, "y": draw.uniform(0, 10), "c": draw.choice(["red", "blue"])}
        here.instances({"id": f"t{number}", "features": cells, "label": "high" if x > 5 else "low"}, key=key)
    assert here.model(key).summary().splits == 1
    assert not here.feature_requests


def counted(here: Partition, *names: str) -> list[int]:
    return [here.counts.get(name, 0) for name in names]


# -- the course of an episode -------------------------------------------------------------------------------


def test_only_what_the_path_tests_is_asked_for_and_the_answer_says_what_was_bought() -> None:
    here = partition()
    before = len(here.predictions)
    here.instances({"id": "a", "features": {"y": 3.0}}, at=5)
    assert len(here.predictions) == before
    (request,) = here.feature_requests
    assert request == {
        "request_id": "3-40-q1",
        "instance_id": "a",
        "features": ["x"],
        "cost": 1.0,
        "utility": None,
        "known": {"y": 3.0},
        "expires_ms": NOW + 5 + 1000,
    }
    here.feed(value({"id": "a", "features": {"x": 9.0}}, at=7))
    prediction = here.predictions[-1]
    assert prediction["label"] == "high"
    assert prediction["acquired"] == {"features": ["x"], "cost": 1.0, "stop": "one_region"}
    assert here.task.open_episodes == 0
    assert here.task.counters["episodes.one-region"] == 1


def test_a_category_that_the_schema_lacks_is_not_shown_as_another_one() -> None:
    here = Partition(config({"acquire": BUYS} | ALWAYS))
    closed = [*SCHEMA["attributes"][:2], {"name": "c", "kind": "nominal", "values": ["red", "blue"]}]
    trained(here, "m", {**SCHEMA, "attributes": closed})
    here.instances({"id": "a", "features": {"y": 3.0, "c": "green"}})
    (request,) = here.feature_requests
    assert request["features"] == ["x"]
    assert request["known"] == {"y": 3.0}
    here.feed(value({"id": "a", "features": {"x": 9.0}}))
    assert here.predictions[-1]["label"] == "high"


def test_a_record_that_brings_what_the_path_needs_is_answered_at_once() -> None:
    here = partition()
    here.instances({"id": "a", "features": {"x": 1.0}})
    assert here.predictions[-1]["label"] == "low"
    assert here.predictions[-1]["acquired"] == {"features": [], "cost": 0.0, "stop": "one_region"}
    assert not here.feature_requests


def test_several_episodes_of_a_model_are_open_and_answered_in_any_order() -> None:
    here = partition()
    for name in "abc":
        here.instances({"id": name, "features": {"y": 1.0}})
    assert here.task.open_episodes == 3
    for name, x in (("c", 9.0), ("a", 1.0), ("b", 8.0)):
        here.feed(value({"id": name, "features": {"x": x}}))
    answers = [(answer["id"], answer["label"]) for answer in here.predictions[-3:]]
    assert answers == [("c", "high"), ("a", "low"), ("b", "high")]


def test_what_is_not_to_be_had_costs_nothing_and_the_record_goes_where_most_go() -> None:
    here = partition()
    here.instances({"id": "a", "features": {"y": 1.0}})
    here.feed(value({"id": "a", "unavailable": {"x": "the customer does not say"}}))
    assert here.predictions[-1]["acquired"] == {"features": [], "cost": 0.0, "stop": "one_region"}
    assert counted(here, "episodes.features-unavailable", "episodes.features-bought") == [1, 0]


def test_a_client_that_wants_the_answer_now_gets_it() -> None:
    here = partition()
    here.instances({"id": "a", "features": {"y": 1.0}})
    here.feed(value({"id": "a", "finish": True}))
    assert here.predictions[-1]["acquired"]["stop"] == "finish"
    here.feed(value({"id": "a", "finish": True}))
    assert counted(here, "feature_values.late") == [1]


def test_what_costs_more_than_a_record_may_is_not_asked_for() -> None:
    here = partition(acquire=BUYS | {"budget": 0.5})
    here.instances({"id": "a", "features": {"y": 1.0}})
    assert here.predictions[-1]["acquired"] == {"features": [], "cost": 0.0, "stop": "budget"}
    assert not here.feature_requests


# -- deadlines, room ----------------------------------------------------------------------------------------


def test_after_the_deadline_it_is_answered_with_what_is_known_by_whatever_record_comes() -> None:
    here = partition()
    trained(here, "other")
    here.instances({"id": "a", "features": {"y": 1.0}}, at=0)
    here.feed(label({"id": "nobody", "label": "low"}, at=1000))
    assert here.task.open_episodes == 1
    here.feed(label({"id": "nobody else", "label": "low"}, key="other", at=1001))
    assert here.predictions[-1]["acquired"]["stop"] == "deadline"
    assert here.sent["predictions"][-1].key == b"m"
    assert here.sent["label-requests"][-1].key == b"m"
    here.feed(value({"id": "a", "features": {"x": 9.0}}, at=1001))
    assert counted(here, "feature_values.late") == [1]


def test_a_value_at_the_deadline_is_in_time() -> None:
    here = partition()
    here.instances({"id": "a", "features": {"y": 1.0}}, at=0)
    here.feed(value({"id": "a", "features": {"x": 9.0}}, at=1000))
    assert here.predictions[-1]["acquired"]["features"] == ["x"]


def test_beyond_the_bound_the_oldest_is_answered_with_what_it_knows() -> None:
    here = partition(episodes_max_count=2)
    for name in "abc":
        here.instances({"id": name, "features": {"y": 1.0}})
    assert (here.predictions[-1]["id"], here.predictions[-1]["acquired"]["stop"]) == ("a", "room")
    assert here.task.open_episodes == 2
    assert counted(here, "episodes.room") == [1]


def test_bytes_are_bounded_too() -> None:
    here = partition(episodes_max_bytes=3000)
    for name in "abc":
        here.instances({"id": name, "features": {"y": 1.0}})
    assert here.task.open_episodes == 2
    here = partition(episodes_max_bytes=10)
    here.instances({"id": "a", "features": {"y": 1.0}})
    assert here.predictions[-1]["acquired"]["stop"] == "room"


# -- labels -------------------------------------------------------------------------------------------------


def test_a_label_that_comes_before_the_prediction_waits_and_the_episode_never_sees_it() -> None:
    here = partition()
    plain = partition()
    for one_partition in (here, plain):
        one_partition.instances({"id": "a", "features": {"y": 1.0}})
    here.labels({"id": "a", "label": "low"})
    assert here.task.early_labels == 1
    assert counted(here, "labels.early") == [1]
    for one_partition in (here, plain):
        one_partition.feed(value({"id": "a", "features": {"x": 9.0}}))
    assert here.predictions[-1] == plain.predictions[-1]
    assert counted(here, "early.learned", "labels.learned") == [1, 1]
    assert here.requests == []  # its label is here
    assert plain.requests[-1]["instance_id"] == "a"
    here.labels({"id": "a", "label": "low"})
    assert counted(here, "labels.duplicate") == [1]


def test_a_label_that_comes_with_the_instance_waits_too() -> None:
    here = partition()
    version = here.model().summary().labels
    here.instances({"id": "a", "features": {"y": 1.0}, "label": "high"})
    assert here.task.early_labels == 1
    here.feed(value({"id": "a", "features": {"x": 9.0}}))
    assert here.predictions[-1]["version"] == version
    assert here.model().summary().labels == version + 1


def test_a_label_after_the_prediction_is_learned_with_what_was_bought() -> None:
    here = partition()
    here.instances({"id": "a", "features": {"y": 1.0}})
    here.feed(value({"id": "a", "features": {"x": 9.0}}))
    assert here.requests[-1]["request_id"] == "3-40"
    assert here.requests[-1]["features"] == {"x": 9.0, "y": 1.0}
    here.labels({"id": "a", "label": "high"})
    assert counted(here, "labels.learned") == [1]


def test_who_says_that_no_label_will_come_drops_what_waits_for_it() -> None:
    """The `drop` of the protocol: a label that is declined."""
    here = partition()
    labels = here.model().summary().labels
    here.instances({"id": "a", "features": {"y": 1.0}})
    here.feed(value({"id": "a", "features": {"x": 9.0}}))
    here.labels({"id": "a", "declined": True})
    assert here.model().summary().labels == labels
    assert counted(here, "labels.declined", "labels.learned", "labels.dead-letter") == [1, 0, 0]
    here.labels({"id": "a", "label": "high"})
    assert counted(here, "labels.learned", "labels.duplicate") == [0, 1]


def test_a_class_that_the_model_has_no_room_for_is_refused_before_anything_is_bought() -> None:
    here = partition(models_max_classes=2)
    here.instances({"id": "a", "features": {"x": 1.0}, "label": "third"})
    here.instances({"id": "b", "features": {"x": 1.0}, "label": "fourth"})
    assert here.dead_letters[-1].reason == "too-many-classes"


# -- exploration --------------------------------------------------------------------------------------------


def test_a_record_that_is_explored_is_bought_whole_and_weighs_the_inverse_probability() -> None:
    here = partition(NEVER, acquire=BUYS | {"explore": 0.5}, pending_keep="all")
    whole = path = 0
    for number in range(200):
        name = f"e{number}"
        here.instances({"id": name, "features": {"y": 1.0}})
        request = here.feature_requests[-1]
        before = here.model().summary()
        cells = {"x": 9.0, "c": "red"}
        here.feed(
            value({"id": name, "features": {feature: cells[feature] for feature in request["features"]}})
        )
        acquired = here.predictions[-1]["acquired"]
        pending = here.task.pending
        serial, _ = pending.find(("m", name), NOW)
        scale = float(pending.column("scale", np.array([serial]))[0])
        if request["features"] == ["x", "c"]:
            whole += 1
            assert (acquired["stop"], acquired["cost"], scale) == ("exhausted", 2.0, 2.0)
        else:
            path += 1
            assert (request["features"], acquired["stop"], scale) == (["x"], "one_region", 1.0)
        assert here.model().summary().records == before.records + 1
    assert whole + path == 200
    assert 70 < whole < 130  # 100 expected, standard deviation 7


def test_the_draw_is_that_of_the_record_whatever_else_happens() -> None:
    first, again = (partition(acquire=BUYS | {"explore": 0.5}) for _ in range(2))
    again.control("freeze")
    again.control("freeze", frozen=False)
    for one_partition in (first, again):
        for number in range(20):
            one_partition.instances({"id": f"e{number}", "features": {"y": 1.0}})
    assert [request["features"] for request in first.feature_requests] == [
        request["features"] for request in again.feature_requests
    ]


def test_a_tree_that_begins_with_nothing_splits_by_what_it_explores() -> None:
    here = Partition(config({"acquire": BUYS | {"explore": 0.3}, "query": "never"}, pending_keep="all"))
    here.control("create", schema={"attributes": [{"name": "x"}, {"name": "y"}], "classes": ["high", "low"]})
    draw = random.Random(3)
    for number in range(300):
        cells = {"x": draw.choice([draw.uniform(0, 4), draw.uniform(6, 10)]), "y": draw.uniform(0, 10)}
        here.instances({"id": f"n{number}", "features": {"y": cells["y"]}})
        for request in here.feature_requests[-1:]:
            if request["instance_id"] == f"n{number}":
                here.feed(
                    value(
                        {
                            "id": f"n{number}",
                            "features": {feature: cells[feature] for feature in request["features"]},
                        }
                    )
                )
        here.labels({"id": f"n{number}", "label": "high" if cells["x"] > 5 else "low"})
    assert here.model().summary().splits >= 1
    assert here.predictions[-1]["acquired"]["features"] == ["x"]  # now the path needs it
    bought, missing = counted(here, "episodes.features-bought", "episodes.features-missing")
    assert 0 < bought <= missing


# -- values that do not fit ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        ({"features": {"y": 1.0}}, "not-asked"),  # it came with the record
        ({"features": {"x": 1.0, "c": "red"}}, "not-asked"),  # x was asked for, c was not
        ({"features": {"nonesuch": 1.0}}, "not-asked"),
        ({"unavailable": {"c": "why not"}}, "not-asked"),
        ({"features": {"x": "nine"}}, "wrong-schema"),
    ],
)
def test_a_value_that_nobody_asked_for_is_refused_and_changes_nothing(document: Any, reason: str) -> None:
    here = partition()
    here.instances({"id": "a", "features": {"y": 1.0}})
    (before,) = here.task._state.episodes.image().episodes
    here.feed(value({"id": "a"} | document))
    assert here.dead_letters[-1].reason == reason
    assert here.task._state.episodes.image().episodes == (before,)
    here.feed(value({"id": "a", "features": {"x": 9.0}}))
    assert here.predictions[-1]["acquired"]["features"] == ["x"]


def test_a_value_that_comes_twice_is_paid_for_once() -> None:
    here = partition(acquire=BUYS | {"explore": 1.0})
    here.instances({"id": "a", "features": {"y": 1.0}})
    here.feed(value({"id": "a", "features": {"x": 9.0}}), value({"id": "a", "features": {"x": 1.0}}))
    assert counted(here, "feature_values.duplicate", "episodes.features-bought") == [1, 1]
    here.feed(value({"id": "a", "features": {"c": "green"}}))
    assert here.predictions[-1]["acquired"]["cost"] == 2.0
    assert here.predictions[-1]["label"] == "high"


def test_values_of_one_request_may_come_one_by_one_in_any_order() -> None:
    together, apart = (partition(acquire=BUYS | {"explore": 1.0}) for _ in range(2))
    for one_partition in (together, apart):
        one_partition.instances({"id": "a", "features": {"y": 1.0}})
    together.feed(value({"id": "a", "features": {"x": 9.0, "c": "green"}}))
    apart.feed(value({"id": "a", "features": {"c": "green"}}))
    assert len(apart.feature_requests) == 1  # nothing is asked twice
    apart.feed(value({"id": "a", "features": {"x": 9.0}}))
    assert apart.predictions[-1]["probabilities"] == together.predictions[-1]["probabilities"]
    assert apart.predictions[-1]["acquired"] == {"features": ["c", "x"], "cost": 2.0, "stop": "exhausted"}


def test_a_value_for_nobody_is_late_and_learned_nowhere() -> None:
    here = partition()
    here.feed(value({"id": "a", "features": {"x": 9.0}}), value({"id": "a"}, key="nobody"))
    assert counted(here, "feature_values.late", "feature_values.dead-letter") == [1, 1]


# -- repeated instances, frozen models, models that go -----------------------------------------------------


def test_a_repeated_instance_is_answered_with_what_it_brings_and_nothing_is_asked_twice() -> None:
    here = partition()
    here.instances({"id": "a", "features": {"y": 1.0}})
    here.instances({"id": "a", "features": {"y": 1.0}, "label": "high"})
    assert here.predictions[-1]["acquired"]["stop"] == "repeated"
    assert (len(here.feature_requests), here.task.open_episodes, here.requests) == (1, 1, [])
    assert here.task.early_labels == 1  # of the episode
    here.feed(value({"id": "a", "features": {"x": 9.0}}))
    assert here.predictions[-1]["acquired"]["features"] == ["x"]
    assert counted(here, "instances.repeated", "early.learned") == [1, 1]


def test_an_instance_that_waits_for_its_label_is_not_bought_again() -> None:
    here = partition()
    here.instances({"id": "a", "features": {"y": 1.0}})
    here.feed(value({"id": "a", "features": {"x": 9.0}}))
    here.instances({"id": "a", "features": {"y": 1.0}})
    assert here.predictions[-1]["acquired"] == {"features": [], "cost": 0.0, "stop": "repeated"}
    assert len(here.feature_requests) == 1


def test_a_frozen_model_buys_what_its_path_needs_and_does_not_explore() -> None:
    here = partition(acquire=BUYS | {"explore": 1.0})
    here.control("freeze")
    before = here.model().snapshot()
    here.instances({"id": "a", "features": {"y": 1.0}})
    assert here.feature_requests[-1]["features"] == ["x"]
    here.labels({"id": "a", "label": "high"})
    here.feed(value({"id": "a", "features": {"x": 9.0}}))
    assert here.predictions[-1]["label"] == "high"
    assert here.model().snapshot() == before
    assert counted(here, "labels.frozen") == [1]


@pytest.mark.parametrize("command", ["reset", "delete"])
def test_the_episodes_of_a_model_that_begins_anew_or_goes_are_dropped(command: str) -> None:
    here = partition()
    trained(here, "other")
    for key in ("m", "other"):
        here.instances({"id": "a", "features": {"y": 1.0}}, key=key)
    n_answers = len(here.predictions)
    here.control(command)
    assert here.task.open_episodes == 1
    assert counted(here, "episodes.dropped") == [1]
    here.feed(value({"id": "a", "features": {"x": 9.0}}))
    assert len(here.predictions) == n_answers
    assert counted(here, "feature_values.late") == [1]


def test_a_model_that_is_configured_to_buy_no_more_answers_at_the_next_value() -> None:
    here = partition(acquire=BUYS | {"explore": 1.0})
    here.instances({"id": "a", "features": {"y": 1.0}})
    here.control("configure", spec={"acquire": "none"})
    here.feed(value({"id": "a", "features": {"x": 9.0, "c": "red"}}))
    assert here.predictions[-1]["acquired"]["stop"] == "finish"
    here.instances({"id": "b", "features": {"y": 1.0}})
    assert "acquired" not in here.predictions[-1]


# -- records and installations ------------------------------------------------------------------------------


def test_the_rows_of_a_block_are_answered_one_by_one() -> None:
    here = partition()
    features = Features.of(("x", "y"), [[9.0, 1.0], [float("nan"), 1.0]])
    block = encode_instances(features, format="arrow", ids=["a", "b"])[0]
    here.feed(Record("instances", b"m", block))
    assert here.predictions[-1]["id"] == "a"
    assert here.feature_requests[-1]["request_id"] == "3-40-1-q1"
    here.feed(value({"id": "b", "features": {"x": 1.0}}))
    assert (here.predictions[-1]["id"], here.predictions[-1]["label"]) == ("b", "low")


def test_a_packed_record_may_have_missing_features_and_is_answered_in_json() -> None:
    here = partition()
    features = Features.of(None, [[float("nan"), 1.0, float("nan")]])
    here.feed(Record("instances", b"m", encode_instances(features, format="packed")[0]))
    assert here.feature_requests[-1]["known"] == {"y": 1.0}
    here.feed(value({"id": here.feature_requests[-1]["instance_id"], "features": {"x": 1.0}}))
    assert here.predictions[-1]["label"] == "low"


def test_without_the_topics_a_model_that_buys_is_refused() -> None:
    here = Partition(config(NEVER, features=False))
    here.control("create", spec={"learner": "h-tree", "acquire": "path"}, schema=SCHEMA)
    assert here.dead_letters[-1].reason == "bad-control"
    assert "grove topics create" in here.dead_letters[-1].message
    here.instances({"id": "a", "features": {"y": 1.0}})
    here.control("configure", spec={"acquire": "path"})
    assert here.dead_letters[-1].reason == "bad-control"
    assert len(here.predictions) == 1


@pytest.mark.parametrize("learner", ["naive-bayes", "boct", "no-change"])
def test_a_learner_without_paths_cannot_buy_what_they_test(learner: str) -> None:
    here = Partition(config(NEVER))
    here.control("create", spec={"learner": learner, "acquire": "path"}, schema=SCHEMA)
    assert "routes records by tests" in here.dead_letters[-1].message


def test_the_weight_is_the_inverse_of_the_probability_of_then() -> None:
    buys = Path(explore=0.25)
    words = np.array([1, np.array([0.25]).view("int64")[0]], dtype="int64")
    assert buys.weight(words) == 4.0
    assert Path(explore=0.5).weight(words) == 4.0


@pytest.mark.parametrize("former", ["random", "path"])
@pytest.mark.parametrize("others", [["path"], ["random"], ["none", "path"], ["none"]])
def test_an_open_episode_goes_on_with_another_acquirer(former: str, others: list[str]) -> None:
    """The words of an episode are those of one acquirer: another one cannot read them."""
    here = partition(acquire={"name": former, "timeout_ms": 1000})
    here.instances({"id": "a", "features": {"y": 3.0}}, at=5)
    assert here.task.open_episodes == 1
    for name in others:
        acquire = name if name == "none" else {"name": name, "timeout_ms": 1000}
        here.control("configure", spec={"acquire": acquire}, at=6)
    here.feed(value({"id": "a", "features": {"x": 9.0}}, at=7))
    here.instances({"id": "late", "features": {"x": 1.0, "y": 2.0, "c": "red"}}, at=2000)
    assert here.predictions[-2]["id"] == "a" and here.predictions[-1]["id"] == "late"
    assert not here.dead_letters
    here.labels({"id": "a", "label": "high"}, at=2001)
    assert not here.dead_letters
