"""Answers as a table, and the erasure of a name, on a real broker."""

from __future__ import annotations

import csv
import io
import uuid
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from confluent_kafka import Producer

from streamapp.cli.main import main
from streamapp.tools.people import erasure
from streamapp.tools.people.erasure import erase_in_topic
from streamapp.web.annotation_terms import Terms
from streamapp.web.audit_log import AuditLog
from streamapp.web.clock import now_ms
from streamapp.web.queue.cards import Request
from streamapp.web.queue.label_queue import LabelQueue
from streamapp.web.store import Store
from tests.broker.kafka_log import read_topic
from tests.broker.workers import PATIENCE
from topics.clients import admin
from topics.clients.partitioner import partition_of
from topics.codecs import decode_audit, encode_audit
from topics.columns.records import AuditEntry
from topics.definitions import TopicNames
from topics.errors import BrokerError

pytestmark = pytest.mark.broker
PARTITIONS = 3


def entries() -> list[AuditEntry]:
    """Return the entries of a day: answers of three people, one taken back, an outcome, a review."""
    at = now_ms() - 60_000
    about = ("shop", "i-1", "r-1")
    votes: dict[str, str | None] = {"ann": "=fraud", "anna": "good", "bob": "=fraud"}
    answers = [
        AuditEntry(f"{n}", who, "label", at + n, *about, label, label, seconds=2.5)
        for n, (who, label) in enumerate(votes.items())
    ]
    detail = "=fraud with weight 0.667 (ann: =fraud, anna: good, bob: =fraud)"
    outcome = AuditEntry("10", "agreement", "outcome", at + 10, *about, detail, "=fraud")
    return [
        *answers,
        AuditEntry("3", "ann", "decline", at + 3, "shop", "i-2", "r-2", reason="unreadable", comment="?"),
        AuditEntry("4", "ann", "label", at + 4, "shop", "i-3", "r-3", "good", "good"),
        AuditEntry("5", "ann", "undo", at + 5, "shop", "i-3", "r-3"),
        replace(outcome, votes=votes, weight=0.667),
        AuditEntry("11", "rae", "review", at + 11, *about, "=fraud becomes good: corrected", "good"),
        AuditEntry("12", "pauses", "pause", at + 12, detail="too low", annotator="ann"),
    ]


def installed(broker: Any, sent: Sequence[AuditEntry]) -> tuple[dict[str, str], TopicNames]:
    kafka = {"bootstrap.servers": broker.bootstrap_servers}
    names = TopicNames(f"erase-{uuid.uuid4().hex[:8]}.")
    admin.create(kafka, names, PARTITIONS)
    producer = Producer(kafka)
    for entry, value in zip(sent, encode_audit(sent), strict=True):
        key = entry.user.encode()
        producer.produce(names.audit, value, key, partition_of(key, PARTITIONS), timestamp=entry.at_ms)
    producer.produce(names.audit, b"no entry", b"x", 0)
    assert producer.flush(PATIENCE) == 0
    return kafka, names


def test_answers_are_exported_and_a_name_is_erased(
    broker: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sent = entries()
    kafka, names = installed(broker, sent)
    options = ["-b", broker.bootstrap_servers, "--topics-prefix", names.prefix]
    options += ["--set", f"state.dir={tmp_path}"]

    def exported() -> list[dict[str, str]]:
        assert main(["people", "export", *options]) == 0
        return list(csv.DictReader(io.StringIO(capsys.readouterr().out)))

    rows = exported()
    first = next(row for row in rows if (row["annotator"], row["instance_id"]) == ("ann", "i-1"))
    assert (first["label"], first["outcome"], first["reviewer"]) == ("'=fraud", "'=fraud", "rae")
    assert (first["reviewed_label"], first["seconds"], len(rows)) == ("good", "2.5", 4)
    declined = next(row for row in rows if row["instance_id"] == "i-2")
    assert (declined["label"], declined["reason"], declined["comment"]) == ("", "unreadable", "?")
    parquet = tmp_path / "answers.parquet"
    assert main(["people", "export", *options, "--format", "parquet", "--output", str(parquet)]) == 0
    labels = [row["label"] for row in pq.read_table(parquet).to_pylist()]
    assert sorted(map(str, labels)) == ["=fraud", "=fraud", "None", "good"]
    capsys.readouterr()

    path = tmp_path / "web.sqlite"
    with closing(Store(path)) as store:
        queue = LabelQueue(store, Terms(undo_ms=60_000))
        asked = Request(0, "shop", "r-9", "i-9", now_ms(), -1, 0.5, "good", "random", {"x": 1.0})
        queue.topics.apply([asked], [], {(names.audit, 0): 5}, now_ms(), [("shop", "good")])
        card = queue.leases.next_card("ann", now_ms())
        assert card is not None
        queue.actions.answer("ann", card.number, "good", now_ms())
        assert main(["people", "erase", "ann", *options, "--yes"]) == 1
        assert "must be of one process" in capsys.readouterr().err
        assert exported() == rows, "nothing is written if an application runs"
    assert main(["people", "erase", "ann", *options, "--yes"]) == 0
    said = capsys.readouterr().out
    pseudonym = said.split(" is ")[1].split()[0]
    assert f"ann is {pseudonym} in 6 entries of {names.audit}" in said
    assert pseudonym.startswith("erased-")

    records = read_topic(kafka, names.audit)
    assert len(records) == len(sent) + 1
    text = b"\n".join((record.key() or b"") + (record.value() or b"") for record in records)
    assert b"ann" not in text.replace(b"anna", b"").replace(b'"annotator"', b"")
    decoded = decode_audit([record.value() for record in records])
    times = {entry.id: entry.at_ms for entry in decoded if isinstance(entry, AuditEntry)}
    assert times == {entry.id: entry.at_ms for entry in sent}
    assert {record.timestamp()[1] for record in records} >= {entry.at_ms for entry in sent}
    renamed = [{**row, "annotator": row["annotator"].replace("ann", pseudonym)} for row in rows]
    renamed = [row | {"annotator": row["annotator"].replace(f"{pseudonym}a", "anna")} for row in renamed]
    assert sorted(map(str, exported())) == sorted(map(str, renamed))

    bytes_left = b"".join(file.read_bytes() for file in tmp_path.glob("web.sqlite*"))
    assert b"ann" not in bytes_left.replace(b"annotator", b"")
    with closing(Store(path)) as store:
        assert [entry.user for _, entry in AuditLog(store).waiting()] == [pseudonym]
        assert LabelQueue(store).topics.positions(names.audit) == {}, "outcomes are read again"
    assert main(["people", "erase", "ann", *options, "--yes"]) == 0
    assert f"{names.audit} has no entry with ann" in capsys.readouterr().out


def test_an_erasure_that_was_interrupted_is_ended_by_the_next_one(
    broker: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent = entries()
    kafka, names = installed(broker, sent)
    real = erasure._Deletion.before
    calls: list[int] = []

    def fails_at_the_end(self: Any, offsets: Any) -> None:
        calls.append(1)
        if len(calls) == 2:
            message = "the broker is away"
            raise BrokerError(message)
        real(self, offsets)

    monkeypatch.setattr(erasure._Deletion, "before", fails_at_the_end)
    with pytest.raises(BrokerError, match="away"):
        erase_in_topic(kafka, "group", names, "ann")
    twice = {record.key() for record in read_topic(kafka, names.audit)}
    result = erase_in_topic(kafka, "group", names, "ann")
    assert result.pseudonym.encode() in twice, "the same pseudonym"
    records = read_topic(kafka, names.audit)
    decoded = decode_audit([record.value() for record in records])
    ids = [entry.id for entry in decoded if isinstance(entry, AuditEntry)]
    assert sorted(ids, key=int) == sorted((entry.id for entry in sent), key=int)
    assert b"ann" not in {record.key() for record in records}
