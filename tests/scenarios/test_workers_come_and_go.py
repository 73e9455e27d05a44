"""The real worker while records flow: workers come, leave and die, the broker goes away.

Nothing is lost, each key's answers come in its order, and the trees learn on.
"""

import itertools
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import orjson
import pytest
from confluent_kafka import Producer

from streamapp.embedded import EmbeddedBroker
from tests.broker.workers import PATIENCE, Installation, wait_until
from tests.conftest import Broker
from topics.clients.partitioner import partition_of
from topics.codecs import decode_predictions

pytestmark = pytest.mark.broker

KEYS = [b"model-%d" % i for i in range(8)]
SETTINGS = {"GROVE_MODEL_SPEC": '{"learner": {"name": "h-tree"}, "query": {"name": "never"}}'}


def instance(i: int) -> tuple[dict[str, int], str]:
    """Features and class of record i: a simple rule, so that what was learned shows."""
    features = {"a": i * 7 % 10, "b": i % 3}
    return features, "high" if features["a"] > 5 else "low"


class Load:
    """Numbered instances with their labels, key by key in turn, from a thread, until stopped."""

    def __init__(self, place: Installation, rate: int) -> None:
        self._place, self._rate = place, rate
        self._producer: Producer = place.producer(**{"message.timeout.ms": 120_000})
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.sent = 0

    def _run(self) -> None:
        for i in itertools.count():
            key = KEYS[i % len(KEYS)]
            features, label = instance(i)
            value = orjson.dumps({"id": str(i), "features": features, "label": label})
            home = partition_of(key, self._place.partitions)
            self._producer.produce(self._place.names.instances, value, key, home)
            self.sent = i + 1
            if i % 50 == 49:
                self._producer.poll(0)
                if self._stop.wait(50 / self._rate):
                    return

    @contextmanager
    def flowing(self) -> Iterator[None]:
        self._thread.start()
        try:
            yield
        finally:
            self._stop.set()
            self._thread.join()
            assert self._producer.flush(PATIENCE) == 0

    def wait_for(self, more: int) -> None:
        """Return when `more` records were sent from now on."""
        goal = self.sent + more
        wait_until(lambda: self.sent >= goal, PATIENCE, lambda: f"{self.sent} of {goal} records sent")


def check(place: Installation, sent: int, *, once: bool) -> None:
    """Every record is answered, the first answers of a key are in its order, and the newest are right."""
    assert list(place.raw(place.names.dead_letters)) == []
    messages = list(place.raw(place.names.predictions))
    answers_read = decode_predictions([message.value() for message in messages])
    assert answers_read.malformed == []
    answers: dict[bytes, list[int]] = {key: [] for key in KEYS}
    right: dict[int, bool] = {}
    for message, name, label in zip(messages, map(str, answers_read.ids), answers_read.labels, strict=True):
        assert message.partition() == partition_of(message.key(), place.partitions)
        answers[message.key()].append(int(name))
        right[int(name)] = label == instance(int(name))[1]
    for n, key in enumerate(KEYS):
        expected = list(range(n, sent, len(KEYS)))
        if once:
            assert answers[key] == expected, "each once, in order"
            continue
        # Answers that come again go back to a commit, and on from there without a gap.
        firsts = list(dict.fromkeys(answers[key]))
        assert firsts == expected, f"{len(expected) - len(firsts)} records of {key!r} were lost or passed"
        steps = {b - a for a, b in itertools.pairwise(answers[key])}
        assert {step for step in steps if step > 0} == {len(KEYS)}, "a gap was passed"
    newest = [right[i] for i in range(sent - 400, sent)]
    assert sum(newest) > 0.9 * len(newest), "what was learned shows"


def test_two_workers_and_one_leaves(broker: Broker, tmp_path: Path) -> None:
    settings = SETTINGS | {"GROVE_KAFKA_SESSION_TIMEOUT_MS": "6000"}
    place = Installation(
        broker.bootstrap_servers, "leave.", 4, tmp_path, settings=settings, module="streamapp worker"
    )
    load = Load(place, 2000)
    with place.worker("a") as first, place.worker("b") as second:
        first.wait_until_ready()
        with load.flowing():
            second.wait_until_ready()
            wait_until(
                lambda: all(
                    worker.page("/readyz?verbose")[1].count("partition-") == 2 for worker in (first, second)
                ),
                PATIENCE,
                lambda: first.log + second.log,
            )
            load.wait_for(1000)
            assert second.terminate() == 0
            # a static member stays one until its session is over; then the other takes over
            wait_until(
                lambda: first.page("/readyz?verbose")[1].count(": live") == 4, PATIENCE, lambda: first.log
            )
            load.wait_for(1000)
        place.wait_for_lag_0(alive=[first])
        assert first.terminate() == 0
    check(place, load.sent, once=True)  # whoever leaves in good order commits before
    assert first.log.count("keeps its task") >= 2, "what comes back at a rebalance keeps its task"


def test_a_worker_that_is_killed(broker: Broker, tmp_path: Path) -> None:
    place = Installation(
        broker.bootstrap_servers, "kill.", 4, tmp_path, settings=SETTINGS, module="streamapp worker"
    )
    load = Load(place, 2000)
    with place.worker("a") as first, place.worker("b") as second:
        first.wait_until_ready()
        second.wait_until_ready()
        with load.flowing():
            load.wait_for(3000)
            second.kill()
            second.start()  # under its name: the group does not even rebalance
            load.wait_for(3000)
        place.wait_for_lag_0(alive=[first, second])
        assert first.terminate() == 0
        assert second.terminate() == 0
    check(place, load.sent, once=False)


def test_sigterm_in_mid_stream_loses_and_doubles_nothing(broker: Broker, tmp_path: Path) -> None:
    place = Installation(
        broker.bootstrap_servers, "term.", 2, tmp_path, settings=SETTINGS, module="streamapp worker"
    )
    load = Load(place, 4000)
    with place.worker("w") as worker:
        worker.wait_until_ready()
        with load.flowing():
            for _ in range(2):
                load.wait_for(2000)
                assert worker.terminate() == 0
                worker.start()
                worker.wait_until_ready()
            load.wait_for(2000)
        place.wait_for_lag_0(alive=[worker])
        assert worker.terminate() == 0
    check(place, load.sent, once=True)


def test_a_broker_that_is_gone_for_20_seconds(private_broker: EmbeddedBroker, tmp_path: Path) -> None:
    place = Installation(
        private_broker.bootstrap_servers,
        "outage.",
        2,
        tmp_path,
        settings={**SETTINGS, "GROVE_SNAPSHOT_MAX_REPLAY_MS": "1", "GROVE_SNAPSHOT_INTERVAL_MS": "200"},
        module="streamapp worker",
    )
    load = Load(place, 500)
    with place.worker("w") as worker:
        worker.wait_until_ready()
        with load.flowing():
            load.wait_for(1000)
            private_broker.stop()
            assert not threading.Event().wait(20), "the outage itself takes its time"
            assert worker.page("/livez")[0] == 200, "a restart would not bring the broker back"
            private_broker.start()
            load.wait_for(500)
            # The client's copy of the metadata has the epoch of the former leader, for five minutes.
            complete = worker.log.count("is complete: ")
            wait_until(
                lambda: worker.log.count("is complete: ") > complete, PATIENCE, lambda: worker.log[-3000:]
            )
        place.wait_for_lag_0(alive=[worker])
        assert worker.terminate() == 0
    check(place, load.sent, once=False)
