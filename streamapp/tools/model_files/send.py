"""Model import into a cluster: sends control records, and waits for their result.

    file ──> parts ──> controls, partition of the key ──> worker: in effect at the last part
                                                       └─> dead letter with the reason

The sender sees the result in two places. The group's committed offset of `controls` moves past the last
part when a worker has processed it. Dead letters are committed before the offset or with it.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

import orjson
from confluent_kafka import TopicPartition
from confluent_kafka.admin import OffsetSpec

from streamapp.errors import NotYetError, StreamappError
from streamapp.worker.restore.log_reader import LogReader
from streamapp.worker.task.models.files.importing import control_values
from topics.clients.cluster import Cluster
from topics.clients.consumer_group import members_of
from topics.clients.partitioner import partition_of
from topics.clients.sender import Sender
from topics.definitions import TopicNames

PIECE_BYTES: Final = 384 << 10
"""Bytes of the file in a record: in base64, the record has half the bytes that any topic takes by default."""
AROUND_BYTES: Final = 4096
NEWEST: Final = 10
"""Offsets that are read to find the newest instance; some may be markers."""
PAUSE_S: Final = 0.1


class ImportRefusedError(StreamappError):
    """An import was refused, or its result is not known."""


class Sent(NamedTuple):
    """The place of an import's parts."""

    partition: int
    last: int  # offset of the last part
    parts: int
    dead_letters: int  # end of the partition's dead letters before the import


class Importer:
    """Sends files to an installation."""

    def __init__(self, kafka: Mapping[str, Any], group: str, names: TopicNames) -> None:
        """`kafka`: client properties under Kafka's names; `group`: the workers' group."""
        self._kafka = kafka
        self._group = group
        self._names = names
        self._cluster = Cluster(kafka)

    def send(self, key: str, data: bytes, *, replace: bool) -> Sent:
        """Send the file of a model as the model of a key; return when the broker has it."""
        controls, name = self._names.controls, secrets.token_hex(8)
        partition = partition_of(key.encode(), self._cluster.partition_count(controls))
        size = piece_bytes(self._cluster, controls)
        values = control_values(data, name, size=size, replace=replace)
        for needed in (self._names.instances, self._names.dead_letters):
            self._cluster.partition_count(needed)  # its error names the missing right
        with self._reader() as reader:
            dead_letters = reader.of(self._names.dead_letters, partition).range()[1]
            start = reader.of(controls, partition).range()[1]
            sender = Sender(self._kafka)
            try:
                keys, now = [key.encode()] * len(values), self._event_time(reader, partition)
                sender.send_run(controls, partition, values, keys, [now] * len(values))
                sender.flush()
                sender.check()
            finally:
                sender.close()
            reader.open(controls, partition, start)
            last = next(offset for offset, body in _bodies(reader) if _is_last(body, name))
        return Sent(partition, last, len(values), dead_letters)

    def wait(self, sent: Sent, seconds: float) -> bool:
        """Wait until the parts are processed; return False if no worker runs.

        ImportRefusedError has the reason of a refusal, or reports that the time is over.
        """
        controls, deadline = self._names.controls, time.monotonic() + seconds
        with self._reader() as reader:
            while not self._is_behind(reader, sent):
                if not members_of(self._kafka, self._group):
                    return False
                if time.monotonic() > deadline:
                    last = f"{controls} {sent.partition}:{sent.last}"
                    message = f"{last} was not dealt with in {seconds:g} s; see /readyz of the workers"
                    raise ImportRefusedError(message)
                time.sleep(PAUSE_S)
            self._check_refusals(reader, sent, deadline)
        return True

    # -- details --------------------------------------------------------------------------------------------

    def _reader(self) -> LogReader:
        return LogReader(self._kafka, self._group, lambda: False)

    def _event_time(self, reader: LogReader, partition: int) -> int:
        """Return the timestamp of the newest instance, 0 (the time of sending) if there is none.

        In a partition that replays last year, records with today's time would move event time to today.
        """
        first, end = reader.of(self._names.instances, partition).range()
        reader.open(self._names.instances, partition, max(first, end - NEWEST))
        return max((at for raw in reader.to_end() for at in raw.timestamps), default=0)

    def _is_behind(self, reader: LogReader, sent: Sent) -> bool:
        try:
            (position,) = reader.committed([self._names.controls], sent.partition).values()
        except NotYetError:
            return False
        return position is not None and position > sent.last

    def _check_refusals(self, reader: LogReader, sent: Sent, deadline: float) -> None:
        """Raise the reason from the import's dead letters, once a whole transaction can be read."""
        topic, partition = self._names.dead_letters, sent.partition
        end = self._end(TopicPartition(topic, partition))
        while reader.of(topic, partition).range()[1] < end and time.monotonic() < deadline:
            time.sleep(PAUSE_S)
        reader.open(topic, partition, sent.dead_letters)
        for raw in reader.to_end():
            for headers in raw.headers:
                texts = {name: (value or b"").decode("utf-8", "replace") for name, value in headers}
                where = texts.get("__streams.errors.topic"), texts.get("__streams.errors.offset", "-1")
                if where[0] == self._names.controls and sent.last - sent.parts < int(where[1]) <= sent.last:
                    message = f"refused: {texts.get('__streams.errors.message')}"
                    raise ImportRefusedError(message)

    def _end(self, of: TopicPartition) -> int:
        """Return the end of a log, open transactions included."""
        latest = OffsetSpec.latest()  # type: ignore[no-untyped-call]
        (end,) = self._cluster.offsets([of], latest).values()
        return end


def piece_bytes(cluster: Cluster, controls: str) -> int:
    """Return how many bytes of a file fit into a record of a topic."""
    limit = cluster.message_limits([controls]).get(controls, 1 << 20)
    return max(1, min(PIECE_BYTES, (limit - AROUND_BYTES) * 3 // 4))


def _bodies(reader: LogReader) -> Iterator[tuple[int, dict[str, Any]]]:
    for raw in reader.to_end():
        for offset, value in zip(raw.offsets, raw.values, strict=True):
            try:
                body = orjson.loads(value or b"null")
            except orjson.JSONDecodeError:
                continue
            if isinstance(body, dict):
                yield offset, body


def _is_last(body: dict[str, Any], name: str) -> bool:
    return body.get("id") == name and body.get("part") == body.get("parts")
