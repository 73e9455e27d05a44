"""Opening a transactional producer, without a broker."""

import threading

from topics.transactional_sender import TransactionalSender


class SlowProducer:
    """A client whose start takes until the broker is there."""

    def __init__(self) -> None:
        self.broker_is_there = threading.Event()
        self.waits = threading.Event()
        self.started = 0

    def init_transactions(self, timeout: float) -> None:
        self.started += 1
        self.waits.set()
        assert self.broker_is_there.wait(10)


def test_who_opens_while_another_one_waits_for_the_broker_waits_with_it() -> None:
    sender = TransactionalSender({"bootstrap.servers": "127.0.0.1:1"}, "worker-1")
    producer = SlowProducer()
    sender._producer = producer
    openers = [threading.Thread(target=sender.open) for _ in range(3)]
    for opener in openers:
        opener.start()
    assert producer.waits.wait(10)
    producer.broker_is_there.set()
    for opener in openers:
        opener.join(10)
    assert (producer.started, sender.is_open) == (1, True)
