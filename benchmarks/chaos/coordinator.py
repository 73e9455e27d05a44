"""Transactions as the broker sees them: the log of its transaction coordinator.

The coordinator writes a record to `__transaction_state` whenever a transaction changes. Its format is Kafka's
(`TransactionLogKey`, `TransactionLogValue`, versions 0 and 1); the fields that are read here are the same in
both versions.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from confluent_kafka.admin import AdminClient

from benchmarks.chaos.checker import read

TOPIC: Final = "__transaction_state"

ONGOING, COMMITTED, ABORTED = 1, 4, 5
"""States of a transaction: partitions were added, complete and committed, complete and aborted."""

_VALUE: Final = struct.Struct(">hqhib")  # version, producer id, its epoch, timeout in ms, state


@dataclass(frozen=True, slots=True)
class Change:
    """A record of the coordinator's log."""

    transactional_id: str
    state: int
    time_ms: int  # on the broker's clock


@dataclass(frozen=True, slots=True)
class Transaction:
    """A transaction that is over."""

    transactional_id: str
    began_ms: int  # its first partition was added: records or offsets were to be written
    changed_ms: int  # its last partition was added
    ended_ms: int
    committed: bool


def transactions(servers: str) -> list[Transaction]:
    """Return all transactions of all producers, each producer's in order."""
    return pair_up(changes(servers))


def changes(servers: str) -> list[Change]:
    """Return the coordinator's log; all changes of a producer are in one partition."""
    described = AdminClient({"bootstrap.servers": servers, "log_level": 0}).list_topics(timeout=120)
    changes_read = []
    for message in read(servers, TOPIC, len(described.topics[TOPIC].partitions)):
        key, value = message.key(), message.value()
        if isinstance(key, bytes) and value is not None:
            changes_read.append(decode(key, value, message.timestamp()[1]))
    return changes_read


def decode(key: bytes, value: bytes, time_ms: int) -> Change:
    """Return the change in a record; raise ValueError if its version is unknown."""
    key_version, length = struct.unpack_from(">hh", key)
    version, _, _, _, state = _VALUE.unpack_from(value)
    if key_version != 0 or version not in (0, 1):
        message = f"{TOPIC}: versions key={key_version} value={version} must be 0 and at most 1"
        raise ValueError(message)
    return Change(key[4 : 4 + length].decode(), state, time_ms)


def pair_up(changes_read: Iterable[Change]) -> list[Transaction]:
    open_ones: dict[str, list[int]] = {}
    over = []
    for change in changes_read:
        if change.state == ONGOING:
            open_ones.setdefault(change.transactional_id, []).append(change.time_ms)
        elif change.state in (COMMITTED, ABORTED):
            times = open_ones.pop(change.transactional_id, [])
            if times:
                name, committed = change.transactional_id, change.state == COMMITTED
                over.append(Transaction(name, times[0], times[-1], change.time_ms, committed))
    return over
