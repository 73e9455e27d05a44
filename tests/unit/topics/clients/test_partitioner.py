"""Keys go where Java's clients send them."""

import pytest
from aiokafka.partitioner import murmur2 as aiokafka_murmur2
from confluent_kafka import Producer

from topics.clients.partitioner import murmur2, partition_of, partition_of_new, partitions_of

# Apache Kafka, clients/src/test/java/org/apache/kafka/common/utils/UtilsTest.java, testMurmur2
JAVA = {
    b"21": -973932308,
    b"foobar": -790332482,
    b"a-little-bit-long-string": -985981536,
    b"a-little-bit-longer-string": -1486304829,
    b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
    b"abc": 479470107,
}
# toPositive(hash) % 16 of the hashes above, by hand: the sign bit is cleared, the value is not negated.
PAIRS = {b"21": 12, b"foobar": 14, b"a-little-bit-long-string": 0, b"abc": 11}

KEYS = [f"model-{n}".encode() for n in range(300)] + [b"x" * n for n in range(40)] + ["größe".encode()]


def signed(number):
    return number - (1 << 32) if number >> 31 else number


@pytest.mark.parametrize("key", JAVA)
def test_hash_has_the_bits_of_java(key):
    assert signed(murmur2(key)) == JAVA[key]


@pytest.mark.parametrize("key", PAIRS)
def test_known_keys_go_to_known_partitions(key):
    assert partition_of(key, 16) == PAIRS[key]


def test_hash_agrees_with_aiokafka():
    assert [murmur2(k) for k in KEYS] == [aiokafka_murmur2(k) & 0xFFFFFFFF for k in KEYS]


@pytest.mark.parametrize("partitions", [1, 7, 8, 16, 320])
def test_many_keys_at_once_agree_with_one_by_one(partitions):
    many = partitions_of(KEYS, partitions)
    assert many.dtype == "int32"
    assert many.tolist() == [partition_of(k, partitions) for k in KEYS]


def test_partition_agrees_with_librdkafka_told_to_use_murmur2():
    """The oracle is librdkafka's own partitioner, on its built-in cluster."""
    delivered = {}

    def remember(error, message):
        assert error is None
        delivered[message.key()] = message.partition()

    producer = Producer({"test.mock.num.brokers": 1, "partitioner": "murmur2_random", "log_level": 0})
    for key in KEYS:
        if key:  # an empty key counts as none and is spread at random
            producer.produce("t", b"", key, on_delivery=remember)
    assert producer.flush(30) == 0
    partitions = producer.list_topics("t", timeout=60).topics["t"].partitions
    assert delivered == {k: partition_of(k, len(partitions)) for k in KEYS if k}
    assert len(partitions) > 1 and len(set(delivered.values())) == len(partitions)


def test_keys_that_are_not_remembered_have_the_same_partitions():
    assert [partition_of_new(key, 12) for key in KEYS] == [partition_of(key, 12) for key in KEYS]
