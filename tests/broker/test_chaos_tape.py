"""The tape of the chaos program: what is committed, and where a log was cut off before it came by."""

from pathlib import Path

import pytest
from confluent_kafka import Producer

from benchmarks.chaos.tape import Tape, values
from tests.broker.workers import PATIENCE, Installation, wait_until
from tests.conftest import Broker

pytestmark = pytest.mark.broker


def test_a_tape_keeps_what_is_cut_off_behind_it(broker: Broker, tmp_path: Path) -> None:
    place = Installation(broker.bootstrap_servers, "tape.", 1, tmp_path)
    topic = place.names.journal
    with Tape(broker.bootstrap_servers, topic, 1) as tape:
        commit(broker, topic, [b"1", b"2"])  # and a mark: the next one stands at 3
        wait_until(lambda: len(tape.records[0]) == 2, PATIENCE, lambda: str(tape.records))
        place.delete_before(topic, 0, 3)
        commit(broker, topic, [b"3"])
        tape.stop()
    assert values(tape.records) == {0: [b"1", b"2", b"3"]}
    assert all(first == 3 and at >= 2 for _, at, first in tape.overtaken), "at most the mark"


def test_a_tape_says_what_was_cut_off_before_it_came_by(broker: Broker, tmp_path: Path) -> None:
    place = Installation(broker.bootstrap_servers, "late.", 1, tmp_path)
    topic = place.names.journal
    commit(broker, topic, [b"1", b"2"])
    place.delete_before(topic, 0, 1)
    with Tape(broker.bootstrap_servers, topic, 1) as tape:
        tape.stop()
    assert values(tape.records) == {0: [b"2"]}
    assert tape.overtaken == [(0, 0, 1)]


def commit(broker: Broker, topic: str, values: list[bytes]) -> None:
    producer = Producer(
        {"bootstrap.servers": broker.bootstrap_servers, "transactional.id": f"t-{topic}", "log_level": 0}
    )
    producer.init_transactions(PATIENCE)
    producer.begin_transaction()
    for value in values:
        producer.produce(topic, value, b"key", 0)
    producer.commit_transaction(PATIENCE)
