"""What is in topics, read back for assertions."""

import time

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

TIMEOUT_S = 120
KEPT = {"retention.ms": "-1"}
"""A setting of topics with timestamps of 1970: a broker deletes old records half a minute after its start."""
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
        ranges = {p.partition: _range(consumer, p) for p in here}
        ends = {number: end for number, (_, end) in ranges.items()}
        here = [TopicPartition(topic, number, first) for number, (first, _) in ranges.items()]
        consumer.assign([p for p in here if p.offset < ends[p.partition]])
        messages = []
        while any(p.offset < ends[p.partition] for p in consumer.position(consumer.assignment())):
            some = consumer.consume(10_000, 0.05)
            assert not [m.error() for m in some if m.error()]
            messages += some
        return sorted(messages, key=lambda m: (m.partition(), m.offset()))
    finally:
        consumer.close()


def read_committed_topic(kafka, topic):
    """Return all messages as above, once no transaction with records of the topic is open.

    A broker answers the end of a transaction before readers can see its records: markers follow.
    """
    every = Consumer(kafka | {"group.id": "reader", "isolation.level": "read_uncommitted"})
    visible = Consumer(kafka | {"group.id": "reader", "isolation.level": "read_committed"})
    deadline = time.monotonic() + TIMEOUT_S
    try:
        for number in every.list_topics(topic, timeout=TIMEOUT_S).topics[topic].partitions:
            partition = TopicPartition(topic, number)
            while _range(visible, partition) != _range(every, partition):
                assert time.monotonic() < deadline, f"a transaction of {topic}, {number} is open"
    finally:
        every.close()
        visible.close()
    return read_topic(kafka, topic)


def _range(consumer, partition):
    """Return the first and the next offset; a new partition may not know its leader yet."""
    deadline = time.monotonic() + TIMEOUT_S
    while True:
        try:
            return consumer.get_watermark_offsets(partition, timeout=TIMEOUT_S)
        except KafkaException as failure:
            if failure.args[0].code() not in UNSETTLED or time.monotonic() > deadline:
                raise
            consumer.list_topics(partition.topic, timeout=TIMEOUT_S)  # asks the broker for the leader again
