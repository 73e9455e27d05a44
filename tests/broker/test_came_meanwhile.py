"""A worker that starts while an operator changes what its partition goes on with: that is said."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition

import streamapp.tools.dead_letters.skip as skipping
import streamapp.worker.restore.fall_back as falling_back
import streamapp.worker.restore.reset as module
from streamapp.worker.restore.reset import ResetError, reset
from tests.broker.test_sources_anew import drain, load
from tests.broker.workers import PATIENCE, Installation, wait_until
from tests.conftest import Broker
from tests.positions import at

pytestmark = pytest.mark.broker


@contextlib.contextmanager
def member(place: Installation) -> Iterator[Consumer]:
    """Yield a member of the workers' group, which has its partitions."""
    properties = {"bootstrap.servers": place.servers, "group.id": place.group, "group.instance.id": "early"}
    consumer = Consumer({**properties, "enable.auto.commit": False, "log_level": 0})
    consumer.subscribe([place.names.instances])

    def joined() -> bool:
        consumer.poll(0.1)
        return bool(consumer.assignment())

    wait_until(joined, PATIENCE, lambda: "the member does not join")
    yield consumer
    consumer.close()


def meanwhile(monkeypatch: pytest.MonkeyPatch, where: Any, happens: Callable[[], object]) -> None:
    """Let something happen just before the journal is written to."""
    write = where.write_together

    def write_late(*arguments: Any) -> None:
        happens()
        write(*arguments)

    monkeypatch.setattr(where, "write_together", write_late)


@pytest.mark.parametrize("what", ["nobody", "stays", "went on"])
def test_who_came_while_a_partition_was_reset_is_named(
    broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    place = Installation(broker.bootstrap_servers, "meanwhile.", 1, tmp_path)
    kafka = {"bootstrap.servers": place.servers}
    with contextlib.ExitStack() as stays:

        def come() -> None:
            if what == "stays":
                stays.enter_context(member(place))
            elif what == "went on":  # and left, as one without a name does
                consumer = Consumer({**kafka, "group.id": place.group, "log_level": 0})
                consumer.commit(offsets=[TopicPartition(place.names.instances, 0, 0)], asynchronous=False)
                consumer.close()

        meanwhile(monkeypatch, module, come)
        if what == "nobody":
            assert reset(kafka, place.group, place.names, 0) == at()
            return
        who = "early" if what == "stays" else "a worker that has left again"
        with pytest.raises(ResetError, match=f"partition 0: {who} joined during the command.* run it again"):
            reset(kafka, place.group, place.names, 0)


def test_who_came_while_a_record_was_skipped_is_named(
    broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = Installation(broker.bootstrap_servers, "skipped.", 1, tmp_path)
    kafka = {"bootstrap.servers": place.servers}
    producer = place.producer()
    producer.produce(place.names.instances, b"poison", b"key", 0)
    assert producer.flush(PATIENCE) == 0
    skippable = skipping.find(kafka, place.group, place.names, 0, "instances", 0)
    with contextlib.ExitStack() as stays:
        meanwhile(monkeypatch, skipping, lambda: stays.enter_context(member(place)))
        with pytest.raises(ResetError, match="partition 0: early joined during the command"):
            skipping.skip(kafka, place.group, place.names, skippable)


def test_who_came_while_a_partition_was_restored_is_named(
    broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It goes on from the snapshot that a worker left when it was drained."""
    place = Installation(broker.bootstrap_servers, "fallen.", 1, tmp_path, module="streamapp worker")
    kafka = {"bootstrap.servers": place.servers}
    load(place, 0, 20)
    with place.worker("w") as worker:
        worker.wait_until_ready()
        place.wait_for_lag_0(alive=[worker])
        drain(worker)
    with contextlib.ExitStack() as stays:
        meanwhile(monkeypatch, falling_back, lambda: stays.enter_context(member(place)))
        with pytest.raises(ResetError, match="partition 0: early joined during the command"):
            falling_back.fall_back(kafka, place.group, place.names, 0)
