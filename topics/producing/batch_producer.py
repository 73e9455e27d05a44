"""Batch producer: a producer that takes runs of columns and sends them as record batches, without waiting."""

from __future__ import annotations

import contextlib
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from topics.clients.stop_deadline import StopDeadline
from topics.columns.header_columns import HeaderColumns
from topics.columns.records import Headers, Ints64
from topics.columns.spans import Spans
from topics.producing.batch_encoder import Run
from topics.producing.offered_runs import OfferedRuns


class BatchProducer(ABC):
    """One thread offers records and never waits; other threads call the methods that wait for the brokers."""

    def __init__(self, kafka: Mapping[str, Any], stopped: Callable[[], bool]) -> None:
        """`kafka` holds client properties under librdkafka's names. Brokers are waited for, but only STOP_S
        seconds once `stopped()` is true.
        """
        self._deadline = StopDeadline(stopped)
        self._offered = OfferedRuns.of(kafka)
        self._gathers = False
        self._is_closed = False

    def send_run(
        self,
        topic: str,
        partition: int | Ints64,
        values: Sequence[bytes | None],
        keys: Sequence[bytes | None],
        timestamps: Sequence[int],
        headers: Sequence[Headers] | None = None,
    ) -> None:
        """Offer records, and wait while the producer is full."""
        self.offer_run(topic, partition, values, keys, timestamps, headers)
        self.drain()

    def offer_run(
        self,
        topic: str,
        partition: int | Ints64,
        values: Sequence[bytes | None],
        keys: Sequence[bytes | None],
        timestamps: Sequence[int],
        headers: Sequence[Headers] | None = None,
    ) -> None:
        """Take records of a topic, in order; never wait.

        `partition`: one for all records, or int64[n]; `timestamps` in ms since the epoch, 0: now. Raises an
        earlier failure, and ValueError for columns that do not fit together.
        """
        self.check()
        times = np.asarray(timestamps, dtype=np.int64)
        if not times.all():
            times = np.where(times == 0, time.time_ns() // 1_000_000, times)
        places = np.full(len(values), partition, dtype=np.int64) if isinstance(partition, int) else partition
        named = None if headers is None else HeaderColumns.of(headers)
        self._take(topic, Run(places, Spans.of(values), Spans.of(keys), times, named))
        if not self._gathers:
            self.hand_over()

    @contextlib.contextmanager
    def gathering(self) -> Iterator[None]:
        """Keep records that are offered in this block for `hand_over`."""
        former, self._gathers = self._gathers, True
        try:
            yield
        finally:
            self._gathers = former

    @property
    def is_full(self) -> bool:
        """Whether so many records wait for the brokers that no more should be offered."""
        return self._offered.is_full

    @property
    def n_queued(self) -> int:
        """Number of offered records that the brokers have not acknowledged."""
        return self._offered.n_records

    @abstractmethod
    def hand_over(self) -> None:
        """Let the offered records be sent; never wait, and raise an earlier failure."""

    @abstractmethod
    def check(self) -> None:
        """Raise an earlier failure."""

    @abstractmethod
    def drain(self) -> None:
        """Return when the producer is not full; raise earlier failures."""

    @abstractmethod
    def flush(self) -> None:
        """Return when all offered records are delivered; raise if a record cannot be delivered."""

    @abstractmethod
    def close(self) -> None:
        """Give up undelivered records and close the connections; call `flush` first if they matter."""

    @abstractmethod
    def _take(self, topic: str, run: Run) -> None:
        """Keep a run for `hand_over`."""
