"""Feature acquisition on a real broker: killed in mid-episode, and an installation without its topics."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

import orjson
import pytest

from streamapp.tools.dead_letters.skip import look_up
from streamapp.worker.control import DRAIN
from streamapp.worker.restore.identity import Identity
from streamapp.worker.restore.log_reader import LogReader
from tests.broker.workers import PATIENCE, Installation, WorkerProcess, wait_until
from tests.conftest import Broker
from topics.clients import admin
from topics.clients.partitioner import partition_of

pytestmark = pytest.mark.broker

KEY = b"credit"
PARTITIONS = 2
BUYS = {
    "learner": {"name": "h-tree", "grace_period": 20, "delta": 0.1, "tau": 0.3},
    "query": "never",
    "acquire": {"name": "path", "explore": 0.001, "timeout_ms": 600_000},
}
SCHEMA = {"attributes": [{"name": "x"}, {"name": "y"}], "classes": ["high", "low"]}


UFODT = {"learner": {"name": "ufodt", "hypotheses": 20}, "query": "always", "seed": 5}
PANEL = {
    "attributes": [{"name": "x", "range": [0, 10], "cost": 2}, {"name": "y", "range": [0, 10]}],
    "classes": ["high", "low"],
}


class Client:
    """Who sends instances and values, and reads what comes."""

    def __init__(self, place: Installation) -> None:
        self.place = place
        self._producer = place.producer()
        self._at = int(time.time() * 1000)

    def send(self, topic: str, document: dict[str, Any]) -> None:
        self._at += 1
        self._producer.produce(
            topic, orjson.dumps(document), KEY, partition_of(KEY, PARTITIONS), timestamp=self._at
        )
        assert self._producer.flush(PATIENCE) == 0

    def create(self, spec: dict[str, Any] = BUYS, schema: dict[str, Any] = SCHEMA) -> None:
        self.send(self.place.names.controls, {"command": "create", "spec": spec, "schema": schema})

    def train(self, worker: WorkerProcess) -> None:
        for n in range(40):
            x = n % 10
            document = {"id": f"t{n}", "features": {"x": x, "y": 1}, "label": "high" if x > 5 else "low"}
            self.send(self.place.names.instances, document)
        self.wait_for(self.place.names.predictions, 40, worker)

    def wait_for(self, topic: str, n: int, worker: WorkerProcess) -> list[dict[str, Any]]:
        wait_until(lambda: len(self.place.read(topic)) >= n, PATIENCE, lambda: worker.log)
        return self.place.read(topic)


def test_a_worker_killed_in_mid_episode_asks_and_answers_once(broker: Broker, tmp_path: Path) -> None:
    place = Installation(broker.bootstrap_servers, "buys.", PARTITIONS, tmp_path, module="streamapp worker")
    client, names = Client(place), place.names
    client.create()
    with place.worker("w", fresh=True) as worker:
        worker.wait_until_ready()
        client.train(worker)
        for name in ("a", "b"):
            client.send(names.instances, {"id": name, "features": {"y": 2}})
        client.wait_for(names.feature_requests, 2, worker)
        client.send(names.labels, {"id": "a", "label": "high"})
        client.send(names.feature_values, {"id": "b", "features": {"x": 1}})
        client.wait_for(names.predictions, 41, worker)
        os.kill(worker.pid, signal.SIGKILL)
    with place.worker("w", fresh=True) as worker:
        worker.wait_until_ready()
        assert worker.metric("grove_open_episodes") == 1
        client.send(names.feature_values, {"id": "b", "features": {"x": 1}})  # once more: late
        client.send(names.feature_values, {"id": "a", "features": {"x": 9}})
        predictions = client.wait_for(names.predictions, 42, worker)
        place.wait_for_lag_0(alive=[worker])
        assert worker.metric_of("grove_records_total", topic="feature_values", outcome="late") == 1
        assert worker.metric_of("grove_records_total", topic="labels", outcome="learned") == 1
        assert worker.metric("grove_feature_cost_total") == 1, "what was bought before is not counted again"
        assert worker.terminate() == 0
    requests = place.read(names.feature_requests)
    assert [(request["instance_id"], request["features"]) for request in requests] == [
        ("a", ["x"]),
        ("b", ["x"]),
    ]
    answers = {answer["id"]: (answer["label"], answer["acquired"]) for answer in predictions[40:]}
    bought = {"features": ["x"], "cost": 1.0, "stop": "one_region"}
    assert answers == {"a": ("high", bought), "b": ("low", bought)}
    assert len(place.read(names.predictions)) == 42
    assert place.read(names.dead_letters) == []


def test_ufodt_killed_in_mid_episode_learns_late_labels_with_what_it_bought(
    broker: Broker, tmp_path: Path
) -> None:
    """The same records without a kill lead to the same model."""
    rounds = []
    for prefix, kills in (("asks.", True), ("asks-on.", False)):
        place = Installation(
            broker.bootstrap_servers, prefix, PARTITIONS, tmp_path, module="streamapp worker"
        )
        client, names = Client(place), place.names
        client.create(UFODT, PANEL)
        with place.worker("w", fresh=True) as worker:
            worker.wait_until_ready()
            client.train(worker)
            client.send(names.instances, {"id": "waits", "features": {"x": 2}})  # y, if it is worth it
            client.send(names.feature_values, {"id": "waits", "finish": True})
            client.wait_for(names.predictions, 41, worker)
            client.send(names.instances, {"id": "a", "features": {"y": 2}})
            (request,) = [
                request
                for request in client.wait_for(names.feature_requests, 1, worker)
                if request["instance_id"] == "a"
            ]
            assert request["features"] == ["x"]
            if kills:
                os.kill(worker.pid, signal.SIGKILL)
            else:
                assert worker.terminate() == 0
        with place.worker("w", fresh=True) as worker:
            worker.wait_until_ready()
            assert worker.metric("grove_open_episodes") == 1
            client.send(names.feature_values, {"id": "a", "features": {"x": 9}})
            client.wait_for(names.predictions, 42, worker)
            client.send(names.labels, {"id": "a", "label": "high"})
            client.send(names.labels, {"id": "waits", "label": "low"})
            place.wait_for_lag_0(alive=[worker])
            assert worker.metric_of("grove_records_total", topic="labels", outcome="learned") == 2
            client.send(names.instances, {"id": "last", "features": {"x": 9, "y": 2}})
            predictions = client.wait_for(names.predictions, 43, worker)
            assert worker.terminate() == 0
        assert predictions[41]["acquired"]["features"] == ["x"]
        assert predictions[41]["acquired"]["cost"] == 2.0
        assert predictions[42]["version"] == 42
        assert place.read(names.dead_letters) == []
        asked = [
            (request["instance_id"], request["features"]) for request in place.read(names.feature_requests)
        ]
        assert len(asked) == len({(name, *features) for name, features in asked}), "nothing is asked twice"
        rounds.append(predictions)
    assert rounds[0] == rounds[1]


def test_static_members_take_up_topics_that_were_made_while_they_were_away(
    broker: Broker, tmp_path: Path
) -> None:
    """They come back within their session, and get what they had until the group's leader is back, too."""
    place = Installation(broker.bootstrap_servers, "later.", PARTITIONS, tmp_path, module="streamapp worker")
    client, names = Client(place), place.names
    place.delete(names.feature_requests, names.feature_values)
    gone = {names.feature_requests, names.feature_values}
    wait_until(lambda: not gone & set(place.cluster.topics()), PATIENCE, lambda: "topics are there")
    with place.worker("one", fresh=True) as one, place.worker("two", fresh=True) as two:
        for worker in (one, two):
            worker.wait_until_ready()
        for worker in (one, two):
            assert worker.terminate() == 0
    assert (
        set(admin.create({"bootstrap.servers": place.servers}, names, PARTITIONS, 1, PATIENCE).created)
        == gone
    )
    client.create()
    with place.worker("one") as one, place.worker("two") as two:
        for worker in (one, two):
            worker.wait_until_ready()
        client.train(one)
        client.send(names.instances, {"id": "b", "features": {"y": 2}})
        (request,) = client.wait_for(names.feature_requests, 1, one)
        client.send(names.feature_values, {"id": request["instance_id"], "features": {"x": 9}})
        predictions = client.wait_for(names.predictions, 41, one)
        assert "joining the group once more" in one.log + two.log
        for worker in (one, two):
            assert worker.terminate() == 0
    assert (predictions[-1]["id"], predictions[-1]["label"]) == ("b", "high")


def test_an_installation_without_the_topics_runs_and_buys_once_they_are_made(
    broker: Broker, tmp_path: Path
) -> None:
    place = Installation(broker.bootstrap_servers, "before.", PARTITIONS, tmp_path, module="streamapp worker")
    client, names = Client(place), place.names
    place.delete(names.feature_requests, names.feature_values)
    gone = {names.feature_requests, names.feature_values}
    wait_until(lambda: not gone & set(place.cluster.topics()), PATIENCE, lambda: "topics are there")
    client.create()  # refused
    with place.worker("w", fresh=True) as worker:
        worker.wait_until_ready()
        client.send(names.instances, {"id": "a", "features": {"x": 1, "y": 2}, "label": "low"})
        client.wait_for(names.predictions, 1, worker)
        # Who stays a member gets the partitions that it had, without those of the new topic.
        worker.signal(DRAIN)
        assert worker.wait() == 0
        assert "is missing" in worker.log
    there = admin.existing(place.cluster, names)
    assert not there.features
    client.send(names.instances, {"id": "waits", "features": {"x": 1, "y": 2}, "label": "low"})
    kafka = {"bootstrap.servers": place.servers}
    with LogReader(kafka, place.group, lambda: False) as reader:
        partition = partition_of(KEY, PARTITIONS)
        skippable = look_up(reader, Identity(kafka), there, partition, "instances", 1)
    assert (skippable.next, skippable.key, "feature_values" in skippable.committed) == (1, KEY, False)
    (refused,) = place.raw(names.dead_letters)
    assert b"grove topics create" in dict(refused.headers())["__streams.errors.message"]
    done = admin.create({"bootstrap.servers": place.servers}, names, PARTITIONS, 1, PATIENCE)
    assert set(done.created) == gone
    client.send(names.controls, {"command": "delete"})
    client.create()
    with place.worker("w", fresh=True) as worker:
        worker.wait_until_ready()
        place.wait_for_lag_0(alive=[worker])
        for n in range(40):
            x = n % 10
            document = {"id": f"t{n}", "features": {"x": x, "y": 1}, "label": "high" if x > 5 else "low"}
            client.send(names.instances, document)
        client.send(names.instances, {"id": "b", "features": {"y": 2}})
        (request,) = client.wait_for(names.feature_requests, 1, worker)
        client.send(names.feature_values, {"id": request["instance_id"], "features": {"x": 9}})
        predictions = client.wait_for(names.predictions, 43, worker)
        assert worker.terminate() == 0
    assert predictions[-1]["label"] == "high"
    assert len(predictions) == 43
