"""Where a journal ends; cutting off its beginning: a right that is missing is told once, and no more."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import OFFSET_INVALID, IsolationLevel, KafkaError, KafkaException, TopicPartition

from streamapp.worker.journal import log as journal_log
from streamapp.worker.journal.log import JournalLog


class Admin:
    """An administration client that refuses."""

    def __init__(self, code: int) -> None:
        self.code = code
        self.asked: list[tuple[int, int]] = []
        self.asked_for = threading.Barrier(8)

    def list_offsets(
        self, wanted: dict[TopicPartition, Any], isolation_level: IsolationLevel, request_timeout: float
    ) -> dict[Any, Future[Any]]:
        """Answer once every partition was asked for: of a client of its own each would wait for ever."""
        assert isolation_level == IsolationLevel.READ_UNCOMMITTED
        (here,) = wanted
        self.asked_for.wait(60)
        future: Future[Any] = Future()
        future.set_result(SimpleNamespace(offset=100 + here.partition))
        return {here: future}

    def poll(self, _seconds: float) -> int:
        return 0

    def delete_records(self, wanted: list[TopicPartition], request_timeout: float) -> dict[Any, Future[Any]]:
        future: Future[Any] = Future()
        future.set_exception(KafkaException(KafkaError(self.code)))
        self.asked += [(each.partition, each.offset) for each in wanted]
        return dict.fromkeys(wanted, future)


def log_with(code: int) -> tuple[JournalLog, Admin]:
    kafka = {"bootstrap.servers": "none:1", "sasl.username": "grove"}
    log, admin = JournalLog(kafka, "grove.journal"), Admin(code)
    log._admin = admin  # type: ignore[assignment]
    return log, admin


@pytest.mark.parametrize("request_of", [lambda log: log.end(0), lambda log: log.trim(0, 1)])
def test_requests_leave_no_events_in_the_client_while_no_broker_listens(
    request_of: Callable[[JournalLog], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client lives as long as its worker, and would keep the events of each outage of the broker."""
    monkeypatch.setattr(journal_log, "REQUEST_S", 0.1)
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        log = JournalLog({"bootstrap.servers": f"127.0.0.1:{closed.getsockname()[1]}"}, "grove.journal")
        for _ in range(8):
            with pytest.raises(KafkaException):
                request_of(log)
        client: Any = log._admin
        assert len(client) <= 4  # of connections that failed since the last request


def test_partitions_are_asked_for_at_once_through_one_client() -> None:
    log, _ = log_with(0)
    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(log.end, range(8))) == [100 + partition for partition in range(8)]


def test_an_answer_without_an_offset_is_a_failure() -> None:
    """So librdkafka answers when a leader dies; as a position it would end the snapshots of its partition."""

    def list_offsets(wanted: dict[TopicPartition, Any], **_: Any) -> dict[TopicPartition, Future[Any]]:
        future: Future[Any] = Future()
        future.set_result(SimpleNamespace(offset=OFFSET_INVALID))
        return dict.fromkeys(wanted, future)

    refreshed: list[str] = []
    log, _ = log_with(0)
    log._admin = SimpleNamespace(  # type: ignore[assignment]
        list_offsets=list_offsets,
        list_topics=lambda topic, timeout: refreshed.append(topic),
        poll=lambda seconds: 0,
    )
    with pytest.raises(KafkaException, match="did not answer"):
        log.end(0)
    assert refreshed == ["grove.journal"], "the client would ask the leader that has died again"


def test_a_denied_deletion_is_told_once_with_the_right_to_grant(caplog: pytest.LogCaptureFixture) -> None:
    log, admin = log_with(KafkaError.TOPIC_AUTHORIZATION_FAILED)
    for partition in range(3):
        log.trim(partition, 7)
    assert admin.asked == [(0, 7), (1, 7), (2, 7)]
    (record,) = caplog.records
    assert record.message == (
        "topic 'grove.journal' must allow Delete to user 'grove'; grant it with kafka-acls --add "
        "--allow-principal User:grove --operation Delete --topic grove.journal; until then the journal only "
        "grows"
    )


def test_what_else_fails_is_an_error() -> None:
    log, _ = log_with(KafkaError.REQUEST_TIMED_OUT)
    with pytest.raises(KafkaException):
        log.trim(0, 7)
