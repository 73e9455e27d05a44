"""Offered runs: records that wait to be written, and counts of all that the brokers have not acknowledged."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any, Final

from topics.producing.batch_encoder import Run, WrittenBatch

MOST_BYTES: Final = 256 << 20
"""Bytes of records that the brokers have not acknowledged, from which on a producer is full, if
`queue.buffering.max.kbytes` is not set.
"""


class OfferedRuns:
    """Runs in the order in which they were offered; one thread offers, another one takes."""

    def __init__(self, most_bytes: int = MOST_BYTES, most_records: float = float("inf")) -> None:
        """No more should be offered once so many bytes, or records, are not acknowledged."""
        self._most_bytes = most_bytes
        self._most_records = most_records
        self._lock = threading.Lock()
        self._runs: list[tuple[str, Run]] = []
        self._n_written_bytes = 0
        self._buffers: dict[int, bytes] = {}
        self.n_bytes = 0
        """Bytes of the runs that wait to be written."""
        self.n_held_bytes = 0
        """Bytes of the buffers of these runs. They may be many times larger: keys of answers lie in the
        buffer of the fetched instances.
        """
        self.n_kept_bytes = 0
        """Bytes of runs that were taken and wait to be written."""
        self.n_records = 0
        """Number of offered records that the brokers have not acknowledged."""

    @property
    def is_full(self) -> bool:
        """Whether no more should be offered."""
        return self._n_waiting_bytes >= self._most_bytes or self.n_records >= self._most_records

    @property
    def has_room(self) -> bool:
        """Whether at most half of what may wait for the brokers does."""
        return self._n_waiting_bytes <= self._most_bytes / 2 and self.n_records <= self._most_records / 2

    @property
    def _n_waiting_bytes(self) -> int:
        return max(self.n_bytes, self.n_held_bytes) + self.n_kept_bytes + self._n_written_bytes

    @property
    def has_runs(self) -> bool:
        """Whether a run waits to be written."""
        return bool(self._runs)

    @classmethod
    def of(cls, kafka: Mapping[str, Any]) -> OfferedRuns:
        """Return the runs of a producer with these properties, under librdkafka's names."""
        most_bytes = MOST_BYTES
        if "queue.buffering.max.kbytes" in kafka:
            most_bytes = int(kafka["queue.buffering.max.kbytes"]) << 10
        most_records = int(kafka.get("queue.buffering.max.messages", 0))
        return cls(most_bytes, most_records or float("inf"))  # 0: no limit, as in librdkafka

    def offer(self, topic: str, run: Run) -> None:
        """Add a run at the end."""
        size = run.n_bytes
        columns = (
            [run.values, run.keys] if run.headers is None else [run.values, run.keys, run.headers.values]
        )
        with self._lock:
            self._runs.append((topic, run))
            for column in columns:
                if id(column.buffer) not in self._buffers:
                    self._buffers[id(column.buffer)] = column.buffer
                    self.n_held_bytes += len(column.buffer)
            self.n_bytes += size
            self.n_records += len(run.values)

    def take(self) -> dict[str, list[Run]]:
        """Return the runs by topic; they no longer wait."""
        with self._lock:
            runs = self._runs
            self._forget_runs()
        by_topic: dict[str, list[Run]] = {}
        for topic, run in runs:
            by_topic.setdefault(topic, []).append(run)
        return by_topic

    def written(self, batches: Sequence[WrittenBatch]) -> None:
        """Count batches of taken runs until they are acknowledged."""
        with self._lock:
            self._n_written_bytes += sum(len(batch.wire) for batch in batches)

    def settled(self, batches: Sequence[WrittenBatch]) -> None:
        """Stop counting batches, which the brokers have, or which have failed."""
        with self._lock:
            self._n_written_bytes -= sum([len(batch.wire) for batch in batches])
            self.n_records -= sum([batch.count for batch in batches])

    def replaced(self, batch: WrittenBatch, parts: Sequence[WrittenBatch]) -> None:
        """Count parts of a batch in its place."""
        with self._lock:
            self._n_written_bytes += sum(len(part.wire) for part in parts) - len(batch.wire)
            self.n_records += sum(part.count for part in parts) - batch.count

    def clear(self) -> None:
        """Forget all runs and counts."""
        with self._lock:
            self._forget_runs()
            self.n_records, self._n_written_bytes = 0, 0

    def _forget_runs(self) -> None:
        self._runs, self._buffers, self.n_bytes, self.n_held_bytes = [], {}, 0, 0
