"""The real effects of the faults, counted from their traces.

Aborted transactions are in the log of the broker's coordinator. A snapshot is torn if parts of it are in the
table and the journal went on without ever naming it. A zombie is a worker that was frozen until the group had
assigned its partitions to other workers. It really wrote if its own log shows that a commit was refused after
it woke up, and the coordinator's log shows that this transaction, to which it had added partitions, was
aborted. The time of a take-over is measured by a reader of the journal: from the last commit of a partition's
task to the first commit of the task that replaced it. Take-overs during an outage of the broker are counted
separately.
"""

from __future__ import annotations

import re
import statistics
import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgpack

from benchmarks.chaos.checker import ENTRY
from benchmarks.chaos.coordinator import Transaction
from benchmarks.chaos.tape import Kept

MANIFEST: Final = 1
"""A kind of record in the journal (docs/journal.md)."""

REFUSALS: Final = (
    "a transaction is aborted, .*"
    "(Unknown member|UNKNOWN_MEMBER_ID|Specified group generation id is not valid|ILLEGAL_GENERATION"
    "|FENCED|fenced|invalid epoch|the broker has ended the transaction)"
)
"""Log lines of a worker whose commit is refused because it no longer has its role in the group."""

_KEY_END: Final = struct.Struct(
    ">QQI"
)  # parts of a chunk's key: incarnation, sequence, number (docs/snapshot-table.md)


@dataclass(frozen=True, slots=True)
class Freeze:
    """A worker that did not run for a while."""

    worker: str
    longer_than_session: bool
    began_ms: int
    woke_ms: int
    said: str = ""  # its log from the freeze to its next start or freeze
    until_ms: int | None = None  # the time of that start or freeze


def torn_snapshots(journal: Iterable[Kept], table: Iterable[Kept]) -> int:
    """Return how many snapshots were begun and never completed although their partition went on."""
    begun = {_KEY_END.unpack(kept.key[-20:])[:2] for kept in table if kept.key and kept.value is not None}
    records = [msgpack.unpackb(kept.value or b"", use_list=False) for kept in journal]
    complete = {(record[2], record[3]) for record in records if record[1] == MANIFEST}
    newest = max((record[2] for record in records if record[1] == ENTRY), default=0)
    later = max(complete, default=(0, 0))
    return sum(1 for snapshot in begun - complete if snapshot < later or snapshot[0] < newest)


def takeover_seconds(
    journal: Iterable[Kept], until_ms: int, outages: Sequence[tuple[int, int]]
) -> tuple[list[float], list[float]]:
    """Return how long the readers of each partition waited for its new task, up to a moment.

    `outages` holds the start and end of each outage of the broker. The second list has the tasks that were
    awaited during an outage, when no worker could take over.
    """
    seconds: tuple[list[float], list[float]] = [], []
    last: tuple[int, int] | None = None
    for kept in journal:
        record = msgpack.unpackb(kept.value or b"", use_list=False)
        if record[1] != ENTRY or kept.time_ms > until_ms:
            continue
        incarnation = record[2]
        if last is not None and incarnation != last[0]:
            during = any(began < kept.time_ms and ended > last[1] for began, ended in outages)
            seconds[during].append((kept.time_ms - last[1]) / 1000)
        last = incarnation, kept.time_ms
    return seconds


def refused(freeze: Freeze) -> bool:
    """Whether a zombie's own log shows that one of its commits was refused."""
    return freeze.longer_than_session and re.search(REFUSALS, freeze.said) is not None


def wrote(freeze: Freeze, transactions: Iterable[Transaction], group: str) -> bool:
    """Whether a transaction that a zombie had open, or opened after it woke up, was aborted.

    The broker may have aborted the transaction while the worker slept (transaction.timeout.ms); then the
    worker's later writes are refused. A commit may have succeeded before, if the group had accepted its
    offsets before the worker was frozen; then the worker that took over has waited for its end.
    """
    name, until_ms = f"{group}-{freeze.worker}", freeze.until_ms or float("inf")
    return refused(freeze) and any(
        not transaction.committed
        and transaction.transactional_id == name
        and freeze.began_ms <= transaction.ended_ms <= until_ms
        for transaction in transactions
    )


def report(
    journal: Mapping[int, Sequence[Kept]],
    table: Mapping[int, Sequence[Kept]],
    transactions: Sequence[Transaction],
    freezes: Sequence[Freeze],
    group: str,
    until_ms: int,
    outages: Sequence[tuple[int, int]],
) -> dict[str, Any]:
    """Return the figures by name; `until_ms` is the end of the load, `outages` are those of the broker."""
    waits = [takeover_seconds(kept, until_ms, outages) for kept in journal.values()]
    takeovers = [seconds for alone, _ in waits for seconds in alone]
    during = [seconds for _, outage in waits for seconds in outage]
    return {
        "aborted_transactions": sum(not transaction.committed for transaction in transactions),
        "committed_transactions": sum(transaction.committed for transaction in transactions),
        "torn_snapshots": sum(torn_snapshots(journal[number], table[number]) for number in journal),
        "zombies": sum(freeze.longer_than_session for freeze in freezes),
        "zombies_refused": sum(map(refused, freezes)),
        "zombies_that_wrote": sum(wrote(freeze, transactions, group) for freeze in freezes),
        "takeovers": len(takeovers),
        "takeover_seconds_p50": round(statistics.median(takeovers), 3) if takeovers else None,
        "takeover_seconds_max": round(max(takeovers), 3) if takeovers else None,
        "takeovers_in_outages": len(during),
        "takeover_seconds_max_in_outages": round(max(during), 3) if during else None,
    }
