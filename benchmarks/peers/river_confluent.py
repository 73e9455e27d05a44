"""A hand-written loop: confluent-kafka in, River's Hoeffding tree, confluent-kafka out."""

from __future__ import annotations

import orjson

from benchmarks.peers.confluent_loop import next_messages, open_consumer, open_producer, produce
from benchmarks.peers.job import Job, Stop
from benchmarks.peers.learning import Models, rows


def main() -> None:
    job, stop = Job.from_arguments(), Stop()
    consumer, producer = open_consumer(job), open_producer(job)
    models = Models(job.leaf)
    while not stop:
        for message in next_messages(consumer, job):
            partition, key = message.partition(), message.key()
            identity = f"{partition}-{message.offset()}"
            for answer in models.answer(key, rows(job.format, identity, message.value())):
                produce(producer, job.sink, orjson.dumps(answer), key, partition)
        producer.poll(0)
    producer.flush(30)
    consumer.close()


if __name__ == "__main__":
    main()
