"""Stored snapshot: from its manifest to the units.

Most units are small, and there are many. Decompressing a small unit costs less than the call for it, so the
units of a group are decompressed in one call. A thread makes this call for the next group, without the
interpreter's lock, while the caller makes models of this one.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from streamapp.worker.journal.entry import Manifest
from streamapp.worker.observability.cgroup_memory import process_memory
from streamapp.worker.snapshots.chunks import UNIT, Copy, decompressed, stored, unpack_together
from streamapp.worker.snapshots.index import Index
from streamapp.worker.task.unit import FRAME, Unit, UnitName

Get = Callable[[bytes], bytes | None]
Place = tuple[bytes, Copy]
"""Name and copy of a unit."""

GROUP_BYTES: Final = 1 << 20
"""Most bytes of the units of a group, compressed and decompressed. A larger unit is a group of its own."""
GROUP_UNITS: Final = 128
"""Most units of a group."""


class StoredSnapshot:
    """A snapshot in a table; the index is read at once, the units group by group."""

    def __init__(self, manifest: Manifest, get: Get, most: int | None = None) -> None:
        """`most`: bytes that the index or a unit may decompress to. None: half of this process's memory,
        because a model takes as many bytes as its unit while it is made.

        Raise DamagedError if the table lacks a chunk of the index.
        """
        self.manifest = manifest
        self._most = process_memory() // 2 if most is None else most
        self.index = Index.read(manifest, get, self._most)
        self._get = get

    def units(self) -> Generator[Unit, None, None]:
        """Yield the units; DamagedError at one that is not whole, or decompresses to too many bytes."""
        with ThreadPoolExecutor(1, "snapshot") as thread:
            groups = UnitGroups(self.index.copies.items(), self._get, thread, self._most)
            read = groups.begin()
            while (units := read()) is not None:
                read = groups.begin()
                yield from units


class UnitGroups:
    """Reads units, as many at a time as fit into a buffer."""

    def __init__(self, places: Iterable[Place], get: Get, thread: ThreadPoolExecutor, most: int) -> None:
        """`most`: bytes that a unit which does not fit into the buffer may decompress to."""
        self._places = iter(places)
        self._following = next(self._places, None)
        self._get = get
        self._thread = thread
        self._most_bytes = most
        self._most = 1  # units of the next group: the size of a unit is known only once it is decompressed
        self._buffer = bytearray(GROUP_BYTES)

    def begin(self) -> Callable[[], Iterable[Unit] | None]:
        """Begin to read the next group; return a function that returns its units, None after the last group.

        Units that do not fit into the buffer are decompressed one by one, each when it is taken: memory might
        have no room for two.
        """
        group = self._group()
        if not group:
            return lambda: None
        if len(group) == 1:
            return lambda: self._one_by_one(group, map(self._stored, group))
        packed = [self._stored(place) for place in group]
        unpacked = self._thread.submit(unpack_together, packed, self._buffer)
        return lambda: self._together(group, packed, unpacked.result())

    def _group(self) -> list[Place]:
        group: list[Place] = []
        size = 0
        while self._following is not None and len(group) < self._most:
            size += self._following[1].size
            if group and size > GROUP_BYTES:
                break
            group.append(self._following)
            self._following = next(self._places, None)
        return group

    def _stored(self, place: Place) -> bytes:
        return stored(UNIT, *place, self._get)

    def _together(self, group: list[Place], packed: list[bytes], data: bytes | None) -> Iterable[Unit]:
        """Return the units of a group; `data`: its decompressed bytes, None if they did not fit."""
        if data is None:
            self._most = max(1, len(group) // 4)
            return self._one_by_one(group, packed)
        parts = FRAME.split(data, len(group))
        if parts is None:
            return self._one_by_one(group, packed)
        self._grow(len(group), len(data))
        return [_unit(name, part) for (name, _), part in zip(group, parts, strict=True)]

    def _one_by_one(self, group: list[Place], packed: Iterable[bytes]) -> Iterator[Unit]:
        """Yield the units of a group; `packed`: their compressed bytes."""
        size = 0
        for (name, copy), part in zip(group, packed, strict=True):
            data = decompressed(part, name, copy, self._most_bytes)
            size += len(data)
            yield _unit(name, data)
        self._grow(len(group), size)

    def _grow(self, n: int, size: int) -> None:
        """Let the next group have more than n units, if n units took at most half of its bytes."""
        if 2 * size <= GROUP_BYTES:
            self._most = max(self._most, min(2 * n, GROUP_UNITS))


def _unit(name: bytes, data: bytes) -> Unit:
    """Return a unit whose compressed bytes match the checksum in the index of the snapshot."""
    return Unit(UnitName.decode(name), data, is_whole=True)
