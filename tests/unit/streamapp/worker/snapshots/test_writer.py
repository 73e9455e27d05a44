"""Writing snapshots: what is in the table when, and what is removed."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest

import streamapp.worker.snapshots.snapshot_writer as module
from streamapp.worker.journal.entry import Manifest, Reset
from streamapp.worker.observability.metrics import Metrics
from streamapp.worker.restore.journal_replay import Replay
from streamapp.worker.restore.rebuild import Rebuild, RestoreRequest
from streamapp.worker.restore.restore_progress import RestoreProgress
from streamapp.worker.snapshots.schedule import SnapshotLimits
from streamapp.worker.snapshots.snapshot_writer import Base, SnapshotWriter
from streamapp.worker.snapshots.stored import StoredSnapshot
from streamapp.worker.task.task_config import TaskConfig
from streamapp.worker.task.unit import Unit, UnitName
from tests.positions import at
from tests.unit.streamapp.settled import settled
from tests.unit.streamapp.worker.restore.test_tail import Journal
from tests.unit.streamapp.worker.snapshots.memory import ListCut, MemoryJournal, MemoryTable


class Story:
    """A writer with one live partition that has something in the journal."""

    def __init__(self) -> None:
        self.table, self.journal, self.metrics = MemoryTable(), MemoryJournal(), Metrics()
        self.writer = SnapshotWriter(
            self.table, self.journal, self.metrics, SnapshotLimits(1.0, 1 << 30, 60.0)
        )
        self.positions = 0
        self.now = 0.0

    def add(self, base: Base | None = None, incarnation: int = 1, number: int = 0) -> None:
        self.writer.add(number, base or Base(), incarnation)
        self.writer.live(number)
        self.writer.moved(number)

    async def until(self, true: Callable[[], object]) -> None:
        async with asyncio.timeout(60):
            while not true():  # noqa: ASYNC110 - threads and tasks are at work, no event
                await asyncio.sleep(0)

    async def begin(self, cut: ListCut) -> None:
        self.now += 1000.0
        self.writer.note([(0, 0)], 5.0, self.now)
        self.positions += 10
        self.journal.ends[0] = self.positions
        await self.until(lambda: self.writer.due(self.now) == [0])
        self.writer.cut(0)
        self.writer.begin(0, cut, at(instances=self.positions), "{}")

    async def snapshot(self, units: dict[str, bytes], removed: tuple[str, ...] = ()) -> Manifest:
        await self.begin(ListCut(units, removed))
        manifest = await self.ready()
        self.writer.committed(0, manifest, self.now)
        await self.until(lambda: not self.writer.tidying)
        return manifest

    async def ready(self) -> Manifest:
        await self.until(self.writer.ready)
        manifest = self.writer.manifest(0)
        assert manifest is not None
        return manifest

    def read(self, manifest: Manifest) -> dict[str, bytes]:
        stored = StoredSnapshot(manifest, self.table.chunks(0).get)
        return {unit.name.key: unit.data for unit in stored.units()}


def run(story: Callable[[Story], Awaitable[None]]) -> None:
    async def told() -> None:
        s = Story()
        await story(s)
        assert s.table.overwritten == [], "nothing is ever overwritten"

    asyncio.run(told())


def test_a_snapshot_is_what_was_cut_on_top_of_the_one_before() -> None:
    async def story(s: Story) -> None:
        s.add()
        first = await s.snapshot({"a": b"1", "b": b"2", "c": b"3"})
        second = await s.snapshot({"b": b"22", "d": b"4"}, removed=("a",))
        assert s.read(second) == {"b": b"22", "c": b"3", "d": b"4"}
        assert s.read(first) == {"a": b"1", "b": b"2", "c": b"3"}, "there is one to fall back on"
        assert (second.sequence, second.positions, second.start) == (2, at(instances=20), 20)

    run(story)


def test_what_only_the_third_newest_names_is_removed_and_the_journal_is_cut_off_before_the_second() -> None:
    async def story(s: Story) -> None:
        s.add()
        first = await s.snapshot({"a": b"1", "b": b"2"})
        second = await s.snapshot({"a": b"11"})
        third = await s.snapshot({"a": b"111"}, removed=("b",))
        assert s.read(second) == {"a": b"11", "b": b"2"}
        assert s.read(third) == {"a": b"111"}
        assert s.journal.trimmed == [(0, first.start), (0, second.start)]
        fourth = await s.snapshot({"a": b"1111"})
        assert s.read(fourth) == {"a": b"1111"}
        assert len(s.table.chunks_of[0]) == 4, "two units, two indices"

    run(story)


class Large:
    """A large model, sealed by whoever is asked to."""

    size = 1 << 20

    def __init__(self, name: str, data: bytes) -> None:
        self._unit = Unit(UnitName("test", name), data)
        self.sealed_in = 0

    def seal(self) -> Unit:
        self.sealed_in = threading.get_ident()
        return self._unit


class LargeCut(ListCut):
    """A cut of large models, of which those called `same` are in the store already."""

    def __init__(self, *models: Large) -> None:
        super().__init__({})
        self.models = models

    def pieces(self) -> Iterator[Any]:
        return iter(self.models)

    def keep(self, unit: Unit) -> bool:
        return unit.name.key != "same"


def test_no_partition_waits_while_others_are_written_twice() -> None:
    """Where a snapshot takes longer than it takes to be due again, the last one never had its turn."""

    async def story(s: Story) -> None:
        written: list[int] = []
        write = s.table.write

        async def cut(number: int) -> None:
            s.now += 1000.0
            s.writer.note([(number, 0)], 5.0, s.now)
            await s.until(lambda: number in s.writer.due(s.now))
            s.writer.cut(number)
            s.writer.begin(number, ListCut({"a": b"1"}), at(instances=1), "{}")

        async def slow(partition: int, items: Any) -> None:
            written.append(partition)
            for number in s.writer.ready() if len(written) < 20 else ():
                manifest = s.writer.manifest(number)
                assert manifest is not None
                s.writer.committed(number, manifest, s.now)
                await cut(number)  # meanwhile it is due again
            await write(partition, items)

        s.table.write = slow  # type: ignore[method-assign]
        for number in range(3):
            s.journal.ends[number] = 1
            s.add(number=number)
        for number in range(3):
            await cut(number)
        await s.until(lambda: len(written) > 20)
        assert written[:12] == [0, 0, 1, 1, 2, 2] * 2, "units and index of each in turn"
        await s.until(lambda: len(s.writer.ready()) == 3)

    run(story)


def test_large_models_are_sealed_in_threads_and_stored_if_they_changed() -> None:
    async def story(s: Story) -> None:
        s.add()
        first = await s.snapshot({"same": b"1", "other": b"2"})
        cut = LargeCut(Large("same", b"10"), Large("other", b"20"))
        await s.begin(cut)
        second = await s.ready()
        assert s.read(first) == {"same": b"1", "other": b"2"}
        assert s.read(second) == {"same": b"1", "other": b"20"}
        assert all(each.sealed_in not in (0, threading.get_ident()) for each in cut.models)

    run(story)


def test_many_small_units_wait_for_the_broker_together() -> None:
    async def story(s: Story) -> None:
        s.add()
        waits: list[int] = []
        write = s.table.write

        async def counted(partition: int, items: Any) -> None:
            items = list(items)
            waits.append(len(items))
            await write(partition, items)

        s.table.write = counted  # type: ignore[method-assign]
        units = {f"u{number}": b"%d" % number for number in range(1000)}
        assert s.read(await s.snapshot(units)) == units
        assert sum(waits) == 1000 + 1, "and the index"
        assert len(waits) < 100

    run(story)


def test_a_write_that_fails_is_done_again_before_the_manifest_promises_it() -> None:
    async def story(s: Story) -> None:
        s.add()
        s.table.failures = 2
        manifest = await s.snapshot({"a": b"1", "b": b"2"})
        assert s.read(manifest) == {"a": b"1", "b": b"2"}

    before, module.RETRY_SECONDS = module.RETRY_SECONDS, 0.0  # type: ignore[misc]
    try:
        run(story)
    finally:
        module.RETRY_SECONDS = before  # type: ignore[misc]


def test_a_long_outage_does_not_fill_the_log(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A disk that is full all night, tried each second, would write its lines to a disk that may be full."""
    monkeypatch.setattr(module, "RETRY_SECONDS", 0.0)

    def complaints() -> int:
        return caplog.text.count("a part of a snapshot is not written, again")

    async def story(s: Story) -> None:
        s.add()
        s.table.failures = 50
        await s.snapshot({"a": b"1"})
        assert complaints() == 1
        s.table.failures = 50
        await s.snapshot({"a": b"2"})
        assert complaints() == 2, "a further outage is told at once"

    run(story)


@pytest.mark.parametrize("what", ["asks", "rests", "writes"])
def test_a_stop_waits_for_nothing_that_will_be_tried_again(
    what: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for name in ("RETRY_SECONDS", "JOURNAL_SECONDS", "STOP_SECONDS"):
        monkeypatch.setattr(module, name, 3600.0)

    async def story(s: Story) -> None:
        s.add()
        if what == "writes":
            s.table.failures = 1000
            await s.begin(ListCut({"a": b"1"}))
        else:
            s.journal.away = what == "rests"
            if what == "asks":
                s.journal.answers.clear()
            s.writer.note([(0, 0)], 5.0, 1000.0)
            assert s.writer.due(1000.0) == []
        if what != "asks":
            await s.until(lambda: "the broker is away" in caplog.text)
        async with asyncio.timeout(60):
            await s.writer.stop()
        s.journal.answers.set()

    run(story)


def test_where_the_journal_ends_is_asked_again_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "JOURNAL_SECONDS", 0.0)

    async def story(s: Story) -> None:
        s.add()
        s.journal.away = True
        s.writer.note([(0, 0)], 5.0, 1000.0)
        assert s.writer.due(1000.0) == []
        await s.writer.changed.wait()
        s.journal.away = False
        await s.until(lambda: s.writer.due(1000.0) == [0])

    run(story)


def test_a_snapshot_waits_while_the_partition_is_not_live_and_goes_on_when_it_comes_back() -> None:
    async def story(s: Story) -> None:
        s.add()
        await s.begin(ListCut({"a": b"1"}))
        s.writer.pause()
        await settled()
        assert (s.table.writes, s.writer.ready()) == (0, [])
        s.writer.live(0)
        assert s.read(await s.ready()) == {"a": b"1"}

    run(story)


def test_partitions_that_cannot_be_written_hold_up_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """A topic without a leader keeps a partition from going live, or from being written, for hours."""
    monkeypatch.setattr(module, "RETRY_SECONDS", 3600.0)

    async def story(s: Story) -> None:
        write = s.table.write

        async def refused(partition: int, items: Any) -> None:
            if partition == 1:
                message = "not enough replicas"
                raise ConnectionError(message)
            await write(partition, items)

        s.table.write = refused  # type: ignore[method-assign]
        for number in range(3):
            s.journal.ends[number] = 1
            s.add(number=number)
            s.writer.note([(number, 0)], 5.0, 1000.0)
        await s.until(lambda: s.writer.due(1000.0) == [0, 1, 2])
        for number in range(3):
            s.writer.cut(number)
            s.writer.begin(number, ListCut({"a": b"1"}), at(instances=1), "{}")
        s.writer.pause()
        s.writer.live(1)
        s.writer.live(2)
        await s.until(lambda: s.writer.ready() == [2])
        await s.until(lambda: s.writer.broker_failure)
        assert (
            "partition 1: a part of a snapshot is not written: not enough replicas" in s.writer.broker_failure
        )
        assert s.writer.disk_failure == ""
        s.writer.live(0)
        await s.until(lambda: s.writer.ready() == [0, 2])
        await s.writer.stop()

    run(story)


def test_the_age_of_a_snapshot_counts_from_the_first_change_that_it_lacks() -> None:
    async def story(s: Story) -> None:
        s.add()
        s.add(number=1)
        assert s.writer.ages(100.0) == {0: 0.0, 1: 0.0}
        await s.begin(ListCut({"a": b"1"}))
        assert s.writer.ages(s.now + 7.0) == {0: 7.0, 1: 0.0}
        s.writer.committed(0, await s.ready(), s.now)
        assert s.writer.ages(s.now + 7.0) == {0: 0.0, 1: 0.0}
        s.writer.pause()
        assert s.writer.ages(s.now) == {}

    run(story)


def test_a_dropped_partition_gives_up_its_snapshot() -> None:
    async def story(s: Story) -> None:
        s.add()
        cut = ListCut({"a": b"1"})
        await s.begin(cut)
        s.writer.drop(0)
        assert cut.abandoned
        await settled()
        assert (s.writer.ready(), s.writer.manifest(0)) == ([], None)

    run(story)


def test_after_a_journal_that_was_emptied_new_snapshots_are_whole() -> None:
    """What is left in the table is of incarnations that the journal does not know any more."""

    async def story(s: Story) -> None:
        s.add(incarnation=1)
        await s.snapshot({"idle": b"1", "busy": b"1"})
        for n in range(2, 6):
            await s.snapshot({"busy": b"%d" % n})
        s.writer.drop(0)
        journal, reset = Journal(), at(instances=70)
        journal.add(Reset(0, reset))  # 'grove models reset', as the operations page says
        wanted = RestoreRequest(
            0, at(), None, s.table.chunks(0), lambda: False, RestoreProgress(0, lambda line: None)
        )
        replay = Replay(0, lambda source, position: pytest.fail("nothing is to be read"))
        restored = Rebuild(wanted, TaskConfig(), journal.reader(), replay).run(reset)
        s.add(restored.base, restored.incarnation + 1)
        first = await s.snapshot({"idle": b"new", "busy": b"new"})
        assert s.read(first) == {"idle": b"new", "busy": b"new"}
        for n in range(2):
            later = await s.snapshot({"busy": b"later%d" % n})
            assert s.read(later) == {"idle": b"new", "busy": b"later%d" % n}

    run(story)


def test_garbage_that_the_newest_snapshot_needs_is_kept() -> None:
    async def story(s: Story) -> None:
        s.add()
        first = await s.snapshot({"a": b"1"})
        s.writer.drop(0)
        s.add(Base(garbage=[b"torn", *s.table.chunks_of[0]]), incarnation=1)  # as if it were another one's
        second = await s.snapshot({"a": b"1"})
        assert s.read(second) == {"a": b"1"}
        assert (first.incarnation, first.sequence) == (second.incarnation, second.sequence)
        assert len(s.table.overwritten) == 2, "unit and index"
        s.table.overwritten.clear()

    run(story)


def test_garbage_of_those_before_goes_with_the_next_complete_snapshot() -> None:
    async def story(s: Story) -> None:
        s.table.chunks_of[0] = {b"torn": b"x"}
        s.add(Base(garbage=[b"torn"]), incarnation=4)
        await s.snapshot({"a": b"1"})
        assert b"torn" not in s.table.chunks_of[0]

    run(story)


def test_nothing_is_cut_before_this_incarnation_has_left_something_in_the_journal() -> None:
    async def story(s: Story) -> None:
        s.writer.add(0, Base(), 1)
        s.writer.live(0)
        s.writer.note([(0, 0)], 100.0, 0.0)
        await settled()
        assert s.writer.due(1e9) == []
        s.writer.moved(0)
        await s.until(lambda: s.writer.due(1e9) == [0])

    run(story)


def test_a_writer_that_is_stopped_writes_nothing_any_more() -> None:
    async def story(s: Story) -> None:
        s.add()
        await s.snapshot({"a": b"1"})
        cut = ListCut({"a": b"2"})
        await s.begin(cut)
        await s.writer.stop()
        writes = s.table.writes
        assert cut.abandoned
        await settled()
        s.writer.note([(0, 0)], 5.0, s.now)
        assert (s.table.writes, s.writer.ready(), s.writer.due(s.now + 1e6)) == (writes, [], [])

    run(story)
