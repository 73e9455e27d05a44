"""What is in topics, read back for assertions."""

from confluent_kafka import Consumer, TopicPartition

TIMEOUT_S = 20


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
        ends = {p.partition: consumer.get_watermark_offsets(p, timeout=TIMEOUT_S)[1] for p in here}
        consumer.assign([p for p in here if ends[p.partition]])
        messages = []
        while any(p.offset < ends[p.partition] for p in consumer.position(consumer.assignment())):
            some = consumer.consume(10_000, 0.05)
            assert not [m.error() for m in some if m.error()]
            messages += some
        return sorted(messages, key=lambda m: (m.partition(), m.offset()))
    finally:
        consumer.close()
