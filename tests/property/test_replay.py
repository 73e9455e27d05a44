"""The state of a partition is a function of its journal and its logs: a replay ends where the task was."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from streamapp.worker.journal.entry import Entry, decode, encode
from streamapp.worker.journal.ledger import Ledger
from streamapp.worker.restore.errors import RestoreError
from streamapp.worker.restore.journal_replay import Replay
from streamapp.worker.task.models.quota import ModelQuota
from streamapp.worker.task.sources import SOURCES, Positions, SourceName, positions_of
from streamapp.worker.task.state.cut import Cut
from streamapp.worker.task.task import Task
from streamapp.worker.task.task_config import TaskConfig
from streamapp.worker.task.unit import Unit, UnitName
from tests.property.test_task_cuts import SPECS, TTL, assert_same, story
from tests.property.test_task_rollback import state
from tests.tiers import examples
from tests.topology.logged import Logged
from tests.topology.partition import PARTITION, Partition, Record, config


class Journalled(Logged):
    """A partition that keeps logs and a journal, and can be restored from them."""

    def __init__(self, gaps: random.Random | None = None, **limits: Any) -> None:
        super().__init__(config(**limits), gaps)
        self.journal: list[bytes] = []
        self.quota = self.task.models.keys.quota
        self.cut: tuple[Cut, Positions] | None = None
        self.snapshot: tuple[Positions, TaskConfig, dict[UnitName, Unit]] | None = None

    def commit(self) -> None:
        if not self.ledger.is_empty:
            self.journal += map(encode, self.ledger.cut())

    def begin_snapshot(self) -> None:
        """Cut the task where the journal ends; its units are made later, while the task goes on."""
        if self.cut is None:
            self.cut = self.task.cut(), dict(self.ledger.positions)

    def end_snapshot(self, keep: bool) -> None:
        """Write what was cut; or let it be torn."""
        if self.cut is None:
            return
        cut, positions = self.cut
        self.cut = None
        fresh = {unit.name: unit for unit in cut.units()}
        if not keep:
            cut.abandon()
            return
        units = {} if self.snapshot is None else self.snapshot[2]
        kept = {name: unit for name, unit in units.items() if name not in cut.removed}
        self.snapshot = positions, self.task.config, kept | fresh
        cut.done()

    def replayed(self, piece: int, *, whole: bool = False) -> Replay:
        """Restore as a worker does; whole: from the journal's beginning, whatever was snapshotted."""
        replay = Replay(PARTITION, self.reader(piece))
        entries = [entry for entry in map(decode, self.journal) if isinstance(entry, Entry)]
        if self.snapshot is not None and not whole:
            positions, given, units = self.snapshot
            replay.begin(positions, units.values(), given)
            behind = [number for number, entry in enumerate(entries) if entry.before == positions]
            entries = entries[behind[0] :] if behind else []
        for entry in entries:
            replay.apply(entry)
        return replay

    def restart(self, piece: int, **limits: Any) -> None:
        """Go on with what a replay makes of the journal, perhaps under another configuration."""
        replay = self.replayed(piece)
        self.cut = None
        if replay.task is None or replay.positions is None:
            return
        given_ = config(**limits)
        counters = self.task.counters
        self.task = replay.task
        self.task.counters = counters
        self.task.configure(given_)
        self.quota = ModelQuota(given_.models_max_count)
        self.task.join(self.quota)
        self.ledger = Ledger(replay.positions, self.ledger.incarnation + 1, given_.to_json())


def models(task: Task) -> dict[str, bytes]:
    """Return the snapshot of each model."""
    store = task.models
    return {key: store.cache.model(slot).snapshot() for key, slot in store.keys.names()}


def comparable(partition: Partition) -> dict[str, Any]:
    """Return all state but what belongs to the process, or to when it was found that something is due.

    That is the quota, the counters, and of a pending entry where it lies and which forgotten one it follows.
    """
    document = state(partition)
    columns = ("born", "model", "width", "prediction", "requested", "sampled", "settled")
    names = partition.task.pending._rows.dtype.names or ()
    entries = {
        name: [row[names.index(column)] for column in columns]
        for name, (_, row) in document["pending"].items()
    }
    del document["quota"], document["counters"]
    return document | {"pending": entries}


@settings(max_examples=examples(12))
@given(
    seed=st.integers(0, 10**6),
    kind=st.sampled_from(sorted(SPECS)),
    keep=st.sampled_from(["requested", "all"]),
    piece=st.sampled_from([1, 3, 1000]),
    snapshots=st.booleans(),
    gaps=st.booleans(),
    skips=st.booleans(),
)
def test_a_restore_ends_in_the_same_state(
    seed: int, kind: str, keep: str, piece: int, snapshots: bool, gaps: bool, skips: bool
) -> None:
    """By replay from the beginning, and from snapshots that are written while the task goes on."""
    draw = random.Random(seed)

    def limits() -> dict[str, Any]:
        return {
            "spec": SPECS[kind],
            "pending_keep": keep,
            "pending_ttl_ms": draw.choice([TTL, 2 * TTL]),
            "pending_max_bytes": draw.choice([4096, 1 << 20]),
            "models_max_classes": 6,
            "models_max_count": 2 + draw.randrange(3),
        }

    partition = Journalled(random.Random(seed) if gaps else None, **limits())
    if skips:
        partition.to_skip = some_of_all(random.Random(seed))
    run: list[Record] = []
    for record in story(seed, 300):
        if run and (run[0].source != record.source or draw.random() < 0.1):
            partition.feed(*run)
            run = []
            if draw.random() < 0.2:
                partition.commit()
                if snapshots and draw.random() < 0.3:
                    partition.begin_snapshot()
                if draw.random() < 0.1:
                    partition.restart(piece, **limits())
            if draw.random() < 0.1:
                partition.end_snapshot(keep=draw.random() < 0.8)
        run.append(record)
    partition.feed(*run)
    partition.commit()
    before = comparable(partition)
    for whole in (False, True):
        replay = partition.replayed(piece, whole=whole)
        assert replay.task is not None
        replayed = Partition()
        replayed.task = replay.task
        if not snapshots:  # what is counted of pendings and early labels, and their places, is no state
            assert_same(comparable(replayed), before)
        assert models(replay.task) == models(partition.task)
        assert replay.task.digest() == partition.task.digest()
        assert positions_of(replay.task.next) == replay.positions


def some_of_all(draw: random.Random) -> set[tuple[SourceName, int]]:
    """Return records by chance, neighbours among them."""
    starts = [(source, at) for source in SOURCES for at in range(900) if draw.random() < 0.04]
    return {(source, at + n) for source, at in starts for n in range(draw.randrange(1, 4))}


@settings(max_examples=examples(12))
@example(seed=9, kind="no-tree")  # an array before a record that names new features
@given(seed=st.integers(0, 10**6), kind=st.sampled_from(sorted(SPECS)))
def test_a_record_that_is_skipped_might_as_well_never_have_been_there(seed: int, kind: str) -> None:
    draw, given_ = random.Random(seed), config(SPECS[kind], models_max_classes=6)
    hit, spared = Partition(given_), Partition(given_)
    hit.to_skip = some_of_all(draw)
    run: list[Record] = []
    for record in [*story(seed, 250), None]:
        if run and (record is None or run[0].source != record.source or draw.random() < 0.2):
            at = hit._offsets[run[0].source]
            hit.feed(*run)
            for offset, one_record in enumerate(run, at):
                spared._offsets[one_record.source] = offset
                if (one_record.source, offset) not in hit.to_skip:
                    spared.feed(one_record)
            spared.task.advance(run[0].source, hit._offsets[run[0].source])
            run = []
        if record is not None:
            run.append(record)
    assert models(hit.task) == models(spared.task)
    assert hit.task.digest() == spared.task.digest()
    assert [message.value for message in hit.sent["predictions"]] == [
        message.value for message in spared.sent["predictions"]
    ]
    others = [letter for letter in hit.dead_letters if letter.reason != "skipped"]
    assert [letter.value for letter in others] == [letter.value for letter in spared.dead_letters]


def test_an_entry_is_read_as_it_was_written() -> None:
    partition = Journalled()
    for record in story(3, 120):
        partition.feed(record)
    partition.commit()
    entry = decode(partition.journal[0])
    assert isinstance(entry, Entry)
    assert decode(encode(entry)) == entry
    assert entry.config == partition.task.config.to_json()


def test_records_that_are_gone_are_missed() -> None:
    partition = Journalled(random.Random(1))
    for record in story(3, 60):
        partition.feed(record)
    partition.commit()
    raw = partition.logs["instances"][4]
    partition.logs["instances"][4] = replace(
        raw,
        **{name: getattr(raw, name)[1:] for name in ("offsets", "timestamps", "keys", "values", "headers")},
    )
    with pytest.raises(
        RestoreError, match=r"records of instances from offset \d+ to before \d+ were processed"
    ):
        partition.replayed(3)
