"""What the chaos program counts: from a journal, a table, the coordinator's log and what zombies said."""

from __future__ import annotations

import struct

import pytest

from benchmarks.chaos.coordinator import ABORTED, COMMITTED, ONGOING, Change, Transaction, decode, pair_up
from benchmarks.chaos.evidence import Freeze, refused, takeover_seconds, torn_snapshots, wrote
from benchmarks.chaos.tape import Kept
from streamapp.worker.journal.entry import Entry, Manifest, encode
from streamapp.worker.snapshots.chunks import UNIT, pack
from tests.positions import at

REFUSED = (
    "16:58:57 WARNING streamapp.worker.processing.task_manager: a transaction is aborted, "
    "its records will be processed again: "
    "Failed to commit offsets to transaction on broker 127.0.0.1:1/1: i((null))[1](Broker: Unknown member)"
)


def entry(incarnation: int, time_ms: int) -> Kept:
    record = Entry(incarnation, 1, "here", at(), at(instances=1), ())
    return Kept(time_ms, None, encode(record))


def manifest(incarnation: int, sequence: int) -> Kept:
    record = Manifest(incarnation, sequence, 1, "here", at(instances=1), 0, "{}", 1, 10, 1, 0, 10)
    return Kept(0, None, encode(record))


def chunks(incarnation: int, sequence: int) -> list[Kept]:
    _, items = pack(UNIT, b"model\0a", incarnation, sequence, b"bytes")
    return [Kept(0, key, value) for key, value in items]


def test_a_snapshot_is_torn_if_the_journal_went_on_and_never_named_it() -> None:
    table = [*chunks(1, 1), *chunks(1, 2), *chunks(1, 3), *chunks(2, 1)]
    journal = [entry(1, 0), manifest(1, 1), manifest(1, 3), entry(2, 5)]
    assert torn_snapshots(journal, table) == 1  # 1.2; nobody knows yet what becomes of 2.1
    assert torn_snapshots([*journal, entry(3, 9)], table) == 2


def test_what_was_removed_as_garbage_was_begun_all_the_same() -> None:
    (written,) = chunks(1, 1)
    assert torn_snapshots([entry(2, 0)], [written, Kept(0, written.key, None)]) == 1
    assert torn_snapshots([entry(2, 0)], [Kept(0, written.key, None)]) == 0


def test_a_take_over_lasts_from_the_last_commit_of_a_task_to_the_first_of_the_next_one() -> None:
    journal = [entry(1, 1000), entry(1, 2000), manifest(1, 1), entry(2, 5500), entry(2, 6000), entry(3, 9000)]
    assert takeover_seconds(journal, 9000, []) == ([3.5, 3.0], [])
    assert takeover_seconds(journal, 8999, []) == ([3.5], [])


def test_a_take_over_that_had_to_wait_for_the_broker_is_counted_apart() -> None:
    journal = [entry(1, 1000), entry(2, 4000), entry(3, 9000)]
    assert takeover_seconds(journal, 9000, [(4500, 5000), (9000, 9500)]) == ([3.0], [5.0])


@pytest.mark.parametrize(
    "said",
    [
        REFUSED,
        "a transaction is aborted, its records will be processed again: transactional.id=chaos-chaos-1: the "
        "broker has ended the transaction, or another producer has this id (…)",
    ],
)
def test_a_zombie_wrote_if_it_says_so_and_the_coordinator_aborted_what_it_had_open(said: str) -> None:
    zombie = Freeze("w1", longer_than_session=True, began_ms=40, woke_ms=100, said=said, until_ms=200)
    before, aborted = Transaction("g-w1", 10, 20, 30, True), Transaction("g-w1", 60, 110, 120, False)
    assert refused(zombie)
    assert wrote(zombie, [before, aborted], "g")
    assert wrote(zombie, [Transaction("g-w1", 30, 40, 41, True), aborted], "g"), "committed as it fell asleep"
    assert wrote(zombie, [Transaction("g-w1", 30, 40, 90, False)], "g"), "the broker did not wait for it"
    assert not wrote(zombie, [before], "g"), "nothing of it was aborted"
    assert not wrote(zombie, [Transaction("g-w2", 60, 110, 120, False)], "g"), "another worker's"
    assert not wrote(zombie, [Transaction("g-w1", 60, 110, 201, False)], "g"), "its successor aborted it"


def test_a_worker_that_commits_after_it_woke_up_or_was_not_frozen_for_long_is_no_zombie() -> None:
    assert not refused(
        Freeze("w1", longer_than_session=True, began_ms=40, woke_ms=100, said="partition 1 is live")
    )
    assert not refused(Freeze("w1", longer_than_session=False, began_ms=40, woke_ms=100, said=REFUSED))


def test_transactions_are_what_lies_between_the_first_partition_and_the_end() -> None:
    log = [
        Change("a", ONGOING, 1),
        Change("b", ONGOING, 2),
        Change("a", ONGOING, 3),
        Change("a", COMMITTED, 4),
        Change("b", ABORTED, 5),
        Change("a", ABORTED, 6),  # nothing was in it
    ]
    assert pair_up(log) == [Transaction("a", 1, 3, 4, True), Transaction("b", 2, 2, 5, False)]


@pytest.mark.parametrize("version", [0, 1])
def test_a_record_of_the_coordinator_is_read_in_both_versions(version: int) -> None:
    key = struct.pack(">hh", 0, 4) + b"g-w1"
    value = struct.pack(">hqhib", version, 7, 3, 10_000, ABORTED) + b"whatever follows"
    assert decode(key, value, 5) == Change("g-w1", ABORTED, 5)


def test_a_record_of_an_unknown_version_is_not_guessed_at() -> None:
    with pytest.raises(ValueError, match="value=2 must be"):
        decode(struct.pack(">hh", 0, 1) + b"g", struct.pack(">hqhib", 2, 7, 3, 10_000, ABORTED), 5)
