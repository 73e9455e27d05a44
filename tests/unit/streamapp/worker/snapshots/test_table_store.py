"""Copies in the thread of the disk: one that does not answer holds up neither the event loop nor an end."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import shutil
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest
from faust.types import TP

import streamapp.worker.snapshots.table_store as module
from streamapp.errors import LocalCopyError, NotYetError
from streamapp.worker.state_directory import DISK_HANGS
from tests.disks import freezable_disk, frozen, read_only, small_disk
from tests.unit.streamapp.worker.snapshots.copies import TOPIC, Copies

PLACE = TP(TOPIC, 0)
LARGE = bytes(900_000)  # two of them do not fit into memory together


@pytest.fixture
def disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A disk that can hang."""
    monkeypatch.setattr(module, "ANSWER_S", 60.0)
    monkeypatch.setattr(module, "RETRY_S", 0.01)
    with freezable_disk(tmp_path / "disk") as place:
        yield place


@contextlib.contextmanager
def hanging(disk: Path) -> Iterator[None]:
    """Let the disk hang in this block, in which the event loop waits a tenth of a second for it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "ANSWER_S", 0.1)
        with frozen(disk):
            yield


def run(story: Callable[[], Awaitable[None]]) -> None:
    async def told() -> None:
        async with asyncio.timeout(60):
            await story()

    asyncio.run(told())


async def hangs(copies: Copies) -> None:
    """Wait until the disk is known to hang."""
    while copies.store.failure() != DISK_HANGS:  # noqa: ASYNC110 - a thread is at work, no event
        await asyncio.sleep(0.01)


def test_a_write_waits_for_the_disk_and_nothing_else_does(disk: Path) -> None:
    async def story() -> None:
        copies = Copies(disk)
        await copies.assign(0, 1)
        await copies.table.write(0, [(b"a", b"1")])
        with hanging(disk):
            await copies.table.write(0, [(b"a", LARGE)])  # in memory
            second = asyncio.ensure_future(copies.table.write(0, [(b"a", b"2"), (b"b", LARGE)]))
            third = asyncio.ensure_future(copies.table.write(0, [(b"a", None)]))
            await hangs(copies)
            assert not second.done()
            assert copies.topic[0] == [(b"a", b"1"), (b"a", LARGE)], "the copy has it before the broker"
            await copies.assign(0, 1)  # a rebalance that leaves all partitions here
            assert (copies.store.reads(0), copies.store.reads(1)) == (True, True)
            assert not third.done()
        await asyncio.gather(second, third)
        await copies.settle()
        assert copies.topic[0][2:] == [(b"a", b"2"), (b"b", LARGE), (b"a", None)]
        assert copies.values() == {b"b": LARGE}, "the order of the writes"
        assert (copies.store.failure(), copies.store.persisted_offset(PLACE)) == ("", 4)
        await copies.store.stop()

    run(story)


def test_a_partition_that_is_revoked_while_the_disk_hangs_writes_nothing_later(disk: Path) -> None:
    async def story() -> None:
        copies = Copies(disk)
        await copies.assign(0, 1)
        with hanging(disk):
            writing = asyncio.ensure_future(copies.table.write(0, [(b"a", LARGE), (b"b", LARGE)]))
            await hangs(copies)
            await copies.assign(1)
            assert copies.store.copy_of(0) is None
            await copies.assign(0, 1)  # it comes back while its old copy is still open
            with pytest.raises(NotYetError, match=DISK_HANGS):
                copies.table.chunks(0).check()
        with pytest.raises(NotYetError, match="was revoked while the disk was waited for"):
            await writing
        assert copies.topic[0] == []
        await copies.join_again()
        await copies.table.write(0, [(b"b", b"2")])
        assert copies.values() == {b"a": LARGE, b"b": b"2"}, "a part that no snapshot names does no harm"
        await copies.settle()
        assert copies.store.persisted_offset(PLACE) == 0
        await copies.store.stop()

    run(story)


def test_a_partition_that_comes_while_the_disk_hangs_waits_for_it(disk: Path) -> None:
    async def story() -> None:
        copies = Copies(disk)
        copies.topic[1] = [(b"a", b"1"), (b"b", b"2")]
        await copies.assign(0)
        with hanging(disk):
            await copies.assign(0, 1)
            assert (copies.store.reads(0), copies.store.reads(1)) == (True, False)
            with pytest.raises(NotYetError, match=DISK_HANGS):
                copies.values(1)
            assert not copies.joined.is_set()
        await copies.join_again()
        assert copies.values(1) == {b"a": b"1", b"b": b"2"}
        assert not copies.joined.is_set()
        await copies.store.stop()

    run(story)


def test_records_of_a_standby_that_the_disk_does_not_take_are_read_again(
    disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_UNWRITTEN", 1000)

    async def story() -> None:
        copies = Copies(disk)
        await copies.assign(0)
        with hanging(disk):
            for number in range(5):
                copies.topic[0].append((b"%d" % number, LARGE))
                await copies.store.room(0)
                copies.read(0, number)
            assert not copies.store.reads(0)
        await copies.join_again()
        assert copies.values() == dict(copies.topic[0])
        assert copies.store.persisted_offset(PLACE) == 4
        await copies.store.stop()

    run(story)


def test_an_end_does_not_wait_for_a_disk_that_hangs(disk: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def story() -> None:
        copies = Copies(disk)
        await copies.assign(0)
        await copies.table.write(0, [(b"a", b"1")])
        await copies.settle()
        with hanging(disk):
            writing = asyncio.ensure_future(copies.table.write(0, [(b"b", LARGE), (b"c", LARGE)]))
            await hangs(copies)
            await copies.store.stop()
            assert "ending without closing the copies there" in caplog.text
        with pytest.raises(NotYetError):
            await writing
        successor = Copies(disk)
        successor.topic = copies.topic
        await successor.assign(0)
        while not successor.store.reads(0):
            await successor.join_again()  # the copy is closed by then
        assert successor.values()[b"a"] == b"1"
        await successor.store.stop()

    run(story)


def test_a_disk_without_room_holds_up_a_partition_that_comes_until_there_is_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(module, "RETRY_S", 0.01)

    async def story() -> None:
        copies = Copies(tmp_path)
        copies.topic[0] = [(b"a", b"1")]
        path = copies.path(0)
        path.write_text("a file where the folder has to be")
        await copies.assign(0)
        with pytest.raises(NotYetError, match="cannot be written"):
            copies.table.chunks(0).check()
        assert "cannot be written" in copies.store.failure()
        path.unlink()
        await copies.join_again()
        assert copies.values() == {b"a": b"1"}
        assert copies.store.failure() == ""
        await copies.store.stop()

    with caplog.at_level(logging.WARNING):
        run(story)
    assert caplog.text.count("a partition that has to be restored from it waits") == 1


def test_a_disk_that_refuses_a_flush_takes_what_was_in_memory_when_it_can_be_written_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """RocksDB takes no writes after such an error, however long the disk has been well again."""
    monkeypatch.setattr(module, "RETRY_S", 0.01)

    async def story(place: Path) -> None:
        copies = Copies(place)
        await copies.assign(0, 1)
        await copies.table.write(0, [(b"a", b"1")])
        monkeypatch.setattr(module, "FLUSH_S", 0.01)
        with read_only(place):
            await copies.table.write(1, [(b"a", b"1")])
            while "cannot be written" not in copies.store.failure():  # noqa: ASYNC110 - a thread is at work
                await asyncio.sleep(0.01)
            with pytest.raises(LocalCopyError, match="cannot be written"):
                await copies.table.write(1, [(b"b", b"2")])
            with pytest.raises(NotYetError, match="cannot be written"):
                copies.values(1)
        await copies.join_again()
        await copies.table.write(1, [(b"b", b"2")])
        assert copies.values(0) == {b"a": b"1"}
        assert copies.values(1) == {b"a": b"1", b"b": b"2"}
        assert copies.store.failure() == ""
        await copies.store.stop()

    with small_disk(tmp_path / "disk", "32m") as place:
        run(lambda: story(place))


def test_a_restore_from_a_copy_that_is_gone_waits_until_the_topic_was_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "RETRY_S", 0.01)

    async def story() -> None:
        copies = Copies(tmp_path)
        await copies.assign(0)
        await copies.table.write(0, [(b"a", b"1")])
        shutil.rmtree(copies.path(0))
        await copies.table.write(0, [(b"b", b"2")])
        with pytest.raises(NotYetError, match="have to be read again"):
            copies.values()
        await copies.join_again()
        assert copies.values() == {b"a": b"1", b"b": b"2"}
        await copies.store.stop()

    run(story)


def test_a_worker_goes_on_when_its_directory_is_back(tmp_path: Path) -> None:
    async def story() -> None:
        home = tmp_path / "w"
        copies = Copies(home)
        await copies.assign(0)
        await copies.table.write(0, [(b"a", b"1")])
        shutil.rmtree(home)
        with pytest.raises(LocalCopyError, match=f"{home} is gone"):
            await copies.table.write(0, [(b"b", b"2")])
        home.mkdir()
        await copies.table.write(0, [(b"b", b"2")])
        await copies.assign(0)
        assert copies.values() == {b"a": b"1", b"b": b"2"}
        await copies.store.stop()

    run(story)
