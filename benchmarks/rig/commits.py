"""Commits: the same transactions by the worker's own producer, by librdkafka's and by aiokafka's.

A transaction has answers in every partition, a record of the journal for each partition, and the offsets of a
group without members.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, Protocol

import numpy as np
from aiokafka import AIOKafkaProducer
from aiokafka import TopicPartition as Place
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka import Producer as ConfluentProducer

from topics.clients.group_member import GroupMember
from topics.clients.sender import BATCH_BYTES
from topics.columns.spans import Ints64, Spans
from topics.definitions import TopicNames
from topics.producing.transactional_producer import TIMEOUT_MS, TransactionalProducer

KEYS: Final = 64
LINGER_MS: Final = 0.5  # librdkafka's producer sends what is handed over in one call together
_ANSWER: Final = '{"id":"3-%d","label":"1","probabilities":{"0":0.1834,"1":0.8166},"version":%d}'

Parts = dict[str, list[float]]
"""Milliseconds of each commit by part: `offsets`, `flush`, `end`, and `all` of the whole commit."""


@dataclass(frozen=True)
class Load:
    """The records of each commit, in the order of their partitions."""

    names: TopicNames
    partitions: int
    outputs: int
    """Answers of all partitions together; each partition has the same number of them, at least one."""

    @property
    def per_partition(self) -> int:
        """Answers of one partition."""
        return max(1, round(self.outputs / self.partitions))

    @cached_property
    def values(self) -> list[bytes]:
        return [(_ANSWER % (n, n)).encode() for n in range(self.per_partition * self.partitions)]

    @cached_property
    def keys(self) -> list[bytes]:
        return [b"model-%02d" % (n % KEYS) for n in range(len(self.values))]

    @cached_property
    def places(self) -> Ints64:
        """The partition of each answer, int64[n]."""
        return np.repeat(np.arange(self.partitions), self.per_partition)

    @cached_property
    def spans(self) -> tuple[Spans, Spans]:
        """Values and keys as columns, which is how a worker has its answers."""
        return Spans.of(self.values), Spans.of(self.keys)

    @cached_property
    def journal(self) -> list[bytes]:
        """The record of the journal for each partition."""
        return [b'{"partition":%d,"outputs":%d}' % (n, self.per_partition) for n in range(self.partitions)]


class Commits(Protocol):
    """A transactional producer that commits one load again and again."""

    parts: Parts

    def expect(self) -> None:
        """Prepare the next commit while its records are computed, if the producer can."""

    def commit(self, number: int) -> None:
        """Send the records, and commit them with `number` as the offset of each partition."""

    def close(self) -> None:
        """Close the producer."""


Producer = Callable[[str, Load, str, int], Commits]
"""Opens a producer: address of the broker, load, transactional id (also the group), milliseconds before a
refused request is sent again.
"""


def measured(call: Callable[..., Any], took: list[float]) -> Callable[..., Any]:
    """Return a function that notes how long each call takes, in ms."""

    def timed(*arguments: Any) -> Any:
        began = time.perf_counter()
        try:
            return call(*arguments)
        finally:
            took.append(1e3 * (time.perf_counter() - began))

    return timed


class OwnCommits:
    """Commits of a worker's producer: one request to a broker for all partitions.

    It waits 5 ms, whatever `backoff_ms` is, before it repeats the first step of a transaction.
    """

    def __init__(self, address: str, load: Load, name: str, backoff_ms: int) -> None:
        self.parts: Parts = {"offsets": [], "flush": [], "end": []}
        self._load = load
        self._member = GroupMember(name)
        self._producer = TransactionalProducer({"bootstrap.servers": address}, name)
        self._producer.open()
        flow: Any = self._producer._flow
        flow._steps.send_offsets = self._timed("offsets", flow._steps.send_offsets)
        flow._sender.flush = self._timed("flush", flow._sender.flush)
        flow._steps.end = self._timed("end", flow._steps.end)

    def _timed(self, part: str, step: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        """Return a coroutine function that notes how long each call takes."""

        async def timed(*arguments: Any, **named: Any) -> None:
            began = time.perf_counter()
            await step(*arguments, **named)
            self.parts[part].append(1e3 * (time.perf_counter() - began))

        return timed

    def expect(self) -> None:
        names, partitions = self._load.names, range(self._load.partitions)
        places = [(topic, number) for topic in (names.predictions, names.journal) for number in partitions]
        self._producer.expect(places, self._member.group)

    def commit(self, number: int) -> None:
        load, journal, n = self._load, self._load.journal, self._load.partitions
        self._producer.send_run(load.names.predictions, load.places, *load.spans, [0] * len(load.values))
        self._producer.send_run(load.names.journal, np.arange(n), journal, [None] * n, [0] * n)
        offsets = {(load.names.instances, partition): number for partition in range(n)}
        self._producer.commit(offsets, self._member)

    def close(self) -> None:
        self._producer.close()


class LateCommits(OwnCommits):
    """Commits of the same producer, which opens the transaction at the commit."""

    def expect(self) -> None:
        pass


class LibrdkafkaCommits:
    """Commits of librdkafka: a request for each partition, at most five in flight to a broker."""

    def __init__(self, address: str, load: Load, name: str, backoff_ms: int) -> None:
        self.parts: Parts = {"offsets": [], "flush": [], "end": []}
        self._load = load
        kafka = {"bootstrap.servers": address, "log_level": 0}
        self._member = Consumer({**kafka, "group.id": name})
        self._producer = ConfluentProducer(
            {
                **kafka,
                "transactional.id": name,
                "transaction.timeout.ms": TIMEOUT_MS,
                "compression.type": "lz4",  # as the worker's producer
                "batch.size": BATCH_BYTES,
                "linger.ms": LINGER_MS,
                "retry.backoff.ms": backoff_ms,
            }
        )
        self._producer.init_transactions()
        member = self._member.consumer_group_metadata()
        self._send_offsets = measured(
            lambda offsets: self._producer.send_offsets_to_transaction(offsets, member), self.parts["offsets"]
        )
        self._flush = measured(self._producer.flush, self.parts["flush"])
        self._end = measured(self._producer.commit_transaction, self.parts["end"])

    def expect(self) -> None:
        pass

    def commit(self, number: int) -> None:
        load, names, produce = self._load, self._load.names, self._producer.produce
        self._producer.begin_transaction()
        for value, key, partition in zip(load.values, load.keys, load.places.tolist(), strict=True):
            produce(names.predictions, value, key, partition)
        for partition, entry in enumerate(load.journal):
            produce(names.journal, entry, None, partition)
        self._send_offsets(
            [TopicPartition(names.instances, partition, number) for partition in range(load.partitions)]
        )
        self._flush()
        self._end()

    def close(self) -> None:
        self._member.close()


class AiokafkaCommits:
    """Commits of aiokafka's producer: one request to a broker for all partitions, whose batches are prebuilt.

    aiokafka waits 20 ms, whatever `backoff_ms` is, before it repeats the first step of a transaction.
    """

    def __init__(self, address: str, load: Load, name: str, backoff_ms: int) -> None:
        self.parts: Parts = {"offsets": [], "flush": [], "end": []}
        self._load = load
        self._name = name
        self._loop = asyncio.new_event_loop()
        self._producer = self._loop.run_until_complete(self._opened(address, backoff_ms))

    async def _opened(self, address: str, backoff_ms: int) -> Any:
        producer = AIOKafkaProducer(
            bootstrap_servers=address,
            transactional_id=self._name,
            transaction_timeout_ms=TIMEOUT_MS,
            compression_type="lz4",  # as the worker's sender
            max_batch_size=BATCH_BYTES,
            retry_backoff_ms=backoff_ms,
        )
        await producer.start()
        return producer

    def expect(self) -> None:
        pass

    def commit(self, number: int) -> None:
        self._loop.run_until_complete(self._commit(number))

    async def _commit(self, number: int) -> None:
        load, names = self._load, self._load.names
        await self._producer.begin_transaction()
        sent = await self._sent(names.predictions, load.values, load.keys, load.per_partition)
        sent += await self._sent(names.journal, load.journal, [None] * load.partitions, 1)
        offsets = {Place(names.instances, partition): number for partition in range(load.partitions)}
        await self._timed("offsets", self._producer.send_offsets_to_transaction(offsets, self._name))
        await self._timed("flush", asyncio.gather(*sent))
        await self._timed("end", self._producer.commit_transaction())

    async def _sent(
        self, topic: str, values: Sequence[bytes], keys: Sequence[bytes | None], per_partition: int
    ) -> list[Awaitable[Any]]:
        """Send a batch to each partition, and return what to await for its delivery."""
        now_ms, sent = time.time_ns() // 1_000_000, []
        for partition in range(self._load.partitions):
            batch = self._producer.create_batch()
            for n in range(partition * per_partition, (partition + 1) * per_partition):
                batch.append(key=keys[n], value=values[n], timestamp=now_ms)
            sent.append(await self._producer.send_batch(batch, topic, partition=partition))
        return sent

    async def _timed(self, part: str, step: Awaitable[Any]) -> None:
        began = time.perf_counter()
        await step
        self.parts[part].append(1e3 * (time.perf_counter() - began))

    def close(self) -> None:
        self._loop.run_until_complete(self._producer.stop())
        self._loop.close()


PRODUCERS: Final[dict[str, Producer]] = {
    "own": OwnCommits,
    "own-late": LateCommits,
    "librdkafka": LibrdkafkaCommits,
    "aiokafka": AiokafkaCommits,
}
