"""How often the answers were right, read back from the topic they were written to."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import orjson
from confluent_kafka import Consumer, KafkaException, TopicPartition

from benchmarks.rig.backlog import Backlog
from benchmarks.rig.measure import Answers

SILENCE_SECONDS = 20.0


def read(bootstrap: str, answers: Answers) -> list[list[bytes]]:
    """Return the values that are on the topic now, partition by partition, from where `answers` began."""
    ends = answers.ends()
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "unused",
            "enable.auto.commit": False,
            "fetch.wait.max.ms": 50,
        }
    )
    starts = zip(range(answers.partitions), answers.start, strict=True)
    consumer.assign([TopicPartition(answers.topic, partition, offset) for partition, offset in starts])
    values: list[list[bytes]] = [[] for _ in range(answers.partitions)]
    left = sum(ends) - sum(answers.start)
    while left > 0:
        messages = consumer.consume(min(left, 10_000), SILENCE_SECONDS)
        if not messages:
            text = f"{answers.topic}: {left} answers could not be read back within {SILENCE_SECONDS:.0f} s"
            raise TimeoutError(text)
        for message in messages:
            if message.error() is not None:
                raise KafkaException(message.error())
            if message.offset() < ends[message.partition()]:
                values[message.partition()].append(message.value())
                left -= 1
    consumer.close()
    return values


def score(backlog: Backlog, answered: list[npt.NDArray[np.int8]]) -> float:
    """Return the share of right answers; answer i of a partition belongs to its row i. -1: no class named."""
    right = total = 0
    for truth, given in zip(backlog.truth, answered, strict=True):
        right += int(np.count_nonzero(truth[: len(given)] == given))
        total += len(given)
    return right / total


def peer_labels(values: list[bytes]) -> npt.NDArray[np.int8]:
    """Return the classes of the peers' JSON answers: int8[n]."""
    return np.array([int(orjson.loads(value)["label"] or -1) for value in values], dtype=np.int8)


def worker_labels(values: list[bytes]) -> npt.NDArray[np.int8]:
    """Return the classes of our answers, rows of blocks one after the other: int8[n]."""
    from topics.codecs import decode_predictions

    received = decode_predictions(values)
    return np.array([int(label or -1) for label in received.labels], dtype=np.int8)
