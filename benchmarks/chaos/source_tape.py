"""A source topic, recorded in Kafka's own protocol: keeps records that retention deletes later."""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from operator import attrgetter
from types import TracebackType
from typing import Final, Self

from benchmarks.chaos.fleet import ChaosError, wait_until
from benchmarks.chaos.raw_client import RawClient
from benchmarks.chaos.wire import Record

WAIT_MS: Final = 20  # wait for records of a partition, while other partitions have some
READ_S: Final = 120.0


class SourceTape:
    """All records of a topic, by partition in log order; read in a thread while the block lasts."""

    def __init__(self, servers: str, topic: str, partitions: int) -> None:
        self.records: dict[int, list[Record]] = {number: [] for number in range(partitions)}
        self.positions = dict.fromkeys(self.records, 0)
        self._topic = topic
        self._clients = [RawClient(servers, topic, number) for number in range(partitions)]
        self._stopped = threading.Event()
        self._failure: Exception | None = None
        self._thread = threading.Thread(target=self._run, name="source-tape", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop reading at any position."""
        self._stopped.set()
        self._thread.join()

    def wait_for(self, ends: Mapping[int, int]) -> None:
        """Return when everything is read up to a position in each partition; may raise ChaosError."""

        def done() -> bool:
            if self._failure is not None:
                message = f"{self._topic}: {self._failure}"
                raise ChaosError(message)
            return all(self.positions[number] >= end for number, end in ends.items())

        wait_until(done, READ_S, lambda: f"{self._topic}: read up to {self.positions}, it ends at {ends}")

    def between(self, partition: int, start: int, end: int) -> Sequence[Record]:
        """Return the records of the offsets from `start` to before `end`."""
        records = self.records[partition]
        first, behind = (bisect_left(records, at, key=attrgetter("offset")) for at in (start, end))
        return records[first:behind]

    def _run(self) -> None:
        try:
            while not self._stopped.is_set():
                for number, client in enumerate(self._clients):
                    records, position = client.fetch(self.positions[number], WAIT_MS)
                    self.records[number] += records
                    self.positions[number] = position
        except Exception as failure:  # noqa: BLE001 - it is `wait_for` that tells
            self._failure = failure
        finally:
            for client in self._clients:
                client.close()
