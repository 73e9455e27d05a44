"""`grove whatif` beside a worker: its own spec, another learner, another strategy, another time."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson
import pytest

from streamapp.cli.main import main
from tests.broker.workers import PATIENCE, Installation, ms_ago, wait_until
from tests.conftest import Broker
from topics.clients.partitioner import partition_of

pytestmark = pytest.mark.broker

PARTITIONS = 2
KEY = "shop"
PARTITION = partition_of(KEY.encode(), PARTITIONS)
SPEC: dict[str, Any] = {
    "learner": {"name": "h-tree", "grace_period": 20, "delta": 0.1},
    "query": "random",
    "budget": {"limit": 0.5},
}
STAMP = ms_ago(3600)
"""Time of the first record, ms since the epoch; a second passes between two records."""


class Shop:
    """Instances of one model, and the labels that its worker requests."""

    def __init__(self, place: Installation) -> None:
        self.place = place
        self.labelled: set[str] = set()

    def send(self, first: int, n: int) -> None:
        producer = self.place.producer()
        for number in range(first, first + n):
            body = {"id": f"i{number}", "features": {"size": number % 17, "colour": number % 3}}
            producer.produce(
                self.place.names.instances,
                orjson.dumps(body),
                KEY.encode(),
                PARTITION,
                timestamp=STAMP + 1000 * number,
            )
        assert producer.flush(PATIENCE) == 0

    def label_what_is_requested(self) -> int:
        """Send the labels of new requests; return how many."""
        producer = self.place.producer()
        asked = {each["instance_id"] for each in self.place.read(self.place.names.label_requests)}
        fresh = sorted(asked - self.labelled, key=lambda name: int(name[1:]))
        for name in fresh:
            body = {"id": name, "label": "high" if int(name[1:]) % 17 > 8 else "low"}
            stamp = STAMP + 1000 * int(name[1:]) + 500
            producer.produce(
                self.place.names.labels, orjson.dumps(body), KEY.encode(), PARTITION, timestamp=stamp
            )
        assert producer.flush(PATIENCE) == 0
        self.labelled |= set(fresh)
        return len(fresh)


def test_a_log_is_looked_at_under_other_specs(
    broker: Broker, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = {"GROVE_MODEL_SPEC": json.dumps(SPEC), "GROVE_SNAPSHOT_INTERVAL_MS": "600000"}
    place = Installation(
        broker.bootstrap_servers, "whatif.", PARTITIONS, tmp_path, settings, "streamapp worker"
    )
    options = ["-b", place.servers, "--topics-prefix", place.prefix, "--set", f"application.id={place.group}"]

    def whatif(spec: Any, *more: str, code: int = 0, key: str = KEY) -> Any:
        given = spec if isinstance(spec, str) else json.dumps(spec)
        found = main(["whatif", "--key", key, "--spec", given, *options, *more])
        out, err = capsys.readouterr()
        assert found == code, err
        return err if code else json.loads(out) if "--json" in more else out

    shop = Shop(place)
    with place.worker("w0") as worker:
        worker.wait_until_ready()
        for part in range(3):
            shop.send(100 * part, 100)
            place.wait_for_lag_0(alive=[worker])
            assert shop.label_what_is_requested() > 20
            place.wait_for_lag_0(alive=[worker])

        same = whatif(SPEC, "--json")
        assert (same["records"], same["answers_equal"], same["first_difference"]) == (300, 300, None)
        assert same["reproduced"] == {"equal": 300, "different": 0, "not_found": 0}
        assert same["labels"] | {"own": 0} == {
            **dict.fromkeys(("spent", "wanted", "exist", "came"), len(shop.labelled)),
            "share": 1.0,
            "own": 0,
            "unasked": 0,
        }
        assert (same["exact"], same["base"], same["accuracy"]["difference"]) == (True, "beginning", 0.0)

        learner = whatif(SPEC | {"learner": "majority-class"}, "--json")
        assert (learner["exact"], learner["labelling"]) == (True, "same-labels")
        assert learner["accuracy"]["by"] == "same-labels"
        assert learner["accuracy"]["would_be"] < learner["accuracy"]["was"] == same["accuracy"]["was"]
        first = learner["first_other_class"]
        assert (first["partition"], first["id"]) == (PARTITION, f"i{first['offset']}")
        sent = {each["id"]: each["label"] for each in place.read(place.names.predictions)}
        assert sent[first["id"]] == first["was"]["label"] != first["would_be"]["label"]

        strategy = whatif(SPEC | {"query": "always"}, "--json")
        assert (strategy["exact"], strategy["labelling"]) == (False, "wanted-labels")
        assert strategy["labels"]["wanted"] == 150
        assert 0.2 < strategy["labels"]["share"] < 0.8
        assert strategy["accuracy"]["by"] == "chances"
        low, high = strategy["accuracy"]["interval"]
        assert low < strategy["accuracy"]["would_be"] <= high

        later = whatif(SPEC | {"learner": "naive-bayes"}, "--json", "--since", iso(200))
        assert (later["records"], later["model"], later["reproduced"]["equal"]) == (100, "new", 100)
        assert later["from"]["instances"] >= 200
        assert "the log reproduces 300 of 300 sent answers" in whatif("hat")

        assert "no record of the model 'k" in whatif(SPEC, code=1, key=key_in(PARTITION))
        assert "nothing was processed yet" in whatif(SPEC, code=1, key=key_in(1 - PARTITION))
        assert "was not processed yet" in whatif(SPEC, "--since", iso(999), code=1)
        assert "unknown learner 'nonsense'" in whatif("nonsense", code=64)
        assert worker.terminate() == 0, worker.log
    wait_until(lambda: place.lag() == 0, PATIENCE, lambda: worker.log)


def key_in(partition: int) -> str:
    """Return a key without records in a partition."""
    return next(f"k{n}" for n in range(99) if partition_of(f"k{n}".encode(), PARTITIONS) == partition)


def iso(number: int) -> str:
    """Return the time of a record."""
    return datetime.fromtimestamp(STAMP / 1000 + number, UTC).isoformat()
