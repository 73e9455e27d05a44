"""Accuracy of the answers, read back from their topic."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import orjson
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from benchmarks.rig.backlog import Backlog
from benchmarks.rig.measure import AnswerTopic
from topics.codecs.avro.output_reader import OutputReader
from topics.codecs.avro.output_schemas import current
from topics.registry.registered_schema import RegisteredSchema, SchemaId

SILENCE_SECONDS = 20.0


def read(bootstrap: str, answers: AnswerTopic) -> list[list[bytes]]:
    """Return the values that are on the topic now, partition by partition, from the start of `answers` on.

    Only committed records are returned. The ends include markers of transactions, which no reader gets: so
    the client reports when it has reached the end of a partition.
    """
    ends = answers.ends()
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "unused",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": "read_committed",
            "fetch.wait.max.ms": 50,
        }
    )
    starts = zip(range(answers.partitions), answers.start, strict=True)
    consumer.assign([TopicPartition(answers.topic, partition, offset) for partition, offset in starts])
    values: list[list[bytes]] = [[] for _ in range(answers.partitions)]
    unfinished = set(range(answers.partitions))
    while unfinished:
        message = consumer.poll(SILENCE_SECONDS)
        if message is None:
            text = f"{answers.topic}: partitions {sorted(unfinished)} could not be read back to their end: "
            raise TimeoutError(f"{text}nothing came for {SILENCE_SECONDS:.0f} s")
        partition, offset, error = message.partition(), message.offset(), message.error()
        if error is not None and error.code() != KafkaError._PARTITION_EOF:
            raise KafkaException(error)
        assert partition is not None and offset is not None
        if error is None and offset < ends[partition]:
            value = message.value()
            assert value is not None, "an answer has a value"
            values[partition].append(value)
        elif offset >= ends[partition]:  # the end, or a record that came after the check
            unfinished.discard(partition)
    consumer.close()
    return values


def score(backlog: Backlog, answered: list[npt.NDArray[np.int8]]) -> float:
    """Return the share of right answers; answer i of a partition belongs to its row i, -1: no class."""
    right = total = 0
    for truth, predicted in zip(backlog.truth, answered, strict=True):
        right += int(np.count_nonzero(truth[: len(predicted)] == predicted))
        total += len(predicted)
    return right / total


def peer_labels(values: list[bytes]) -> npt.NDArray[np.int8]:
    """Return the classes of the peers' JSON answers: int8[n]."""
    return np.array([int(orjson.loads(value)["label"] or -1) for value in values], dtype=np.int8)


def _schema_of(schema_id: SchemaId) -> RegisteredSchema:
    """Return the schema of our answers, whose ids a registry has assigned."""
    return RegisteredSchema(schema_id, "AVRO", current("prediction"))


def worker_labels(values: list[bytes]) -> npt.NDArray[np.int8]:
    """Return the classes of our answers, with the rows of blocks in order: int8[n]."""
    from topics.codecs import decode_predictions

    received = decode_predictions(OutputReader(_schema_of).texts(values))
    return np.array([int(label or -1) for label in received.labels], dtype=np.int8)
