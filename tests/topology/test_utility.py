"""UFODT in a stream: it asks for features itself, and learns a label with the episode of its record."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import orjson
import pytest

from core.learners.ufodt.account import feature_account
from core.learners.ufodt.open_episode import OpenEpisode, hand_in
from streamapp.worker.task.models.files.exported import write_exported
from streamapp.worker.task.models.files.importing import control_values
from streamapp.worker.task.task import Task
from tests.topology.partition import ALWAYS, NEVER, PARTITION, Partition, Record, config

SCHEMA: dict[str, Any] = {
    "attributes": [
        {"name": "age", "range": [0, 100], "cost": 2.5},
        {"name": "dose", "thresholds": [1.5, 3]},
        {"name": "smoker", "kind": "nominal", "values": ["no", "yes"], "cost": 4, "open": True},
    ],
    "classes": ["well", "ill"],
    "classes_open": True,
    "max_classes": 4,
}
ALL = ("age", "dose", "smoker")
EVERY_PARAMETER: list[dict[str, Any]] = [
    {},
    {"criterion": "ig", "thresholds": "exhaustive", "prediction": "bayes"},
    {"criterion": "us", "discount": 0.1, "prior": "counts", "answer": "sampled"},
    {"criterion": "random", "prediction": "region"},
    {"feature_selection": True, "enumerate": False},
    {"record_budget": 3.5},
]


def records(n: int) -> list[tuple[dict[str, Any], str]]:
    """Return records with all features, and their classes: ill are old smokers, and who takes much."""
    draw, rows = random.Random(5), []
    for _ in range(n):
        cells: dict[str, Any] = {
            "age": draw.randrange(100),
            "dose": draw.randrange(5),
            "smoker": draw.choice(["no", "yes"]),
        }
        ill = (cells["age"] > 50 and cells["smoker"] == "yes") or cells["dose"] == 4
        rows.append((cells, "ill" if ill else "well"))
    return rows


def partition(acquire: Any = None, spec: dict[str, Any] = ALWAYS, **learner: Any) -> Partition:
    """Return a partition with a model that has seen nothing."""
    body = {"learner": {"name": "ufodt", "hypotheses": 20, **learner}} | spec
    here = Partition(config(ALWAYS))
    here.control("create", spec=body | ({"acquire": acquire} if acquire else {}), schema=SCHEMA)
    assert here.dead_letters == []
    return here


def send_values(here: Partition, document: dict[str, Any]) -> None:
    here.feed(Record("feature_values", b"m", orjson.dumps(document)))


def buy(here: Partition, name: str, cells: dict[str, Any]) -> list[str]:
    """Give an episode what it asks for until it is answered; return that, in order."""
    asked: list[str] = []
    while here.task.open_episodes:
        request = here.feature_requests[-1]
        assert request["instance_id"] == name
        asked += request["features"]
        send_values(
            here, {"id": name, "features": {feature: cells[feature] for feature in request["features"]}}
        )
    return asked


def learned(here: Partition) -> dict[str, list[Any]]:
    """Return all that the model of a partition has learned of the classes."""
    model = here.model()
    named = model.plan.blocks.named(model.ints, model.block_places[0])
    names = ("labels", "nominal", "above", "below", "used", "gains", "weights")
    return {name: np.asarray(named[name]).tolist() for name in names}


@pytest.mark.parametrize("learner", EVERY_PARAMETER, ids=str)
def test_who_asks_for_everything_in_a_stream_is_who_has_everything_at_once(learner: dict[str, Any]) -> None:
    """What a record brings is bought offline; here nothing comes with it, and all that is asked for comes."""
    whole, asking = partition("none", **learner), partition(**learner)
    asked = 0
    for number, (cells, label) in enumerate(records(60)):
        name = f"i{number}"
        whole.instances({"id": name, "features": cells, "label": label})
        asking.instances({"id": name, "features": {"unrelated": 1.0}, "label": label})
        asked += len(buy(asking, name, cells))
        mine, other = asking.predictions[-1], whole.predictions[-1]
        acquired = mine.pop("acquired")
        assert mine == other
        assert acquired["cost"] == sum(
            {"age": 2.5, "dose": 1, "smoker": 4}[feature] for feature in acquired["features"]
        )
    assert 0 < asked < 3 * 60
    assert feature_account(asking.model()) == feature_account(whole.model())
    assert np.array_equal(asking.model().ints, whole.model().ints)
    assert feature_account(asking.model()).replayed == 0


def test_what_is_bought_is_what_the_posterior_says_is_worth_it() -> None:
    """The course of an episode, by the interface of open episodes alone."""
    here = partition()
    for number, (cells, label) in enumerate(records(80)):
        here.instances({"id": f"i{number}", "features": cells, "label": label})
    model = here.model()
    known = np.array([np.nan, 2.0, np.nan])
    number = feature_account(model).episodes
    twin = OpenEpisode.begin(model, known, number=number)
    here.instances({"id": "a", "features": {"dose": 2}})
    asked = []
    while (question := twin.next_feature()).feature is not None:
        asked.append(ALL[question.feature])
        request = here.feature_requests[-1]
        assert (request["features"], request["utility"]) == ([asked[-1]], question.utility)
        twin.observe(question.feature, {"age": 80.0, "smoker": 1.0}[asked[-1]])
        send_values(here, {"id": "a", "features": {asked[-1]: {"age": 80, "smoker": "yes"}[asked[-1]]}})
    code, shares = twin.finish(model)
    answer = here.predictions[-1]
    assert answer["acquired"] == {"features": asked, "cost": twin.cost, "stop": question.reason}
    assert asked
    assert answer["label"] == model.schema.classes[code]
    expected = dict(zip(model.schema.classes, shares.tolist(), strict=False))
    assert answer["probabilities"] == pytest.approx(expected, abs=1e-4)


def test_a_label_is_learned_with_the_episode_of_its_record_however_late_it_comes() -> None:
    here, twin = partition(), partition()
    for one_partition in (here, twin):
        for number, (cells, label) in enumerate(records(40)):
            one_partition.instances({"id": f"i{number}", "features": cells, "label": label})
    later = records(60)[40:]
    episodes = []
    for number, (cells, _) in enumerate(later):
        here.instances({"id": f"w{number}", "features": {"unrelated": 1.0}})
        model = twin.model()
        episode = OpenEpisode.begin(model, np.full(3, np.nan))
        x = [float(cells["age"]), float(cells["dose"]), float(["no", "yes"].index(cells["smoker"]))]
        while (feature := episode.next_feature().feature) is not None:
            episode.observe(feature, x[feature])
        episode.finish(model)
        episodes.append(episode)
        buy(here, f"w{number}", cells)
    order = [*range(len(later))]
    random.Random(2).shuffle(order)
    for first in (0, 10):  # ten labels a run
        some = order[first : first + 10]
        here.labels(*({"id": f"w{number}", "label": later[number][1]} for number in some))
    for number in order:
        model = twin.model()
        hand_in(model, episodes[number])
        code = model.schema.classes.index(later[number][1])
        twin.task.models.table.learn(
            np.array([twin.task.models.keys.slot("m")]),
            episodes[number].observed()[np.newaxis],
            np.array([code], dtype=np.int32),
            np.ones(1),
            np.array([-1], dtype=np.int32),
            np.zeros(1, dtype=np.bool_),
        )
    assert here.counts["labels.learned"] == 20
    assert learned(here) == learned(twin)
    assert feature_account(here.model()) == feature_account(twin.model())
    assert feature_account(here.model()).replayed == 0


def test_an_early_label_is_learned_at_the_answer_and_the_episode_never_sees_it() -> None:
    here, other = partition(), partition()
    for one_partition in (here, other):
        for number, (cells, label) in enumerate(records(30)):
            one_partition.instances({"id": f"i{number}", "features": cells, "label": label})
    cells = {"age": 80, "dose": 2, "smoker": "yes"}
    here.labels({"id": "a", "label": "ill"})
    for one_partition in (here, other):
        one_partition.instances({"id": "a", "features": {"unrelated": 1.0}})
        buy(one_partition, "a", cells)
    other.labels({"id": "a", "label": "ill"})
    assert here.predictions[-1] == other.predictions[-1]
    assert here.counts["early.learned"] == 1
    assert learned(here) == learned(other)


def test_classes_and_values_that_come_while_a_record_waits_for_its_label() -> None:
    here = partition()
    for number, (cells, label) in enumerate(records(20)):
        here.instances({"id": f"i{number}", "features": cells, "label": label})
    here.instances({"id": "a", "features": {"unrelated": 1.0}})
    here.instances({"id": "b", "features": {"age": 10, "dose": 1, "smoker": "pipe"}, "label": "dead"})
    buy(here, "a", {"age": 80, "dose": 2, "smoker": "pipe"})
    for number, value in enumerate(["cigar", "snuff", "water"]):
        cells = {"age": 9, "dose": 1, "smoker": value}
        here.instances({"id": f"v{number}", "features": cells, "label": f"class {number % 1}"})
    here.labels({"id": "a", "label": "ill"})
    assert here.counts["labels.learned"] == 1
    assert here.dead_letters == []
    assert feature_account(here.model()).replayed == 0
    assert sum(learned(here)["labels"]) == 25


@pytest.mark.parametrize("thaws", [False, True])
def test_a_frozen_model_asks_and_stays_as_it_is(thaws: bool) -> None:
    here = partition()
    for number, (cells, label) in enumerate(records(30)):
        here.instances({"id": f"i{number}", "features": cells, "label": label})
    here.control("freeze")
    before = here.model().snapshot()
    here.instances({"id": "a", "features": {"unrelated": 1.0}})
    assert here.feature_requests[-1]["instance_id"] == "a"
    assert here.model().snapshot() == before
    if thaws:
        here.control("freeze", frozen=False)
    assert buy(here, "a", {"age": 80, "dose": 2, "smoker": "yes"})
    assert here.predictions[-1]["acquired"]["features"]
    assert (here.model().snapshot() == before) == (not thaws)
    here.labels({"id": "a", "label": "ill"})
    assert here.counts.get("labels.frozen", 0) == (not thaws)
    assert here.counts.get("labels.learned", 0) == thaws


def test_what_ends_before_it_knew_enough_counts_as_finished_and_is_learned() -> None:
    here = partition(acquire={"name": "utility", "timeout_ms": 1000})
    for number, (cells, label) in enumerate(records(30)):
        here.instances({"id": f"i{number}", "features": cells, "label": label})
    here.instances({"id": "a", "features": {"unrelated": 1.0}})
    here.instances({"id": "b", "features": {"age": 1, "dose": 1, "smoker": "no"}}, at=5000)
    answers = {answer["id"]: answer["acquired"] for answer in here.predictions}
    assert answers["a"] == {"features": [], "cost": 0.0, "stop": "deadline"}
    assert feature_account(here.model()).stopped["finish"] == 1
    here.labels({"id": "a", "label": "ill"}, {"id": "b", "label": "well"}, at=5000)
    assert here.counts["labels.learned"] == 2
    assert feature_account(here.model()).replayed == 0


def test_several_features_are_asked_for_at_once() -> None:
    one, two = partition(), partition(acquire={"name": "utility", "batch": 2})
    dear = partition(acquire={"name": "utility", "batch": 3}, record_budget=3.5)
    for one_partition in (one, two, dear):
        for number, (cells, label) in enumerate(records(30)):
            one_partition.instances({"id": f"i{number}", "features": cells, "label": label})
        one_partition.instances({"id": "a", "features": {"unrelated": 1.0}})
    (first,) = one.feature_requests[-1]["features"]
    request = two.feature_requests[-1]
    assert request["features"][0] == first
    assert len(request["features"]) == 2
    assert request["utility"] == one.feature_requests[-1]["utility"]
    assert sorted(dear.feature_requests[-1]["features"]) == ["age", "dose"], (
        "smoker would be beyond the budget"
    )
    send_values(two, {"id": "a", "features": {request["features"][1]: 3}})
    assert two.task.open_episodes == 1
    buy(two, "a", {"age": 80, "dose": 2, "smoker": "yes"})
    assert two.predictions[-1]["acquired"]["features"][:2] == request["features"][::-1]


def test_what_is_not_to_be_had_is_free_and_never_asked_for_again() -> None:
    here = partition()
    for number, (cells, label) in enumerate(records(30)):
        here.instances({"id": f"i{number}", "features": cells, "label": label})
    here.instances({"id": "a", "features": {"unrelated": 1.0}})
    asked = []
    while here.task.open_episodes:
        (feature,) = here.feature_requests[-1]["features"]
        asked.append(feature)
        send_values(here, {"id": "a", "unavailable": {feature: "nobody knows"}})
    assert sorted(asked) == sorted(ALL)
    assert here.predictions[-1]["acquired"] == {"features": [], "cost": 0.0, "stop": "exhausted"}
    account = feature_account(here.model())
    assert (account.unavailable, account.stopped["exhausted"]) == (3, 1)


def test_the_words_of_an_episode_count_as_long_as_its_label_is_awaited() -> None:
    here = partition()
    here.instances({"id": "a", "features": {"age": 1, "dose": 1, "smoker": "no"}})
    here.instances({"id": "b", "features": {"age": 1, "dose": 1, "smoker": "no"}})
    pending, model = here.task.pending, here.model()
    words = 2 + model.plan.blocks.episode_words  # behind what they say of the schema
    serial, _ = pending.find(("m", "a"), 0)
    assert len(pending.episode(serial)) == words
    shares = pending.shares(np.array([serial]))[0].shape[1]  # of the answer
    before = pending.bytes
    here.labels({"id": "a", "label": "well"})
    assert before - pending.bytes == 8 * (words + shares + 3)


def test_a_model_in_mid_episode_is_exported_and_a_restored_task_asks_on() -> None:
    here = partition()
    for number, (cells, label) in enumerate(records(30)):
        here.instances({"id": f"i{number}", "features": cells, "label": label})
    here.instances({"id": "waits", "features": {"dose": 2}})
    buy(here, "waits", {"age": 80, "smoker": "yes"})
    here.instances({"id": "a", "features": {"unrelated": 1.0}})
    store = here.task.models
    taken: dict[str, Any] = {"prefix": "t.", "partition": 3, "positions": {"instances": 400}}
    there = Partition(config(ALWAYS))
    values = control_values(write_exported(store.record(store.keys.slot("m")), taken), "moved", size=1500)
    there.feed(*(Record("controls", b"m", value) for value in values))
    assert (learned(there), there.task.open_episodes) == (learned(here), 0)
    assert feature_account(there.model()) == feature_account(here.model())
    again = Partition(here.task.config)
    again.task = Task.from_units(PARTITION, here.task.config, None, [*here.task.cut().units()])
    again._offsets.update(here._offsets)
    assert again.task.digest() == here.task.digest()
    before = len(here.predictions)
    for one_partition in (here, again):
        request = here.feature_requests[-1]
        cells = {"age": 80, "dose": 2, "smoker": "yes"}
        send_values(
            one_partition, {"id": "a", "features": {name: cells[name] for name in request["features"]}}
        )
        one_partition.labels({"id": "waits", "label": "ill"})
    assert again.task.digest() == here.task.digest()
    assert again.predictions == here.predictions[before:]


def test_a_repeated_instance_is_answered_from_what_it_brings_and_charged_for_nothing() -> None:
    here = partition()
    here.instances({"id": "a", "features": {"unrelated": 1.0}})
    here.instances({"id": "a", "features": {"age": 80}})
    assert here.predictions[-1]["acquired"] == {"features": [], "cost": 0.0, "stop": "repeated"}
    assert feature_account(here.model()).bought == 0


def test_a_model_that_is_configured_to_ask_no_more_goes_on_as_offline() -> None:
    here = partition()
    here.instances({"id": "waits", "features": {"age": 1, "dose": 1, "smoker": "no"}})
    here.instances({"id": "a", "features": {"unrelated": 1.0}})
    here.control("configure", spec={"acquire": "none"})
    send_values(here, {"id": "a", "features": dict.fromkeys(here.feature_requests[-1]["features"], 1)})
    assert here.predictions[-1]["acquired"]["stop"] == "finish"
    here.labels({"id": "waits", "label": "well"})
    assert here.counts["labels.learned"] == 1
    here.instances({"id": "b", "features": {"dose": 1}})
    assert "acquired" not in here.predictions[-1]
    here.control("configure", spec={"acquire": "utility"})
    here.instances({"id": "c", "features": {"dose": 1}})
    assert here.feature_requests[-1]["instance_id"] == "c"


def test_an_episode_of_another_acquirer_is_answered_with_what_is_known() -> None:
    here = partition(acquire={"name": "random", "share": 1.0})
    here.instances({"id": "a", "features": {"dose": 2}})
    here.control("configure", spec={"acquire": "utility"})
    send_values(here, {"id": "a", "features": {"age": 80, "smoker": "yes"}})
    assert here.predictions[-1]["acquired"] == {
        "features": ["age", "smoker"],
        "cost": 6.5,
        "stop": "exhausted",
    }
    here.labels({"id": "a", "label": "ill"})
    assert here.counts["labels.learned"] == 1


def test_refusals() -> None:
    here = Partition(config(NEVER))
    here.control("create", spec={"learner": "h-tree", "acquire": "utility"}, schema=SCHEMA)
    assert "must go with the learner 'ufodt'" in here.dead_letters[-1].message
    without = Partition(config(NEVER, features=False))
    without.control("create", spec={"learner": "ufodt"}, schema=SCHEMA)
    assert "acquire='utility' must have the topics" in without.dead_letters[-1].message
    assert '"acquire": "none"' in without.dead_letters[-1].message
    without.control("create", spec={"learner": "ufodt", "acquire": "none"}, schema=SCHEMA)
    assert len(without.dead_letters) == 1
