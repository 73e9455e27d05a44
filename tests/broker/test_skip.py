"""A record stops its partition; `grove dlq skip` lets it go on, with one dead letter, for good."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import orjson
import pytest

from streamapp.cli.main import main
from tests.broker.workers import PATIENCE, Installation, WorkerProcess, wait_until
from tests.conftest import Broker

pytestmark = pytest.mark.broker

POISON = orjson.dumps({"command": "create", "spec": {"query": "never"}, "said": "x" * 40_000})
"""A control that the journal below has no room for."""


def learn(place: Installation, first: int, n: int) -> None:
    producer = place.producer()
    for i in range(first, first + n):
        document = {"id": f"i{i}", "features": {"x": i % 7}, "label": "ab"[i % 7 > 3]}
        producer.produce(place.names.instances, orjson.dumps(document), b"m", 0)
    assert producer.flush(PATIENCE) == 0


def test_a_partition_that_is_stopped_by_a_record_goes_on_without_it(
    broker: Broker, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = Installation(broker.bootstrap_servers, "skip.", 1, tmp_path, module="streamapp worker")
    place.configure(place.names.journal, {"max.message.bytes": "20000"})
    options = ["-b", place.servers, "--topics-prefix", place.prefix, "--set", f"application.id={place.group}"]

    def grove(*command: str, code: int = 0) -> str:
        assert main([*command, *options]) == code
        output = capsys.readouterr()
        return output.err if code else output.out

    def leave(worker: WorkerProcess) -> None:
        worker.signal(signal.SIGUSR2)
        assert worker.wait() == 0, worker.log
        wait_until(lambda: not place.members(), PATIENCE, lambda: worker.log)

    skip = ["dlq", "skip", "0:0", "--source", "controls"]
    with place.worker("w") as worker:
        worker.wait_until_ready()
        learn(place, 0, 50)
        place.wait_for_lag_0(alive=[worker])
        producer = place.producer()
        producer.produce(place.names.controls, POISON, b"m", 0)
        assert producer.flush(PATIENCE) == 0
        wait_until(lambda: worker.page("/readyz")[0] == 503, PATIENCE, lambda: worker.log)
        assert f"'grove {' '.join(skip)}' makes this record" in worker.page("/readyz?verbose")[1]
        assert "must have no members" in grove(*skip, "--yes", code=1)
        leave(worker)
    learn(place, 50, 50)
    assert f"record     {place.names.controls} 0:0, 40," in grove(*skip, "--yes")
    assert json.loads(grove(*skip, "--yes", "--json"))["already"] is True
    with place.worker("w") as worker:
        worker.wait_until_ready()
        place.wait_for_lag_0(alive=[worker])
        leave(worker)
    (letter,) = place.raw(place.names.dead_letters)
    assert (letter.key(), letter.value()) == (b"m", POISON)
    assert dict(letter.headers())["grove-dlq-reason"] == b"skipped"
    assert [answer["id"] for answer in place.read(place.names.predictions)] == [f"i{i}" for i in range(100)]
    kinds = [json.loads(line)["kind"] for line in grove("journal", "show", "-p", "0", "--json").splitlines()]
    assert kinds.count("skip") == 1, "nothing lay ahead any more when the last snapshot was written"
    assert "was processed already" in grove(*skip, "--yes", code=1)
    (model,) = json.loads(grove("models", "list", "--json"))
    assert model["labels"] == 100, "read from snapshot and journal"
