"""What is in topics, read back for assertions."""

import time

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

TIMEOUT_S = 120
UNSETTLED = (KafkaError.NOT_LEADER_FOR_PARTITION, KafkaError.LEADER_NOT_AVAILABLE)


def read_topic(kafka, topic):
    """Return all messages of a topic, partition by partition, in offset order."""
    properties = {
        "group.id": "reader",
        "enable.auto.commit": False,
        "isolation.level": "read_committed",
        "fetch.wait.max.ms": 10,
    }
    consumer = Consumer(kafka | properties)
    try:
        here = [
            TopicPartition(topic, p, 0)
            for p in consumer.list_topics(topic, timeout=TIMEOUT_S).topics[topic].partitions
        ]
        ends = {p.partition: _end(consumer, p) for p in here}
        consumer.assign([p for p in here if ends[p.partition]])
        messages = []
        while any(p.offset < ends[p.partition] for p in consumer.position(consumer.assignment())):
            some = consumer.consume(10_000, 0.05)
            assert not [m.error() for m in some if m.error()]
            messages += some
        return sorted(messages, key=lambda m: (m.partition(), m.offset()))
    finally:
        consumer.close()


def _end(consumer, partition):
    """Return the next offset; a partition that was just created may not know its leader yet."""
    deadline = time.monotonic() + TIMEOUT_S
    while True:
        try:
            return consumer.get_watermark_offsets(partition, timeout=TIMEOUT_S)[1]
        except KafkaException as failure:
            if failure.args[0].code() not in UNSETTLED or time.monotonic() > deadline:
                raise
            consumer.list_topics(partition.topic, timeout=TIMEOUT_S)  # asks the broker for the leader again
