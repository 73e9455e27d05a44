"""Cutting off the beginning of a journal: a right that is missing is told once, and costs nothing else."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from streamapp.journal.log import JournalLog


class Admin:
    """An administration client that refuses."""

    def __init__(self, code: int) -> None:
        self.code = code
        self.asked: list[tuple[int, int]] = []

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
