"""The check: the output that a read_committed reader sees, compared with the load.

It shares no code with the application's own path of records: it reads topics with a bare consumer and decodes
JSON, Arrow and MessagePack by their specifications.
"""

from __future__ import annotations

import io
import json
import struct
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import msgpack
import pyarrow as pa
from confluent_kafka import Consumer, KafkaError, Message, TopicPartition

from benchmarks.chaos.load import Sent
from benchmarks.chaos.purchases import Purchases, check_purchases
from benchmarks.chaos.wire import Record

SOURCES: Final = ("controls", "instances", "feature_values", "labels")
TOPICS: Final = {source: source.replace("_", "-") for source in SOURCES}
ENTRY: Final = 0
"""A kind of record in the journal (docs/journal.md)."""

PACKED: Final = b"\xd6\x47"


@dataclass
class Findings:
    """Errors that the check counts; all are zero in a correct run."""

    records: int = 0
    rows: int = 0
    lost: int = 0  # rows without an outcome, malformed records without a dead letter
    doubled: int = 0  # outcomes beyond the first, or for instances that retention deleted
    disordered: int = 0  # answers of a model out of the order of its instances
    invented: int = 0  # outcomes without an instance
    requests: int = 0
    requests_doubled: int = 0
    labels: int = 0
    labels_unasked: int = 0  # labels without a committed request
    not_learned: int = 0  # records of the sources that no commit of the journal processed
    learned_twice: int = 0  # records that two commits processed
    unacknowledged: int = 0  # instances in the log that the load has not recorded: it wrote them twice
    deleted: int = 0  # offsets that retention deleted before a commit of the journal reached them
    examples: list[str] = field(default_factory=list)

    def note(self, what: str) -> None:
        """Keep a few examples for the report."""
        if len(self.examples) < 10:
            self.examples.append(what)


def check(
    servers: str,
    prefix: str,
    partitions: int,
    sent: Mapping[tuple[int, int], Sent],
    journal: Mapping[int, Sequence[bytes]],
    deleted: Mapping[int, int] | None = None,
    logged: Mapping[int, Sequence[Record]] | None = None,
    buying: Collection[str] = (),
) -> Findings:
    """Compare outputs with inputs; `journal` holds its values from the first one on, by partition.

    `deleted`: the offset up to which retention has deleted the instances of a partition. `logged`: all
    instances that were in the log. `buying`: keys of models that buy features, which answer a record once
    they have enough of it.
    """
    findings = Findings(records=len(sent), rows=sum(len(record.ids) for record in sent.values()))
    again: Counter[str] = Counter()
    for partition, records in (logged or {}).items():
        unknown = [record for record in records if (partition, record.offset) not in sent]
        findings.unacknowledged += len(unknown)
        again.update(name for record in unknown for name in _id_of_row(record.value))
        if unknown:
            findings.note(f"instances[{partition}]: {len(unknown)} unacknowledged, the first {unknown[0]}")
    gone = _check_journal(findings, servers, prefix, journal, deleted or {})
    remaining = {place: record for place, record in sent.items() if place not in gone}
    names = {name for place in gone & sent.keys() for name in sent[place].ids}
    _check_answers(findings, servers, prefix, partitions, remaining, names, buying, again)
    _check_dead_letters(findings, servers, prefix, partitions, remaining, gone)
    _check_labels(findings, servers, prefix, partitions)
    return findings


def _check_answers(
    findings: Findings,
    servers: str,
    prefix: str,
    partitions: int,
    sent: Mapping[tuple[int, int], Sent],
    gone: set[str],
    buying: Collection[str],
    again: Mapping[str, int],
) -> None:
    """Compare answers with rows; `again`: how often more than once the load's producer wrote a row."""
    ids_sent: dict[tuple[int, str], list[str]] = defaultdict(list)
    for (partition, _), record in sorted(sent.items()):
        ids_sent[partition, record.key] += record.ids
    ids_answered: dict[tuple[int, str], list[str]] = defaultdict(list)
    for message in read(servers, prefix + "predictions", partitions):
        ids_answered[message.partition(), message.key().decode()] += _ids(message)  # type: ignore[index, union-attr]
    for place in ids_sent.keys() | ids_answered.keys():
        counts = Counter(ids_answered[place])
        expected = set(ids_sent[place])
        missing = [name for name in ids_sent[place] if name not in counts]
        findings.lost += len(missing)
        answered = [name for name in counts if name in gone]
        if answered:
            findings.doubled += len(answered)
            findings.note(f"{place}: answered, and deleted unread: {answered}")
        findings.invented += sum(n for name, n in counts.items() if name not in expected | gone)
        due = {name: 1 + again.get(name, 0) for name in expected}
        findings.doubled += sum(max(0, n - due[name]) for name, n in counts.items() if name in expected)
        twice = [name for name, n in counts.items() if name in expected and n > due[name]]
        if twice:
            findings.note(f"{place}: {len(twice)} rows answered again, the first is {twice[0]}")
        if missing:
            findings.note(f"{place}: {len(missing)} rows not answered, the first is {missing[0]}")
        first = [name for name in dict.fromkeys(ids_answered[place]) if name in expected]
        in_order = place[1] in buying or first == [name for name in ids_sent[place] if name in counts]
        if not in_order:
            findings.disordered += 1
            findings.note(f"{place}: answers out of order")


def _id_of_row(value: bytes | None) -> list[str]:
    """Return the id in an instance that is a row as JSON, if it is one."""
    try:
        return [str(json.loads(value or b"")["id"])]
    except (ValueError, KeyError, TypeError):
        return []


def _ids(message: Message) -> list[str]:
    value = message.value() or b""
    if value[:1] == b"{":
        return [str(json.loads(value)["id"])]
    if value[:2] == PACKED:
        _, _, size, _, id_bytes, n, _ = struct.unpack_from("<BBBBHIi", value, 2)
        start = 24 + n * size  # after the header, the version and the probabilities
        return [value[start : start + id_bytes].decode()]
    table = pa.ipc.open_stream(io.BytesIO(value)).read_all()
    return [str(name) for name in table.column("id").to_pylist()]


def _check_dead_letters(
    findings: Findings,
    servers: str,
    prefix: str,
    partitions: int,
    sent: Mapping[tuple[int, int], Sent],
    gone: set[tuple[int, int]],
) -> None:
    malformed = {place for place, record in sent.items() if record.kind == "malformed"}
    letters: Counter[tuple[int, int]] = Counter()
    for message in read(servers, prefix + "dead-letters", partitions):
        headers = dict(message.headers() or [])
        if str(_text(headers["__streams.errors.topic"])).endswith("instances"):
            partition = int(_text(headers["__streams.errors.partition"]))
            letters[partition, int(_text(headers["__streams.errors.offset"]))] += 1
    findings.lost += len(malformed - letters.keys())
    findings.doubled += sum(n if place in gone else n - 1 for place, n in letters.items())
    for place in sorted(place for place, n in letters.items() if n > 1 or place in gone):
        findings.note(f"{place}: {letters[place]} dead letters{', and deleted unread' * (place in gone)}")
    findings.invented += len(letters.keys() - malformed - gone)


def purchases(
    servers: str,
    prefix: str,
    partitions: int,
    prices: Mapping[str, float],
    brought: Mapping[tuple[str, str], frozenset[str]],
) -> Purchases:
    """Read requests, values and costs, and compare them with each other."""

    def documents(topic: str) -> Iterator[tuple[str, Any]]:
        for message in read(servers, prefix + topic, partitions):
            value = message.value() or b""
            if value[:1] == b"{":  # models that buy features answer in JSON
                yield _text(message.key()), json.loads(value)

    refused = sum(
        _text(dict(message.headers() or [])["__streams.errors.topic"]).endswith("feature-values")
        for message in read(servers, prefix + "dead-letters", partitions)
    )
    requests, values, predictions = map(documents, ("feature-requests", "feature-values", "predictions"))
    return check_purchases(requests, values, predictions, prices, brought, refused)


def _check_labels(findings: Findings, servers: str, prefix: str, partitions: int) -> None:
    asked = Counter(
        (message.key(), json.loads(message.value() or b"{}")["instance_id"])
        for message in read(servers, prefix + "label-requests", partitions)
    )
    findings.requests = sum(asked.values())
    findings.requests_doubled = sum(n - 1 for n in asked.values())
    findings.doubled += findings.requests_doubled
    for message in read(servers, prefix + "labels", partitions):
        findings.labels += 1
        name = json.loads(message.value() or b"{}")["id"]
        if (message.key(), name) not in asked:
            findings.labels_unasked += 1
            findings.note(f"a label of {name}, which no model has requested")


def _check_journal(
    findings: Findings,
    servers: str,
    prefix: str,
    journal: Mapping[int, Sequence[bytes]],
    deleted: Mapping[int, int],
) -> set[tuple[int, int]]:
    """Compare the journal with the logs: every record must be processed, and none twice.

    Return the places of the instances that retention deleted before they were processed.
    """
    gone = set[tuple[int, int]]()
    ends = {source: log_ends(servers, prefix + topic, len(journal)) for source, topic in TOPICS.items()}
    for partition, values in journal.items():
        at = dict.fromkeys(SOURCES, 0)
        for entry in (body for body in map(_unpacked, values) if body[1] == ENTRY):
            before, after, steps = entry[5:8]
            _compare(findings, partition, at, before)
            for source, _, *more in steps:
                deleted_before = deleted.get(partition, 0) if source == "instances" else 0
                for first, end in more[0] if more else ():
                    lost = range(first, max(first, min(end, deleted_before)))
                    gone |= {(partition, offset) for offset in lost}
                    findings.deleted += len(lost)
                    findings.not_learned += end - first - len(lost)
            at = after
        _compare(findings, partition, at, {source: ends[source][partition] for source in SOURCES})
    return gone


def _compare(findings: Findings, partition: int, at: Mapping[str, int], then: Mapping[str, int]) -> None:
    for source in SOURCES:
        here, there = at.get(source, 0), then.get(source, 0)  # 0: the journal may leave it out
        findings.not_learned += max(0, there - here)
        findings.learned_twice += max(0, here - there)
        if here != there:
            findings.note(f"{source}[{partition}]: the journal goes on at {there} where it stood at {here}")


def _unpacked(value: bytes) -> tuple[Any, ...]:
    body: tuple[Any, ...] = msgpack.unpackb(value, use_list=False)
    return body


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def log_ends(servers: str, topic: str, partitions: int) -> list[int]:
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "chaos-checker", "log_level": 0})
    try:
        places = (TopicPartition(topic, number) for number in range(partitions))
        return [consumer.get_watermark_offsets(place, timeout=120)[1] for place in places]
    finally:
        consumer.close()


def read(servers: str, topic: str, partitions: int) -> Iterator[Message]:
    """Yield the committed records of a topic, partition by partition in the order of the log."""
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": "chaos-checker",
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "earliest",
            "fetch.wait.max.ms": 10,  # else the broker holds the fetch that finds an end for 500 ms
            "log_level": 0,
        }
    )
    try:
        consumer.assign([TopicPartition(topic, partition, 0) for partition in range(partitions)])
        ended: set[int] = set()
        while len(ended) < partitions:
            for message in consumer.consume(5000, 0.05):
                error = message.error()
                if error is None:
                    yield message
                elif error.code() == KafkaError._PARTITION_EOF:
                    ended.add(message.partition())  # type: ignore[arg-type]
                else:
                    raise RuntimeError(f"{topic}: {error.str()}")
    finally:
        consumer.close()
