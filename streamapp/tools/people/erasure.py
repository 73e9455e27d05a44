"""Erasure: an annotator's name is replaced by a pseudonym in the topic `audit` and in a store.

The topic is written again after its end, with the same times, and its records of before are deleted. A
name that two people share, or that occurs in a comment, is not recognized. The annotator of a label cannot be
replaced: a worker that restores its state reads the same labels again.
"""

from __future__ import annotations

import re
import secrets
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import orjson
from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient

from streamapp.errors import NotYetError
from streamapp.tools.offline.errors import OfflineError
from streamapp.web.store import Store
from streamapp.worker.restore.errors import RestoreError
from streamapp.worker.restore.log_reader import LogReader
from topics.clients.access import Access, denied_kind
from topics.clients.cluster import Cluster
from topics.clients.partitioner import partition_of
from topics.clients.sender import Sender
from topics.codecs import decode_audit, encode_audit
from topics.columns.records import AuditEntry, RawRecords
from topics.definitions import TopicNames
from topics.errors import BrokerError

PREFIX: Final = "erased-"
REQUEST_S: Final = 30.0
_TABLES: Final = ("lease", "skip", "vote", "gold_shown", "dealt", "day")
"""Tables of the store that have the name in a column `annotator`, alone."""
_DERIVED: Final = ("crowd", "outcome", "review", "adjudication")
"""Tables of the store that are filled again from the topic."""


@dataclass(frozen=True, slots=True)
class Erasure:
    """The result of an erasure in the topic."""

    pseudonym: str
    entries: int  # with the name; 0: the topic was left as it is
    rewritten: int  # records that were written again
    joined_names: frozenset[str] = frozenset()
    """Names of people that contain the "+" by which an answer of several people joins their names."""


def erase_in_topic(kafka: Mapping[str, Any], group: str, names: TopicNames, annotator: str) -> Erasure:
    """Replace a name in the topic `audit`; raises errors of the broker, before anything is written.

    If the process dies before the old records are deleted, a second call ends the work: it uses the same
    pseudonym, and leaves out records that were written again already.
    """
    topic = names.audit
    with _reading(kafka, group, topic) as reader:
        count = Cluster(kafka).partition_count(topic)
        ranges = {number: reader.of(topic, number).range() for number in range(count)}
        deletion = _Deletion(kafka, topic)
        deletion.before({number: first for number, (first, _) in ranges.items()})  # is it allowed?
        named, pseudonym, joined_names = _survey(reader, topic, ranges, annotator)
        if not named:
            return Erasure(pseudonym, 0, 0, joined_names)
        with closing(Sender(kafka)) as sender:
            rewritten = _write_again(sender, reader, topic, ranges, annotator, pseudonym)
        deletion.before({number: end for number, (_, end) in ranges.items()})
    return Erasure(pseudonym, named, rewritten, joined_names)


def erase_in_store(path: Path, topic: str, annotator: str, erasure: Erasure) -> None:
    """Replace a name in the store of `grove web`; StreamappError if an application has the file open."""
    pseudonym = erasure.pseudonym
    with closing(Store(path)) as store:
        with store.transaction() as db:
            db.execute("PRAGMA secure_delete = ON")
            for table in _TABLES:
                db.execute(
                    f"UPDATE OR REPLACE {table} SET annotator = ? WHERE annotator = ?",  # noqa: S608
                    (pseudonym, annotator),
                )
            db.execute(
                "UPDATE request SET gold_for = ?, subject = replace(subject, ':' || ?, ':' || ?) "
                "WHERE gold_for = ?",
                (pseudonym, annotator, pseudonym, annotator),
            )
            rows = db.execute("SELECT number, annotator FROM answer").fetchall()
            changed = [
                (_in_list(who, annotator, pseudonym, erasure.joined_names), number) for number, who in rows
            ]
            db.executemany("UPDATE answer SET annotator = ? WHERE number = ?", changed)
            _rename_waiting(db, annotator, pseudonym)
            db.execute("DELETE FROM session WHERE annotator = ?", (annotator,))
            for table in _DERIVED:
                db.execute(f"DELETE FROM {table}")  # noqa: S608 - names of ours
            db.execute("DELETE FROM position WHERE topic = ?", (topic,))
        store.compact()
    for suffix in ("", "-wal", "-shm"):  # it is filled again from the topic
        path.with_name(f"{path.stem}-people.sqlite{suffix}").unlink(missing_ok=True)


def renamed(entry: AuditEntry, annotator: str, pseudonym: str) -> AuditEntry:
    """Return an entry with a pseudonym in the place of a name; the same object if it has not the name.

    >>> renamed(AuditEntry("1", "ann", "label", 5), "ann", "erased-1").user
    'erased-1'
    """
    changes: dict[str, Any] = {}
    if entry.user == annotator:
        changes["user"] = pseudonym
    if entry.annotator == annotator:
        changes["annotator"] = pseudonym
    if entry.votes is not None and annotator in entry.votes:
        changes["votes"] = {
            pseudonym if name == annotator else name: vote for name, vote in entry.votes.items()
        }
    if entry.action == "outcome" and entry.detail is not None:
        # The votes in words: "fraud with weight 0.667 (ann: fraud, bob: fraud)".
        pattern = rf"(?<=[(,]){re.escape(annotator)}(?=: )|(?<=, ){re.escape(annotator)}(?=: )"
        detail = re.sub(pattern, lambda _: pseudonym, entry.detail)
        if detail != entry.detail:
            changes["detail"] = detail
    return replace(entry, **changes) if changes else entry


def _survey(
    reader: LogReader, topic: str, ranges: Mapping[int, tuple[int, int]], annotator: str
) -> tuple[int, str, frozenset[str]]:
    """Return how many entries have the name, the pseudonym of an earlier attempt or a new one, and the
    names of people that contain a "+".
    """
    ids, users, joined_names = set[str](), dict[str, str](), set[str]()
    for _, entry in _entries(reader, topic, ranges):
        if entry is None:
            continue
        if "+" in entry.user:
            joined_names.add(entry.user)
        if entry.user.startswith(PREFIX):
            users[entry.id] = entry.user
        if renamed(entry, annotator, PREFIX) is not entry:
            ids.add(entry.id)
    earlier = next((users[number] for number in sorted(ids) if number in users), None)
    return len(ids), earlier or f"{PREFIX}{secrets.token_hex(4)}", frozenset(joined_names)


def _write_again(
    sender: Sender,
    reader: LogReader,
    topic: str,
    ranges: Mapping[int, tuple[int, int]],
    annotator: str,
    pseudonym: str,
) -> int:
    """Write all records again, each id once, and return their number; records that are no entries, too."""
    ids, count = set[str](), 0
    for (key, value, partition, timestamp), entry in _entries(reader, topic, ranges):
        if entry is not None:
            if entry.id in ids:
                continue
            ids.add(entry.id)
            now_named = renamed(entry, annotator, pseudonym)
            if now_named is not entry:
                (value,) = encode_audit([now_named])
                key = now_named.user.encode()
                partition = partition_of(key, len(ranges))
        sender.send([topic], [value or b""], [key or b""], [partition], [timestamp])
        count += 1
    sender.flush()
    return count


_Raw = tuple[bytes | None, bytes | None, int, int]


def _entries(
    reader: LogReader, topic: str, ranges: Mapping[int, tuple[int, int]]
) -> Iterator[tuple[_Raw, AuditEntry | None]]:
    """Yield key, value, partition and time of each record, with its entry; None: it is none."""
    for partition, (first, end) in ranges.items():
        if first == end:
            continue
        reader.open(topic, partition, first)
        for raw in reader.up_to(end):
            yield from _decoded(raw)


def _decoded(raw: RawRecords) -> Iterator[tuple[_Raw, AuditEntry | None]]:
    decoded = decode_audit([value or b"" for value in raw.values])
    for place, entry in enumerate(decoded):
        about = (raw.keys[place], raw.values[place], raw.partition, raw.timestamps[place])
        yield about, entry if isinstance(entry, AuditEntry) else None


def _rename_waiting(db: sqlite3.Connection, annotator: str, pseudonym: str) -> None:
    """Replace a name in the entries that the topic does not have yet."""
    for number, text in db.execute("SELECT number, entry FROM audit").fetchall():
        entry = renamed(AuditEntry(**orjson.loads(text)), annotator, pseudonym)
        db.execute("UPDATE audit SET entry = ? WHERE number = ?", (orjson.dumps(entry).decode(), number))


def _in_list(names: str, annotator: str, pseudonym: str, joined_names: frozenset[str] = frozenset()) -> str:
    """Return the annotators of an answer ("ann+bob") with a pseudonym in the place of a name.

    joined_names: names of people that contain a "+"; they are whole, the longest first.

    >>> _in_list("ann+bob", "ann", "erased-1"), _in_list("anna+bob", "ann", "erased-1")
    ('erased-1+bob', 'anna+bob')
    >>> _in_list("ann+tag@x.org+ann", "ann", "erased-1", frozenset(["ann+tag@x.org"]))
    'ann+tag@x.org+erased-1'
    """
    whole_names = sorted({annotator, *joined_names}, key=lambda name: (-len(name), name))
    pattern = rf"(?:(?<=^)|(?<=\+))(?:{'|'.join(map(re.escape, whole_names))})(?=\+|$)"
    return re.sub(pattern, lambda match: pseudonym if match[0] == annotator else match[0], names)


class _Deletion:
    """Deletes the records of a topic before an offset."""

    def __init__(self, kafka: Mapping[str, Any], topic: str) -> None:
        self._admin, self._topic = AdminClient(Cluster.properties(kafka)), topic
        self._access = Access.of(kafka)

    def before(self, offsets: Mapping[int, int]) -> None:
        """Delete the records of each partition before an offset; BrokerError."""
        places = [TopicPartition(self._topic, number, offset) for number, offset in offsets.items()]
        for future in self._admin.delete_records(places, request_timeout=REQUEST_S).values():
            try:
                future.result(2 * REQUEST_S)
            except KafkaException as failure:
                error = failure.args[0]
                if denied_kind(error.code()) is not None:
                    raise BrokerError(self._access.denied("topic", self._topic, "Delete")) from None
                message = f"records of {self._topic} cannot be deleted: {error.str()}; try again"
                raise BrokerError(message) from None


@contextmanager
def _reading(kafka: Mapping[str, Any], group: str, topic: str) -> Iterator[LogReader]:
    """Give a reader of the topic, whose errors are those of an offline command."""
    try:
        with LogReader(kafka, group, lambda: False) as reader:
            yield reader
    except NotYetError as error:
        message = f"topic {topic}: {error}; try again later"
        raise OfflineError(message) from error
    except RestoreError as error:  # retention has deleted the records
        message = f"topic {topic}: {error.reason}; try again"
        raise OfflineError(message) from error
