"""Journal write: records for a partition without an owner, all of them or none."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import Any, Final

from streamapp.errors import NotYetError
from streamapp.worker.journal.entry import Record, encode
from streamapp.worker.journal.partition_count import count_headers
from streamapp.worker.restore.identity import Identity
from topics.errors import BrokerError
from topics.producing.transactional_producer import TransactionalProducer

PAUSE_S: Final = 0.05
TIMEOUT_S: Final = 60.0  # for a broker, or another transaction, while a user waits at a terminal


def write_together(
    kafka: Mapping[str, Any],
    group: str,
    topic: str,
    partition: int,
    records: Sequence[Record],
    count: int | None = None,
) -> None:
    """Write records atomically, and return when readers see them; BrokerError.

    `group`: of the workers, whose right to transactions is for ids that begin with its name; `count`: number
    of partitions that new models belong to; None: the number noted in earlier records holds.
    """
    n, until = len(records), time.monotonic() + TIMEOUT_S
    name = f"{group}-journal-{partition}"
    producer = TransactionalProducer(kafka, name, lambda: time.monotonic() > until, topics=[topic])
    with closing(producer):
        producer.open()
        values = [encode(record) for record in records]
        producer.send_run(topic, partition, values, [None] * n, [0] * n, [count_headers(count)] * n)
        producer.commit()
    wait_until_seen(Identity(kafka), topic, partition, until)


def wait_until_seen(identity: Identity, topic: str, partition: int, until: float) -> None:
    """Return when no transaction is open in a partition; BrokerError after `until` (time.monotonic)."""
    while True:  # the broker is about to write the marker
        try:
            if not identity.has_open_transaction(topic, partition):
                return
            reason = "another transaction is open there, the broker ends it after its transaction.timeout.ms"
        except NotYetError as error:
            reason = str(error)
        if time.monotonic() > until:
            written = f"what was written to {topic}-{partition} is committed"
            message = f"{written}, but cannot be seen yet: {reason}"
            raise BrokerError(message)
        time.sleep(PAUSE_S)
