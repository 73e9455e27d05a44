"""Transactions: journal, source offsets and (exactly once) outputs are committed together.

One transactional producer a worker, whose id is `<application.id>-<group.instance.id>`: a restart under the
same name ends the open transaction of its predecessor. The group's coordinator fences a worker that was taken
out of the group: its transaction is aborted even if the worker has not noticed (KIP-447).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from faust.types import TP

from streamapp.worker import faults
from streamapp.worker.journal.entry import Record, encode
from streamapp.worker.journal.offset_metadata import metadata_of
from streamapp.worker.journal.partition_count import count_headers
from streamapp.worker.transport.membership import Membership
from topics.clients.group_member import GroupMember
from topics.producing.transactional_producer import TransactionalProducer

NO_ANSWERS: Final[Mapping[str, str]] = {}


@dataclass(frozen=True, slots=True)
class Transaction:
    """The journal records and offsets that a cut commits in addition to the outputs."""

    records: Mapping[int, Sequence[Record]]  # for the journal, by partition
    offsets: Mapping[TP, int]
    membership: Membership
    topic_ids: Mapping[TP, str] = field(default_factory=dict)  # topic ids for the offsets


class Transactions:
    """The transactions of a worker. All methods but `expect` wait for the broker: call them in a thread."""

    def __init__(
        self,
        producer: TransactionalProducer,
        journal: str,
        group: str,
        partitions: int | None = None,
        answers: Mapping[str, str] = NO_ANSWERS,
    ) -> None:
        """`journal`: the topic; `group`: the consumer group, whose offsets are committed; `partitions`:
        number of partitions of each source topic, noted with the offsets and in the journal; `answers`: the
        topic of answers by source topic, if they are a part of the transactions.
        """
        self._producer = producer
        self._journal = journal
        self._group = group
        self._partitions = partitions
        self._answers = answers

    @property
    def call(self) -> int | None:
        """The number of the client's call that a method waits for; None: it waits for none."""
        return self._producer.call

    def open(self) -> None:
        """End a transaction that a predecessor of the same name left open; called once for each client."""
        self._producer.open()

    def expect(self, sources: Collection[tuple[str, int]]) -> None:
        """Prepare the commit of runs of these topics and partitions, without waiting for the broker."""
        places = [(self._journal, partition) for _, partition in sources]
        places += [(self._answers[topic], number) for topic, number in sources if topic in self._answers]
        self._producer.expect(places, self._group)

    def commit(self, transaction: Transaction) -> None:
        """Commit a transaction with everything that was sent; AbortedError if it cannot be committed.

        These are the steps 4 to 6 of `committer.py`; `TransactionalProducer.commit` takes the last two.
        """
        records = [  # 4.
            (partition, encode(record))
            for partition, of_partition in transaction.records.items()
            for record in of_partition
        ]
        if records:  # all of them in one call of the client
            numbers, values = zip(*records, strict=True)
            n, places = len(records), np.array(numbers, dtype=np.int64)
            headers = [count_headers(self._partitions)] * n
            self._producer.send_run(self._journal, places, values, [None] * n, [0] * n, headers)
        faults.point("commit-before")
        at = transaction.membership
        self._producer.commit(  # 5. and 6.
            {(t, p): position for (t, p), position in transaction.offsets.items()},
            GroupMember(self._group, at.generation, at.member, at.instance),
            {
                (topic, number): metadata_of(topic_id, self._partitions)
                for (topic, number), topic_id in transaction.topic_ids.items()
            },
        )
        faults.point("commit-after")

    def abort(self) -> None:
        """Discard the records sent since the last commit."""
        self._producer.abort()
