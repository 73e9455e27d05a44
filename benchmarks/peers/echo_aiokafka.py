"""Bare echo with aiokafka: polls of many records, answered by whole record batches built in Python."""

from __future__ import annotations

import asyncio
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

from benchmarks.peers.job import Job, Stop

BATCH_BYTES = 1 << 20


async def send(producer: AIOKafkaProducer, topic: str, partition: int, records: list[Any]) -> None:
    """Queue `records` for one partition as few record batches of at most `BATCH_BYTES`."""
    batch = producer.create_batch()
    for record in records:
        while batch.append(key=record.key, value=record.value, timestamp=None) is None:
            batch.close()
            await producer.send_batch(batch, topic, partition=partition)
            batch = producer.create_batch()
    batch.close()
    await producer.send_batch(batch, topic, partition=partition)


async def echo(job: Job, stop: Stop) -> None:
    producer = AIOKafkaProducer(
        bootstrap_servers=job.bootstrap,
        enable_idempotence=True,
        max_batch_size=BATCH_BYTES,
        max_request_size=BATCH_BYTES,
        linger_ms=int(job.linger_ms),
    )
    consumer = AIOKafkaConsumer(
        job.source,
        bootstrap_servers=job.bootstrap,
        group_id=job.group,
        auto_offset_reset="earliest",
        isolation_level="read_committed",
        max_partition_fetch_bytes=BATCH_BYTES,
    )
    await producer.start()
    await consumer.start()
    await producer.partitions_for(job.sink)
    while not stop:
        for partition, records in (await consumer.getmany(timeout_ms=100)).items():
            await send(producer, job.sink, partition.partition, records)
    await consumer.stop()
    await producer.stop()


def main() -> None:
    asyncio.run(echo(Job.from_arguments(), Stop()))


if __name__ == "__main__":
    main()
