"""Units come back from a stored snapshot as they were written, however they are grouped."""

from __future__ import annotations

import os
import threading
import zlib
from collections.abc import Iterable

import cramjam
import pytest

from core.state_version import STATE_VERSION
from streamapp.worker.journal.entry import Manifest
from streamapp.worker.snapshots.chunks import UNIT, Copy, DamagedError, chunk_keys, pack
from streamapp.worker.snapshots.index import Index
from streamapp.worker.snapshots.stored import GROUP_BYTES, GROUP_UNITS, StoredSnapshot
from streamapp.worker.task.sources import positions_of
from streamapp.worker.task.unit import Unit, UnitName, seal

Chunks = dict[bytes, bytes]
MOST = 1 << 20
"""Bytes that an index may have."""


def unit(number: int, size: int) -> Unit:
    return seal(UnitName("model", f"key-{number}", 1), {"number": number}, [os.urandom(size)])


def written(units: Iterable[Unit]) -> tuple[Manifest, Chunks]:
    """Return the manifest and the chunks of a snapshot of units."""
    chunks: Chunks = {}
    copies: dict[bytes, Copy] = {}
    for each in units:
        name = each.name.encode()
        copies[name], items = pack(UNIT, name, 1, 1, each.data)
        chunks.update(items)
    return manifest_of(Index(copies), chunks), chunks


def manifest_of(index: Index, chunks: Chunks) -> Manifest:
    """Store an index and return its manifest."""
    place, items = index.pack(1, 1)
    chunks.update(items)
    head = (1, 1, STATE_VERSION, "", positions_of({}), 0, "{}")
    return Manifest(*head, len(index.copies), index.size, place.chunks, place.crc, place.size)


def read(manifest: Manifest, chunks: Chunks, most: int | None = None) -> list[Unit]:
    return list(StoredSnapshot(manifest, chunks.get, most).units())


SIZES = {
    "none": [],
    "one": [10],
    "many small": [100] * (3 * GROUP_UNITS + 5),
    "some large": [10] * 20 + [GROUP_BYTES + 1] * 3 + [10] * 20,
    "growing": [1 << (number // 8) for number in range(8 * 18)],
    "shrinking": [1 << 17 >> number // 8 for number in range(8 * 18)],
    "as large as a group": [GROUP_BYTES] * 3 + [GROUP_BYTES // 3] * 9,
}


@pytest.mark.parametrize("sizes", SIZES.values(), ids=SIZES)
def test_units_of_any_size_come_back_in_their_order(sizes: list[int]) -> None:
    units = [unit(number, size) for number, size in enumerate(sizes)]
    assert read(*written(units)) == units


def test_units_that_are_much_smaller_when_compressed_come_back() -> None:
    units = compressible()
    assert read(*written(units)) == units


def compressible() -> list[Unit]:
    """Return units of zeros: some of them, and most groups of them, do not fit into the buffer of a group."""
    return [seal(UnitName("model", str(number), 1), {}, [bytes(1 << number % 22)]) for number in range(100)]


@pytest.mark.parametrize("of_zeros", [False, True])
def test_each_chunk_is_read_once(of_zeros: bool) -> None:
    units = compressible() if of_zeros else [unit(number, 100) for number in range(3 * GROUP_UNITS)]
    units[50] = Unit(units[50].name, b"no unit")  # its group is not split
    manifest, chunks = written(units)
    keys: list[bytes] = []

    def get(key: bytes) -> bytes | None:
        keys.append(key)
        return chunks.get(key)

    assert list(StoredSnapshot(manifest, get).units()) == units
    assert sorted(keys) == sorted(chunks)


@pytest.mark.parametrize("n_units", [1, 20])
def test_a_unit_that_decompresses_to_too_many_bytes_is_refused_and_named(n_units: int) -> None:
    units = [unit(number, 50) for number in range(n_units)]
    units[-1] = seal(units[-1].name, {}, [bytes(4 * GROUP_BYTES)])
    manifest, chunks = written(units)
    assert read(manifest, chunks, most=units[-1].size) == units
    title = rf'unit \["model","key-{n_units - 1}",1\] of snapshot 1\.1'
    with pytest.raises(DamagedError, match=f"{title}: .* decompress to more than {4 * GROUP_BYTES} bytes"):
        read(manifest, chunks, most=4 * GROUP_BYTES)


def test_an_index_that_decompresses_to_too_many_bytes_is_refused() -> None:
    manifest, chunks = written([unit(number, 50) for number in range(100)])
    with pytest.raises(
        DamagedError, match="unit index of snapshot 1.1: .* decompress to more than 1000 bytes"
    ):
        read(manifest, chunks, most=1000)


def test_bytes_that_are_no_unit_stay_the_same_beside_units() -> None:
    """A reader of a unit refuses them, under its name."""
    units = [unit(number, 50) for number in range(40)]
    others = {
        9: b"",
        17: b"something else",
        20: units[1].data + units[2].data,
        28: units[3].data[:-1],
        33: units[4].data + b"\0",
        39: units[5].data[:20],
    }
    for number, data in others.items():
        units[number] = Unit(units[number].name, data)
    assert read(*written(units)) == units


@pytest.mark.parametrize("number", [0, 1, 30, 99])
def test_a_damaged_unit_of_a_group_is_named(number: int) -> None:
    units = [unit(each, 50) for each in range(100)]
    manifest, chunks = written(units)
    name = units[number].name.encode()
    (key,) = chunk_keys(UNIT, name, Index.read(manifest, chunks.get, MOST).copies[name])
    whole, title = chunks[key], rf'unit \["model","key-{number}",1\] of snapshot 1\.1'
    chunks[key] = whole[:-1] + bytes([whole[-1] ^ 1])
    with pytest.raises(DamagedError, match=f"{title}: .* do not match"):
        read(manifest, chunks)
    del chunks[key]
    with pytest.raises(DamagedError, match=f"{title}: 1 of 1 chunks are missing"):
        read(manifest, chunks)


@pytest.mark.parametrize("packed", [b"not compressed", bytes(cramjam.zstd.compress(bytes(1000)))[:-3]])
def test_bytes_that_cannot_be_decompressed_are_refused_whoever_sealed_them(packed: bytes) -> None:
    units = [unit(each, 50) for each in range(20)]
    manifest, chunks = written(units)
    index, name = Index.read(manifest, chunks.get, MOST), units[11].name.encode()
    (key,) = chunk_keys(UNIT, name, index.copies[name])
    index.copies[name] = index.copies[name]._replace(crc=zlib.crc32(packed), size=len(packed))
    chunks[key] = packed
    with pytest.raises(DamagedError, match=r'unit \["model","key-11",1\] .* cannot be decompressed'):
        read(manifest_of(index, chunks), chunks)


def test_a_reader_that_stops_leaves_no_thread() -> None:
    manifest, chunks = written(unit(number, 50) for number in range(500))
    before = threading.enumerate()  # other tests' threads may end meanwhile
    units = StoredSnapshot(manifest, chunks.get).units()
    for _ in range(20):  # a unit that is a group of its own is decompressed without the thread
        next(units)
    (reader,) = {thread for thread in threading.enumerate() if thread not in before}
    units.close()
    assert not reader.is_alive()
