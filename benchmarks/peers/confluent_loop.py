"""Consumer and producer of a hand-written confluent-kafka loop, set for throughput or for latency."""

from __future__ import annotations

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from benchmarks.peers.job import Job


def open_consumer(job: Job) -> Consumer:
    consumer = Consumer(
        {
            "bootstrap.servers": job.bootstrap,
            "group.id": job.group,
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
            "queued.max.messages.kbytes": 65536,
            "fetch.wait.max.ms": 100,
        }
    )
    if job.partition is None:
        consumer.subscribe([job.source])
    else:
        consumer.assign([TopicPartition(job.source, job.partition, 0)])
    return consumer


def open_producer(job: Job) -> Producer:
    return Producer(
        {
            "bootstrap.servers": job.bootstrap,
            "linger.ms": job.linger_ms,
            "batch.size": 1_000_000,
            "batch.num.messages": 100_000,
            "queue.buffering.max.messages": 1_000_000,
            "queue.buffering.max.kbytes": 1_000_000,
            "enable.idempotence": True,
            "delivery.report.only.error": True,
        }
    )


def next_messages(consumer: Consumer, job: Job) -> list[Message]:
    """Return the next messages without errors: up to 10,000, or one at a time for low latency."""
    if job.low_latency:
        message = consumer.poll(0.1)
        messages = [] if message is None else [message]
    else:
        messages = consumer.consume(10_000, 0.1)
    for message in messages:
        error = message.error()
        if error is not None and error.code() != KafkaError._PARTITION_EOF:
            raise KafkaException(error)
    return messages


def produce(
    producer: Producer, topic: str, value: bytes | None, key: bytes | None, partition: int | None
) -> None:
    """Produce one record; if the local queue is full, serve deliveries first."""
    while True:
        try:
            # Value and partition may be None only for errors, which have been raised.
            producer.produce(topic, value, key, partition)  # type: ignore[arg-type]
        except BufferError:
            producer.poll(0.05)
        else:
            return
