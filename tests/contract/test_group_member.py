"""Group metadata are bytes of librdkafka's making; ours must be the ones it would make."""

from __future__ import annotations

import pytest
from confluent_kafka import Consumer

from topics.clients.group_member import GroupMember


@pytest.mark.parametrize("instance", [None, "worker-0"])
def test_a_membership_reads_as_librdkafka_writes_it(instance: str | None) -> None:
    static = {} if instance is None else {"group.instance.id": instance}
    consumer = Consumer({"group.id": "a group", "bootstrap.servers": "127.0.0.1:1", "log_level": 0, **static})
    try:
        made = consumer.consumer_group_metadata()
    finally:
        consumer.close()
    # a consumer that never joined: generation -1, no member id
    assert GroupMember("a group", instance=instance).for_librdkafka() == bytes(made)
