"""What is in topics, read back for assertions."""

from confluent_kafka import Consumer, TopicPartition

TIMEOUT_S = 20


def read_topic(kafka, topic):
    """Return all messages of a topic, partition by partition, in offset order."""
    consumer = Consumer(
        kafka | {"group.id": "reader", "enable.auto.commit": False, "isolation.level": "read_committed"}
    )
    try:
        partitions = consumer.list_topics(topic, timeout=TIMEOUT_S).topics[topic].partitions
        messages = []
        for number in sorted(partitions):
            here = TopicPartition(topic, number, 0)
            _, end = consumer.get_watermark_offsets(here, timeout=TIMEOUT_S)
            consumer.assign([here])
            while end and consumer.position([here])[0].offset < end:
                some = consumer.consume(10_000, 0.2)
                assert not [m.error() for m in some if m.error()]
                messages += some
        return messages
    finally:
        consumer.close()
