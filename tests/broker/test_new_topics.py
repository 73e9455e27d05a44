"""Topics that a client has asked for before they were there: it must not remember that for ever."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from benchmarks.rig.visible import Cluster as Rig
from streamapp.worker.journal.log import JournalLog
from tests.broker.workers import PATIENCE, wait_until

pytestmark = pytest.mark.broker


@pytest.fixture
def prefix() -> str:
    return f"test-{uuid.uuid4().hex[:12]}."


def asked_too_early(rig: Rig, known: str, early: str) -> None:
    """Let a client that knows a topic ask for the ends of one that is not there."""
    rig.create(known, partitions=1)
    rig._admin.list_topics(known, timeout=PATIENCE)
    with pytest.raises(KafkaException):
        rig._ends(early, 8)


def test_the_rig_sees_a_topic_that_it_asked_for_too_early(broker: Any, prefix: str) -> None:
    """It was told `_NOENT: Failed to query partition leaders` for ever, without a request to the broker."""
    rig = Rig(broker.bootstrap_servers)
    asked_too_early(rig, prefix + "known", prefix + "early")
    rig.create(prefix + "early", partitions=8)
    assert rig.ends(prefix + "early", 8) == [0] * 8
    rig.delete(prefix + "known", prefix + "early")


def test_so_does_who_trims_the_journal(broker: Any, prefix: str) -> None:
    rig = Rig(broker.bootstrap_servers)
    log = JournalLog({"bootstrap.servers": broker.bootstrap_servers}, prefix + "journal")
    rig.create(prefix + "known", partitions=1)
    log._admin.list_topics(prefix + "known", timeout=PATIENCE)
    log._admin.list_topics(timeout=PATIENCE)
    with pytest.raises(KafkaException):
        log.end(0)
    rig.create(prefix + "journal", partitions=1)
    ends: list[int] = []

    def told() -> bool:
        try:
            ends.append(log.end(0))
        except KafkaException as failure:
            assert failure.args[0].code() in (
                KafkaError._NOENT,
                KafkaError.NOT_LEADER_FOR_PARTITION,
                KafkaError.UNKNOWN_TOPIC_OR_PART,
                KafkaError.LEADER_NOT_AVAILABLE,
                KafkaError.UNKNOWN_LEADER_EPOCH,
            )
        return bool(ends)

    wait_until(told, PATIENCE, lambda: "the journal's end is not told")
    assert ends == [0]
    rig.delete(prefix + "known", prefix + "journal")


def test_what_the_rig_has_deleted_is_not_taken_for_a_topic_that_exists(broker: Any, prefix: str) -> None:
    """A worker missed its journal, which nobody had created: it still seemed to be there.

    A broker that has much to do for others tells of a deletion late.
    """
    rig = Rig(broker.bootstrap_servers)
    others = [f"{prefix}other-{number}" for number in range(10)]
    rig.create(prefix + "again", *others, partitions=8)
    for name in others:  # one after the other, each of them a change of its own
        rig._admin.delete_topics([name], operation_timeout=0)
    rig.delete(prefix + "again")
    assert prefix + "again" not in rig._admin.list_topics(timeout=PATIENCE).topics
