"""The undisturbed worker: what the journal makes of the logs, in one go and in one process.

Workers cut the journal off behind their snapshots. So it is read along from the beginning while they work,
and the models of the end are those of a replay that knows no snapshot.
"""

from __future__ import annotations

import threading
from contextlib import ExitStack
from types import TracebackType
from typing import Self

from confluent_kafka import Consumer, KafkaError, TopicPartition

from benchmarks.chaos.fleet import ChaosError
from streamapp.journal.entry import SOURCES, Entry, decode
from streamapp.restore.log_reader import LogReader
from streamapp.restore.replay import Replay
from streamapp.task.task import Source
from topics.definitions import TopicNames

POLL_S = 0.2


class Archive:
    """The whole journal of each partition, kept in memory while the block lasts."""

    def __init__(self, servers: str, names: TopicNames, partitions: int) -> None:
        self._servers = servers
        self._names = names
        self._partitions = partitions
        self._values: dict[int, list[bytes]] = {number: [] for number in range(partitions)}
        self._consumer = Consumer(
            {
                "bootstrap.servers": servers,
                "group.id": "archive",
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "auto.offset.reset": "error",  # what was cut off before it was read would be missing
                "log_level": 0,
            }
        )
        self._next = dict.fromkeys(range(partitions), 0)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._read, name="archive", daemon=True)

    def __enter__(self) -> Self:
        """Begin to read."""
        self._assign()
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop reading."""
        self._stop()

    def _assign(self) -> None:
        topic = self._names.journal
        self._consumer.assign([TopicPartition(topic, number, at) for number, at in self._next.items()])

    def _read(self) -> None:
        while not self._ended.is_set():
            self._take()
        self._assign()  # a partition says once that it is at its end: it shall do so again
        at_end: set[int] = set()
        while len(at_end) < self._partitions:
            at_end |= self._take()

    def _take(self) -> set[int]:
        """Read on; return the partitions that are at their end."""
        at_end = set()
        for message in self._consumer.consume(1000, POLL_S):
            number, error = message.partition(), message.error()
            if error is None:
                self._values[number].append(message.value())
                self._next[number] = message.offset() + 1
            elif error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001
                at_end.add(number)
            elif not error.retriable():
                raise ChaosError(error.str())
        return at_end

    def _stop(self) -> None:
        if self._thread.is_alive():
            self._ended.set()
            self._thread.join()
            self._consumer.close()

    def models(self) -> dict[str, bytes]:
        """Return the snapshot of every model by key, once no worker runs any more."""
        self._stop()
        found: dict[str, bytes] = {}
        for number, values in self._values.items():
            with ExitStack() as open_readers:
                replay = Replay(number, lambda source, at: self._log(open_readers, source, number, at))  # noqa: B023
                for record in map(decode, values):
                    if isinstance(record, Entry):
                        replay.apply(record)
                if replay.task is not None:
                    store = replay.task.models
                    found |= {key: store.model(slot).snapshot() for slot, key in store.keys.items()}
        return found

    def _log(self, readers: ExitStack, source: Source, partition: int, position: int) -> LogReader:
        kafka = {"bootstrap.servers": self._servers, "log_level": 0}
        reader = readers.enter_context(LogReader(kafka, "archive", lambda: False))
        assert source in SOURCES
        reader.open(getattr(self._names, source), partition, position)
        return reader
