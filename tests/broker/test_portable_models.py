"""A model leaves a live cluster, answers in Python, enters under another key, and is rebuilt as it was."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import orjson
import pytest

import core
from core.model import file as model_file
from streamapp.cli.main import main
from streamapp.worker.observability.pages.snapshot_page import fetch_model
from tests.broker.workers import PATIENCE, Installation, wait_until
from tests.conftest import Broker
from topics.clients.partitioner import partition_of

pytestmark = pytest.mark.broker

PARTITIONS = 2
KEY = "shop/ü"
COPY = next(
    f"copy-{n}" for n in range(9) if partition_of(f"copy-{n}".encode(), 2) != partition_of(KEY.encode(), 2)
)
SPEC = {"learner": {"name": "h-tree", "grace_period": 20, "delta": 0.1, "leaf_model": "nba"}}
QUESTIONS = [{"size": n / 2, "colour": ["red", "blue", "new"][n % 3]} for n in range(30)]


class Stream:
    """Instances of some keys."""

    def __init__(self, place: Installation) -> None:
        self.place = place

    def send(self, key: str, *documents: dict[str, Any]) -> None:
        producer = self.place.producer()
        name = key.encode()
        for document in documents:
            partition = partition_of(name, PARTITIONS)
            producer.produce(self.place.names.instances, orjson.dumps(document), name, partition)
        assert producer.flush(PATIENCE) == 0

    def learn(self, key: str, first: int, n: int) -> None:
        self.send(
            key,
            *(
                {
                    "id": f"l{i}",
                    "features": {"size": i % 17, "colour": "red" if i % 3 else "blue"},
                    "label": "high" if i % 17 > 8 else "low",
                }
                for i in range(first, first + n)
            ),
        )

    def ask(self, key: str, name: str) -> None:
        self.send(key, *({"id": f"{name}{n}", "features": x} for n, x in enumerate(QUESTIONS)))

    def answers(self, key: str, name: str) -> list[tuple[str, dict[str, float], int]]:
        answer_of = {
            answer["id"]: (answer["label"], answer["probabilities"], answer["version"])
            for answer in self.place.read(self.place.names.predictions)
            if answer["key"] == key.encode()
        }
        return [answer_of[f"{name}{n}"] for n in range(len(QUESTIONS))]


@pytest.fixture
def place(broker: Broker, tmp_path: Path) -> Installation:
    settings = {
        "GROVE_MODEL_SPEC": json.dumps(SPEC | {"query": "never"}),
        # Snapshots are made where the worker leaves, and nowhere else: each cuts off what can be rebuilt.
        "GROVE_SNAPSHOT_MAX_REPLAY_MS": "600000",
        "GROVE_SNAPSHOT_INTERVAL_MS": "600000",
    }
    return Installation(broker.bootstrap_servers, "port.", PARTITIONS, tmp_path, settings, "streamapp worker")


def test_a_model_goes_where_it_is_wanted(
    place: Installation, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stream, file, then = Stream(place), tmp_path / "shop.grove", tmp_path / "then.grove"
    options = ["-b", place.servers, "--topics-prefix", place.prefix, "--set", f"application.id={place.group}"]

    def grove(*command: str, code: int = 0) -> str:
        assert main([*command, *options]) == code, capsys.readouterr().err
        output = capsys.readouterr()
        return output.err if code else output.out

    with place.worker("w0") as worker:
        worker.wait_until_ready()
        stream.learn(KEY, 0, 200)
        place.wait_for_lag_0(alive=[worker])
        worker.signal(signal.SIGUSR2)
        assert worker.wait() == 0, worker.log
        worker.start()
        worker.wait_until_ready()
        stream.learn(KEY, 200, 200)
        place.wait_for_lag_0(alive=[worker])
        assert "labels, taken at partition" in grove("models", "export", KEY, "--to", str(file))
        exported = model_file.unwrap(file.read_bytes())
        assert exported.snapshot == fetch_model(worker.web.removeprefix("http://"), KEY)

        model = core.Model.load(file)
        stream.ask(KEY, "q")
        place.wait_for_lag_0(alive=[worker])
        predicted = [model.predict(question) for question in QUESTIONS]
        rounded = [
            (row.label, {name: round(share, 4) for name, share in row.probabilities.items()}, row.version)
            for row in predicted
        ]
        assert rounded == stream.answers(KEY, "q")
        assert len({row.label for row in predicted}) == 2

        assert grove("models", "import", str(file), "--key", COPY).startswith(
            f"in effect: the model of '{COPY}'"
        )
        stream.ask(COPY, "q")
        place.wait_for_lag_0(alive=[worker])
        assert stream.answers(COPY, "q") == stream.answers(KEY, "q")
        assert f"refused: import: model '{COPY}' exists" in grove(
            "models", "import", str(file), "--key", COPY, code=1
        )

        stream.learn(KEY, 400, 400)
        place.wait_for_lag_0(alive=[worker])
        taken = exported.head["taken"]
        at = f"{taken['partition']}:{taken['positions']['instances']}"
        rebuilt = json.loads(
            grove("models", "rebuild", "--key", KEY, "--at", at, "--to", str(then), "--json")
        )
        assert model_file.unwrap(then.read_bytes()).snapshot == exported.snapshot
        (answer,) = rebuilt["prediction"]["answers"]
        assert (answer["id"], answer["label"], rebuilt["prediction"]["sent"]) == (
            "q0",
            predicted[0].label,
            "equal",
        )
        assert answer["path"] == " and ".join(map(str, predicted[0].explanation))
        far = f"{taken['partition']}:999999"
        assert "was not processed yet; journal and snapshots reach from" in grove(
            "models", "rebuild", "--key", KEY, "--at", far, code=1
        )
        status = main(["models", "diff", str(file), KEY, *options])
        assert (status, "counts  labels: 400 | 800" in capsys.readouterr().out) == (1, True)
        grove("models", "diff", str(file), str(then))
        worker.signal(signal.SIGUSR2)  # leaves the group
        assert worker.wait() == 0, worker.log
    wait_until(lambda: not place.members(), PATIENCE, lambda: worker.log)
    listed = {row["key"]: row for row in json.loads(grove("models", "list", "--json"))}
    assert {key: row["labels"] for key, row in listed.items()} == {KEY: 800, COPY: 400}
    assert "no worker runs: in effect once one has read" in grove(
        "models", "import", str(file), "--key", COPY, "--replace"
    )
    newest = max(message.timestamp()[1] for message in place.raw(place.names.instances))
    times = [message.timestamp()[1] for message in place.raw(place.names.controls)]
    assert len(times) == 3
    assert all(at <= newest for at in times[1:]), "the first one came before any instance of its partition"
    assert "spec       " in grove("models", "show", KEY)
    lost = partition_of(KEY.encode(), PARTITIONS)
    place.delete_before(place.names.instances, lost, rebuilt["positions"]["instances"] + 400)
    said_of = grove("models", "restore", "--partition", str(lost), "--yes")
    assert said_of.startswith(f"partition {lost} goes on where it stood"), "it ended with a snapshot"
    with place.worker("w0") as worker:
        worker.wait_until_ready()
        stream.learn(KEY, 800, 1)
        place.wait_for_lag_0(alive=[worker])
        left = {row["key"]: row["labels"] for row in json.loads(grove("models", "list", "--json"))}
        assert left == {KEY: 801, COPY: 400}
        assert "imported: the model of" in worker.log
        assert worker.terminate() == 0, worker.log
    assert main(["tree", str(file), "--depth", "1"]) == 0
    assert capsys.readouterr().out.splitlines()[0] == "all"
