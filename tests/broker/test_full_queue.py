"""The producer's queue is full because the broker is away: the worker's event loop turns all the same."""

import itertools
import signal
from pathlib import Path

import orjson
import pytest

from streamapp.embedded.broker import EmbeddedBroker
from tests.broker.workers import PATIENCE, Installation, WorkerProcess, wait_until

pytestmark = pytest.mark.broker

N = 8_000
SETTINGS = {
    "GROVE_KAFKA_QUEUE_BUFFERING_MAX_MESSAGES": "100",
    "GROVE_KAFKA_MAX_PARTITION_FETCH_BYTES": "1000",  # one batch a fetch: most are left when the broker goes
}
WAITING = "loop_thread.py"  # a line of the traceback of the thread that waits for the broker


def load(place: Installation, name: str) -> None:
    producer = place.producer(**{"batch.num.messages": 100})
    for i in range(N):
        value = orjson.dumps({"id": f"{name}{i}", "features": {"x": i % 10}})
        producer.produce(place.names.instances, value, b"key", 0)
    assert producer.flush(PATIENCE) == 0


def wait_until_full(worker: WorkerProcess, broker: EmbeddedBroker, place: Installation, n: int) -> None:
    """Return when there are more than `n` answers, the queue is full, and the event loop has said so."""

    def more() -> bool:
        return next(itertools.islice(place.raw(place.names.predictions), n, None), None) is not None

    wait_until(more, PATIENCE, lambda: worker.log)
    broker.stop()
    before = len(worker.log)

    def said() -> bool:
        worker.signal(signal.SIGUSR1)  # answered by the event loop, with the tracebacks of all threads
        return WAITING in worker.log[before:]

    wait_until(said, PATIENCE, lambda: worker.log[before:])


def test_while_the_queue_is_full_the_loop_turns_nothing_is_lost_and_the_worker_can_be_stopped(
    private_broker: EmbeddedBroker, tmp_path: Path
) -> None:
    place = Installation(
        private_broker.bootstrap_servers, "full.", 2, tmp_path, module="streamapp worker", settings=SETTINGS
    )
    load(place, "a")
    with place.worker("w") as worker:
        wait_until_full(worker, private_broker, place, 0)
        assert worker.page("/livez")[0] == 200
        private_broker.start()
        place.wait_for_lag_0(alive=[worker])
        ids = [answer["id"] for answer in place.read(place.names.predictions)]
        assert list(dict.fromkeys(ids)) == [f"a{i}" for i in range(N)], (
            "all of them, first in the order of the input"
        )

        load(place, "b")
        wait_until_full(worker, private_broker, place, len(ids))
        assert worker.terminate() == 0, "it does not wait for delivery.timeout.ms, which is minutes"
    assert "will be processed again" in worker.log
