"""Units are read ahead of the models that are made of them; what is damaged is told as if they were not."""

from __future__ import annotations

import threading
import zlib
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from streamapp.journal.entry import Manifest
from streamapp.restore.replay import Replay, SourceLog
from streamapp.snapshots.chunks import UNIT, Copy, DamagedError, chunk_keys, pack, unpack
from streamapp.snapshots.index import Index
from streamapp.snapshots.stored import StoredSnapshot
from streamapp.snapshots.table import ClosedError
from streamapp.task.models.model_unit import MODEL
from streamapp.task.sources import SourceName
from streamapp.task.task import Task
from streamapp.task.unit import DamagedStateError, UnitName
from tests.positions import at
from tests.property.test_task_cuts import SPECS, TTL, story
from tests.property.test_task_rollback import runs_of
from tests.topology.partition import PARTITION, Partition, config
from tests.topology.snapshot_store import SnapshotStore

CONFIG = config(SPECS["asks-again"], pending_ttl_ms=TTL, models_max_classes=6)


class Stored:
    """A snapshot whose units can be damaged."""

    def __init__(self, digest: bytes, manifest: Manifest, chunks: dict[bytes, bytes], index: Index) -> None:
        self.digest = digest
        self.manifest = manifest
        self.chunks = dict(chunks)
        self.index = Index(dict(index.copies))

    def again(self) -> Stored:
        return Stored(self.digest, self.manifest, self.chunks, self.index)

    @property
    def names(self) -> list[bytes]:
        return list(self.index.copies)

    def data(self, name: bytes) -> bytes:
        return unpack(UNIT, name, self.index.copies[name], self.chunks.get)

    def put(self, name: bytes, data: bytes) -> None:
        """Let a unit be other bytes, stored as a whole snapshot has them."""
        copy, items = pack(UNIT, name, 1, 1, data)
        self.chunks.update(items)
        self._index(name, copy)

    def put_packed(self, name: bytes, packed: bytes) -> None:
        """Let a unit be what need not be compressed data."""
        copy, items = pack(UNIT, name, 1, 1, b"")
        ((key, _),) = items
        self.chunks[key] = packed
        self._index(name, copy._replace(size=len(packed), crc=zlib.crc32(packed)))

    def lose(self, name: bytes) -> None:
        del self.chunks[next(chunk_keys(UNIT, name, self.index.copies[name]))]

    def _index(self, name: bytes, copy: Copy) -> None:
        self.index.copies[name] = copy
        copy, items = self.index.pack(1, 1)
        self.chunks.update(items)
        self.manifest = replace(
            self.manifest,
            units=len(self.index.copies),
            size=self.index.size,
            index_chunks=copy.chunks,
            index_crc=copy.crc,
            index_size=copy.size,
        )

    def one_by_one(self) -> Task:
        """Make the task of units that are read when they are asked for."""
        units = StoredSnapshot(self.manifest, self.chunks.get).units()
        return Task.from_units(PARTITION, CONFIG, None, units)

    def restore(self, get: Callable[[bytes], bytes | None] | None = None) -> Task:
        replay = Replay(PARTITION, no_log)
        try:
            replay.begin_at(self.manifest, get or self.chunks.get)
        finally:
            assert [thread for thread in threading.enumerate() if thread.name == "read-ahead"] == []
        assert replay.task is not None
        return replay.task


def no_log(source: SourceName, position: int) -> SourceLog:
    raise AssertionError


@pytest.fixture(scope="module")
def stored() -> Stored:
    partition = Partition(CONFIG)
    for run in runs_of(story(4, 300), 7):
        partition.feed(*run)
    partition.control("create", key="awaited")
    store = SnapshotStore()
    manifest = store.put(partition.task, at(), 0)
    found = Stored(partition.task.digest(), manifest, store.chunks, store.index)
    kinds = [UnitName.decode(name).kind for name in found.names]
    assert kinds.count(MODEL) >= 2
    assert {*kinds} >= {"task", MODEL, "pending", "marks", "awaited", "early"}
    return found


def flipped(data: bytes) -> bytes:
    altered = bytearray(data)
    altered[len(data) // 2] ^= 4
    return bytes(altered)


def alter(stored: Stored, name: bytes) -> None:
    stored.put(name, flipped(stored.data(name)))


def alter_packed(stored: Stored, name: bytes) -> None:
    key = next(chunk_keys(UNIT, name, stored.index.copies[name]))
    stored.chunks[key] = flipped(stored.chunks[key])


def misname(stored: Stored, name: bytes) -> None:
    names = stored.names
    stored.put(name, stored.data(names[names.index(name) - 1]))


def cut_off(stored: Stored, name: bytes) -> None:
    stored.put(name, stored.data(name)[:-1])


def pack_nothing(stored: Stored, name: bytes) -> None:
    stored.put_packed(name, b"no compressed data")


DAMAGE = (Stored.lose, alter, alter_packed, misname, cut_off, pack_nothing)


def told(stored: Stored) -> tuple[type[BaseException], str]:
    """Return what is raised when the units are read one by one, as a restore raises it."""
    try:
        stored.one_by_one()
    except DamagedStateError as error:
        return DamagedError, str(error)
    except Exception as error:  # noqa: BLE001 - of any kind, it is to be the same
        return type(error), str(error)
    raise AssertionError


def test_a_whole_snapshot_is_what_it_was_made_of(stored: Stored) -> None:
    assert stored.restore().digest() == stored.one_by_one().digest() == stored.digest


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_unit_is_told_as_if_it_were_read_in_its_turn(
    stored: Stored, damage: Callable[[Stored, bytes], None]
) -> None:
    for name in stored.names:
        damaged = stored.again()
        damage(damaged, name)
        kind, text = told(damaged)
        with pytest.raises(kind) as raised:
            damaged.restore()
        assert (type(raised.value), str(raised.value)) == (kind, text)


@pytest.mark.parametrize("first", DAMAGE)
@pytest.mark.parametrize("second", DAMAGE)
def test_of_two_damaged_units_the_same_is_told(
    stored: Stored, first: Callable[[Stored, bytes], None], second: Callable[[Stored, bytes], None]
) -> None:
    names = stored.names
    for number in range(len(names) - 1):
        damaged = stored.again()
        second(damaged, names[number + 1])
        first(damaged, names[number])
        kind, text = told(damaged)
        with pytest.raises(kind) as raised:
            damaged.restore()
        assert (type(raised.value), str(raised.value)) == (kind, text)


def test_a_restore_that_is_given_up_ends_its_thread(stored: Stored) -> None:
    """The chunks are closed meanwhile, by the event loop."""
    for n in range(1, len(stored.chunks)):
        left = iter(range(n))

        def get(key: bytes, left: Iterator[int] = left) -> bytes | None:
            if next(left, None) is None:
                raise ClosedError
            return stored.chunks.get(key)

        with pytest.raises(ClosedError):
            stored.restore(get)
