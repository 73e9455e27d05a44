"""A batch that becomes 400 MB, in topics that our other clients read: they log it, and go on behind it."""

from __future__ import annotations

import gzip
import logging
import time
import uuid
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import cramjam
import pytest

from benchmarks.chaos.raw_client import RawClient
from benchmarks.chaos.wire import Record, encode_records
from streamapp.tools.dead_letters.find import DeadLetterFilter, DeadLetterLog
from streamapp.web.topic_reader import Positions, Runs, TopicReader
from tests.broker.workers import PATIENCE, wait_until
from tests.conftest import Broker
from topics.clients import admin
from topics.definitions import TopicNames
from topics.oracle.consumed_requests import RequestTopic, place
from topics.replay.from_topics import TopicReplay, TopicReplayPlan

pytestmark = pytest.mark.broker

GROWN_KB = 400_000
"""More than the bound and what is copied of it; a bomb alone becomes as much."""
NOW_MS = time.time_ns() // 1_000_000
"""Retention would delete older records, at a moment of the broker's choice."""
OFFSETS = [0, 1, 22, 23, 44, 45]


def peak_kb() -> int:
    status = Path("/proc/self/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith("VmHWM:")).split()[1])


@pytest.fixture(scope="module")
def place_of_bombs(broker: Broker) -> tuple[dict[str, Any], TopicNames]:
    """Topics with two records, a bomb of zstd, two records, one of gzip, two records."""
    kafka = {"bootstrap.servers": broker.bootstrap_servers}
    names = TopicNames(f"bombs-{uuid.uuid4().hex[:8]}.")
    admin.create(kafka, names, 1)
    body = encode_records([Record(b"m", bytes(20 << 20), (), NOW_MS)] * 20)
    bombs = [(bytes(cramjam.zstd.compress(body)), 4), (gzip.compress(body, 1), 1)]
    del body
    for topic in (names.instances, names.label_requests, names.dead_letters):
        with RawClient(broker.bootstrap_servers, topic, 0) as producer:
            for number in range(3):
                producer.write([Record(b"m", b"%d" % (2 * number + at), (), NOW_MS) for at in range(2)])
                if number < len(bombs):
                    producer.write_body(bombs[number][0], 20, bombs[number][1])
    return kafka, names


class Kept(TopicReader):
    """A reader of the web application that keeps offsets in memory."""

    def _begin(self, origin: dict[str, str]) -> bool:
        self.offsets = defaultdict[str, list[int]](list)
        self.positions: dict[tuple[str, int], int] = {}
        return False

    def _stored(self, topic: str) -> Mapping[int, int]:
        return {}

    def _store(self, runs: Runs, positions: Positions) -> None:
        for (topic, _), messages in runs.items():
            self.offsets[topic] += [message.offset() or 0 for message in messages]
        self.positions |= positions

    def _ends(self, topic: str, partition: int, offset: int) -> None:
        self.stop()


def test_the_web_application_the_oracle_a_replay_and_the_dead_letters_go_on(
    place_of_bombs: tuple[dict[str, Any], TopicNames], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    (kafka, names), before = place_of_bombs, peak_kb()

    reader = Kept(kafka, "bombs.", (names.label_requests,))
    reader.run()
    assert reader.offsets[names.label_requests] == OFFSETS
    assert reader.positions == {(names.label_requests, 0): OFFSETS[-1] + 1}

    requests = RequestTopic(
        kafka, names.label_requests, f"oracle-{uuid.uuid4()}", lambda: None, lambda _: None
    )
    came: list[int] = []

    def read() -> bool:
        came.extend(place(message)[1] for message in requests.consume(0.2))
        return len(came) >= len(OFFSETS) and requests.read

    wait_until(read, PATIENCE, lambda: f"{came}\n{caplog.text}")
    assert came == OFFSETS
    requests.close()

    target = TopicNames(f"copy-{uuid.uuid4().hex[:8]}.")
    admin.create(kafka, target, 1)
    report = TopicReplay(TopicReplayPlan({names.instances: target.instances}), kafka).run()
    assert report.records == len(OFFSETS)

    letters = list(DeadLetterLog(kafka, "nobody", names).read(DeadLetterFilter()))
    assert [letter.offset for letter in letters] == OFFSETS

    assert peak_kb() - before < GROWN_KB
    lines = [record.getMessage() for record in caplog.records if "becomes more than" in record.getMessage()]
    assert len(lines) == 2 * 4, caplog.text


def test_the_web_application_keeps_a_position_after_a_bomb_at_the_end(broker: Broker) -> None:
    """Else each start would read the bomb again."""
    kafka = {"bootstrap.servers": broker.bootstrap_servers}
    names = TopicNames(f"bombs-{uuid.uuid4().hex[:8]}.")
    admin.create(kafka, names, 1)
    too_large = cramjam.zstd.compress(encode_records([Record(b"m", bytes(17 << 20), (), NOW_MS)] * 4))
    with RawClient(broker.bootstrap_servers, names.label_requests, 0) as producer:
        producer.write([Record(b"m", b"1", (), NOW_MS)])
        producer.write_body(bytes(too_large), 4, 4)
    reader = Kept(kafka, "bombs.", (names.label_requests,))
    reader.run()
    assert (reader.offsets, reader.positions) == (
        {names.label_requests: [0]},
        {(names.label_requests, 0): 5},
    )
