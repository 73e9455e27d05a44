"""Workers that are killed: every record has one prediction, and the state goes on where it was."""

from __future__ import annotations

import json
import signal
from collections import Counter
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.broker.workers import PATIENCE, Installation, wait_until
from topics.clients.partitioner import partition_of

pytestmark = pytest.mark.broker

KEYS = [f"m{number}" for number in range(6)]
RECORDS = 30_000
SPEC = {"learner": {"name": "h-tree", "grace_period": 50, "leaf_model": "mc"}}


@pytest.fixture
def installation(broker: Any, tmp_path: Path) -> Installation:
    settings = {
        "GROVE_MODEL_SPEC": json.dumps(SPEC),
        "GROVE_KAFKA_MAX_POLL_RECORDS": "200",
        "GROVE_PROCESSING_GUARANTEE": "exactly_once",
        "GROVE_SNAPSHOT_MAX_REPLAY_MS": "20",
        "GROVE_SNAPSHOT_INTERVAL_MS": "500",
    }
    return Installation(broker.bootstrap_servers, "eos.", 4, tmp_path, settings, module="streamapp worker")


def load(installation: Installation, first: int, n: int) -> None:
    producer = installation.producer()
    for number in range(first, first + n):
        key = KEYS[number % len(KEYS)]
        document = {
            "id": str(number),
            "features": {"a": number % 7, "b": number * 31 % 11},
            "label": "yes" if number % 7 > 3 else "no",
        }
        partition = partition_of(key.encode(), installation.partitions)
        producer.produce(installation.names.instances, orjson.dumps(document), key, partition)
        producer.poll(0)
    producer.flush()


def answers(installation: Installation) -> dict[str, list[tuple[str, Any]]]:
    """Return id and whole prediction per model, in the order of the log."""
    records_of_key: dict[str, list[tuple[str, Any]]] = {key: [] for key in KEYS}
    for record in installation.read(installation.names.predictions):
        records_of_key[record["key"].decode()].append((record["id"], record))
    return records_of_key


def expected_ids(key: str) -> list[str]:
    return [str(number) for number in range(RECORDS) if KEYS[number % len(KEYS)] == key]


def test_killed_again_and_again_every_record_is_answered_once_and_learned_once(
    installation: Installation,
) -> None:
    load(installation, 0, RECORDS // 2)
    with installation.worker("w0") as worker:
        worker.wait_until_ready()
        for share in (0.1, 0.2):
            wait_until(
                lambda share=share: installation.lag() < (0.5 - share) * RECORDS,  # type: ignore[misc]
                PATIENCE,
                lambda: worker.log,
            )
            worker.kill()
            worker.start()
            worker.wait_until_ready()
        load(installation, RECORDS // 2, RECORDS - RECORDS // 2)
        installation.wait_for_lag_0(alive=[worker])
        assert worker.terminate() == 0, worker.log
    for key, given in answers(installation).items():
        assert [name for name, _ in given] == expected_ids(key)
        assert [record["version"] for _, record in given] == list(range(len(given)))


def test_at_least_once_repeats_answers_but_not_what_was_learned(installation: Installation) -> None:
    installation.settings["GROVE_PROCESSING_GUARANTEE"] = "at_least_once"
    load(installation, 0, RECORDS)
    with installation.worker("w0") as worker:
        worker.wait_until_ready()
        wait_until(lambda: worker.metric("grove_records_total") > RECORDS / 4, PATIENCE, lambda: worker.log)
        worker.kill()
        worker.start()
        installation.wait_for_lag_0(alive=[worker])
        assert worker.terminate() == 0, worker.log
    for key, given in answers(installation).items():
        first = dict(reversed(given))
        assert list(dict(given)) == expected_ids(key)
        assert all(record == first[name] for name, record in given), "a repeated answer is the same answer"
        assert sorted(record["version"] for record in first.values()) == list(range(len(first)))


def test_a_worker_that_was_frozen_cannot_commit_what_another_one_did_meanwhile(
    installation: Installation,
) -> None:
    load(installation, 0, RECORDS // 2)
    with installation.worker("w0") as zombie, installation.worker("w1") as heir:
        zombie.wait_until_ready()
        heir.wait_until_ready()
        zombie.signal(signal.SIGSTOP)
        load(installation, RECORDS // 2, RECORDS - RECORDS // 2)
        installation.wait_for_lag_0(alive=[heir])
        zombie.signal(signal.SIGCONT)
        zombie.wait_until_ready()
        installation.wait_for_lag_0(alive=[heir, zombie])
        assert (zombie.terminate(), heir.terminate()) == (0, 0), zombie.log + heir.log
    for key, given in answers(installation).items():
        assert Counter(name for name, _ in given) == Counter(expected_ids(key))
        assert [record["version"] for _, record in given] == list(range(len(given)))
