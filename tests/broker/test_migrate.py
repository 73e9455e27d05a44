"""All models of an installation go to topics with another partition count, and answer there as they did."""

from __future__ import annotations

import copy
import json
import signal
from pathlib import Path
from typing import Any

import orjson
import pytest

import core
from streamapp.cli.main import main
from streamapp.embedded.broker import EmbeddedBroker
from streamapp.worker.observability.pages.snapshot_page import fetch_model
from streamapp.worker.task.models.files.exported import close_open_requests, read_exported
from tests.broker.workers import PATIENCE, Installation, wait_until
from tests.conftest import Broker
from topics.clients.partitioner import partition_of
from topics.definitions import TopicNames

pytestmark = pytest.mark.broker

KEYS = [f"shop-{n}" for n in range(5)]
SPEC: dict[str, Any] = {
    "learner": {"name": "h-tree", "grace_period": 20, "delta": 0.1},
    "query": "always",
    "budget": {"name": "count", "limit": 0.5},
}
QUESTIONS = [{"size": n / 2, "colour": ["red", "blue"][n % 2]} for n in range(20)]


def send(place: Installation, source: str, key: str, *documents: dict[str, Any]) -> None:
    producer, name = place.producer(), key.encode()
    topic, partition = getattr(place.names, source), partition_of(name, place.partitions)
    for document in documents:
        producer.produce(topic, orjson.dumps(document), name, partition)
    assert producer.flush(PATIENCE) == 0


def ask(place: Installation, key: str) -> None:
    send(place, "instances", key, *({"id": f"q{n}", "features": x} for n, x in enumerate(QUESTIONS)))


def learn(place: Installation, key: str, shift: int) -> None:
    """Records with their labels, and two whose labels are asked for and do not come."""
    learned = (
        {"id": f"l{n}", "features": {"size": (n + shift) % 17, "colour": "red"}, "label": n % 17 > 8}
        for n in range(200)
    )
    rows = [row | {"label": "high" if row.pop("label") else "low"} for row in learned]
    send(place, "instances", key, *rows, *({"id": f"w{n}", "features": {"size": n}} for n in range(2)))


@pytest.mark.nightly
def test_workers_on_more_partitions_or_at_another_cluster_answer_as_the_old_models_would(
    broker: Broker, private_broker: EmbeddedBroker, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = {"GROVE_MODEL_SPEC": json.dumps(SPEC), "GROVE_SNAPSHOT_INTERVAL_MS": "300"}
    old = Installation(broker.bootstrap_servers, "move.", 2, tmp_path, settings, "streamapp worker")
    new = copy.copy(old)
    new.prefix, new.partitions = f"{old.prefix}b.", 3
    new.names = TopicNames(new.prefix)
    place = ["-b", old.servers, "--set", f"application.id={old.group}"]
    command = ["migrate", *place, "--from-prefix", old.prefix, "--to-prefix", new.prefix, "--partitions", "3"]
    command += ["--to-application-id", new.group]

    def grove(*arguments: str, code: int = 0) -> str:
        assert main(list(arguments)) == code, capsys.readouterr().err
        output = capsys.readouterr()
        return output.out or output.err

    with old.worker("w0") as worker:
        worker.wait_until_ready()
        for shift, key in enumerate(KEYS):
            learn(old, key, shift)
        old.wait_for_lag_0(alive=[worker])
        send(old, "controls", KEYS[0], {"command": "freeze"})
        send(old, "controls", "awaited", {"command": "create", "spec": {"learner": "h-tree"}})
        old.wait_for_lag_0(alive=[worker])
        planned = json.loads(grove(*command, "--dry-run", "--json", code=1))
        assert "must have no members, it has w0" in planned["obstacles"][0]
        worker.signal(signal.SIGUSR2)  # leaves the group
        assert worker.wait() == 0, worker.log
    wait_until(lambda: not old.members(), PATIENCE, lambda: worker.log)

    other = ["--topics-prefix", old.prefix, "--set", "application.id=nobody"]
    assert "group nobody has committed nothing" in grove("models", "list", *place[:2], *other, code=1)
    files = {key: tmp_path / f"{key}.grove" for key in KEYS}
    for key, file in files.items():
        grove("models", "export", key, "--to", str(file), *place, "--topics-prefix", old.prefix)
    old.grow(old.names.instances, 4)  # somebody believed that this was all there is to do
    send(old, "instances", KEYS[0], {"id": "late", "features": {"size": 1}})
    assert "1 of instances were not processed at the old place" in grove(*command, code=1)
    busy = Installation(broker.bootstrap_servers, "busy.", 3, tmp_path)
    send(busy, "controls", KEYS[0], {"command": "freeze"})
    into = ["migrate", *place, "--from-prefix", old.prefix, "--to-prefix", busy.prefix, "--leave-behind"]
    where = partition_of(KEYS[0].encode(), 3)
    problem = (
        f"{busy.names.controls} has 1 records that no migration has sent, the first is {where}:0: instances"
    )
    assert problem in grove(*into, "--partitions", "3", code=1)
    done = json.loads(grove(*command, "--leave-behind", "--json"))
    assert (done["models"], done["awaited"], done["sent"], done["verified"]) == (5, 1, 6, 6)
    assert done["unprocessed"]["instances"] == 1
    assert done["stays"]["waiting"] == done["stays"]["requests"] == 2 * len(KEYS)
    again = json.loads(grove(*command, "--leave-behind", "--json"))
    assert (again["sent"], again["already"], again["verified"]) == (0, 6, 6)
    assert "exists with 3 partitions, not partitions=4" in grove(*command, "-p", "4", code=1)

    ask(new, KEYS[1])  # waits for the worker, behind the models
    with new.worker("w0") as worker:  # in the directory of the old one
        worker.wait_until_ready()
        new.wait_for_lag_0(alive=[worker])
        for key, file in files.items():
            if key != KEYS[1]:
                exported = read_exported(file.read_bytes())
                close_open_requests(exported.model)
                assert fetch_model(worker.web.removeprefix("http://"), key) == exported.model.snapshot()
                ask(new, key)
        new.wait_for_lag_0(alive=[worker])
        answers = {
            (answer["key"].decode(), answer["id"]): answer for answer in new.read(new.names.predictions)
        }
        for key, file in files.items():
            model = core.Model.load(file)
            for n, question in enumerate(QUESTIONS):
                answer, predicted = answers[key, f"q{n}"], model.predict(question)
                assert (answer["label"], answer["version"]) == (predicted.label, predicted.version)
        assert {partition_of(key.encode(), 3) for key in KEYS} == {0, 1, 2}
        assert worker.terminate() == 0, worker.log
    begun = grove(*command, "--leave-behind", code=1)
    assert "workers have begun there, and the sent models are in effect" in begun

    # The old topics are as they were: all of it goes to another cluster, too, under the same names.
    away = copy.copy(old)
    away.servers, away.directory, away.partitions = private_broker.bootstrap_servers, tmp_path / "away", 4
    away.directory.mkdir()
    for client in ("cluster", "_committed"):
        vars(away).pop(client, None)  # it is of the old cluster
    command = ["migrate", *place, "--from-prefix", old.prefix, "--to-prefix", old.prefix, "--leave-behind"]
    host, port = old.servers.split(":")
    same = f"{'127.0.0.1' if host == 'localhost' else 'localhost'}:{port}"
    for servers in ([], ["--to-bootstrap-servers", same]):
        assert "must not be the prefix of the old topics" in grove(*command, *servers, code=64)
    command += ["--to-bootstrap-servers", away.servers]
    planned = json.loads(grove(*command, "--dry-run", "--json"))
    assert (planned["models"], planned["sent"], set(planned["topics"].values())) == (5, 0, {"to be created"})
    done = json.loads(grove(*command, "--json"))
    assert (done["models"], done["awaited"], done["sent"], done["verified"]) == (5, 1, 6, 6)
    assert f"GROVE_KAFKA_BOOTSTRAP_SERVERS={away.servers}" in "".join(done["left_to_do"])
    with away.worker("w0") as worker:
        worker.wait_until_ready()
        away.wait_for_lag_0(alive=[worker])
        for key, file in files.items():
            exported = read_exported(file.read_bytes())
            close_open_requests(exported.model)
            assert fetch_model(worker.web.removeprefix("http://"), key) == exported.model.snapshot()
        assert worker.terminate() == 0, worker.log
