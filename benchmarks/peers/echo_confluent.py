"""Bare echo with confluent-kafka: the same key and bytes to the same partition, and nothing else."""

from __future__ import annotations

from benchmarks.peers.confluent_loop import next_messages, open_consumer, open_producer, produce
from benchmarks.peers.job import Job, Stop


def main() -> None:
    job, stop = Job.from_arguments(), Stop()
    consumer, producer = open_consumer(job), open_producer(job)
    while not stop:
        for message in next_messages(consumer, job):
            produce(producer, job.sink, message.value(), message.key(), message.partition())
        producer.poll(0)
    producer.flush(30)
    consumer.close()


if __name__ == "__main__":
    main()
