"""Producing at full speed, with a count of the delivered records."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from confluent_kafka import Producer

FLUSH_SECONDS = 120
TRANSACTION_MS = 900_000  # the longest that a broker allows by default


class Backfill:
    """A producer for a `with` block; when the block ends, the broker has every record."""

    def __init__(self, bootstrap: str, linger_ms: float = 20, transaction: str | None = None) -> None:
        """`transaction` is a transactional id: readers of committed records see all of them at the end."""
        more = (
            {"transactional.id": transaction, "transaction.timeout.ms": TRANSACTION_MS} if transaction else {}
        )
        self._is_transaction = transaction is not None
        self._producer = Producer(
            {
                **more,
                "bootstrap.servers": bootstrap,
                "linger.ms": linger_ms,
                "batch.size": 1_000_000,
                "queue.buffering.max.messages": 500_000,
                "queue.buffering.max.kbytes": 500_000,
                "enable.idempotence": True,
            }
        )
        self._failures: list[str] = []
        self.records = 0
        self.bytes = 0

    def __enter__(self) -> Self:
        if self._is_transaction:
            self._producer.init_transactions()
            self._producer.begin_transaction()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        n_left = self._producer.flush(FLUSH_SECONDS)
        if kind is None and (n_left or self._failures):
            message = f"{n_left} records not delivered, {len(self._failures)} failed: {self._failures[:1]}"
            raise RuntimeError(message)
        if kind is None and self._is_transaction:
            self._producer.commit_transaction()

    def send(self, topic: str, value: bytes, key: bytes, partition: int, timestamp: int = 0) -> None:
        """Produce one record; `timestamp` is in ms since the epoch, 0: now."""
        while True:
            try:
                self._producer.produce(
                    topic, value, key, partition, timestamp=timestamp, on_delivery=self._delivered
                )
                break
            except BufferError:
                self._producer.poll(0.05)
        self.records += 1
        self.bytes += len(value)
        if not self.records & 0x3FF:
            self._producer.poll(0)

    def poll(self) -> None:
        self._producer.poll(0)

    def _delivered(self, error: object, _: object) -> None:
        if error is not None:
            self._failures.append(str(error))
