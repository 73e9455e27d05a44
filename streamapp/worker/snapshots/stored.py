"""Stored snapshot: from its manifest to the units.

Most units are small, and there are many. Decompressing a small unit costs less than the call for it, so the
units of a group are decompressed in one call. A thread makes this call for the next group, without the
interpreter's lock, while the caller makes models of this one.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Final

from streamapp.worker.journal.entry import Manifest
from streamapp.worker.snapshots.chunks import UNIT, Copy, stored, unpack, unpack_together
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

    def __init__(self, manifest: Manifest, get: Get) -> None:
        """Raise DamagedError if the table lacks a chunk of the index."""
        self.manifest = manifest
        self.index = Index.read(manifest, get)
        self._get = get

    def units(self) -> Generator[Unit, None, None]:
        """Yield the units; DamagedError at one that is not whole."""
        with ThreadPoolExecutor(1, "snapshot") as thread:
            groups = UnitGroups(self.index.copies.items(), self._get, thread)
            read = groups.begin()
            while units := read():
                read = groups.begin()
                yield from units


class UnitGroups:
    """Reads units, as many at a time as fit into a buffer."""

    def __init__(self, places: Iterable[Place], get: Get, thread: ThreadPoolExecutor) -> None:
        self._places = iter(places)
        self._following = next(self._places, None)
        self._get = get
        self._thread = thread
        self._most = 1  # units of the next group: the size of a unit is known only once it is decompressed
        self._buffer = bytearray(GROUP_BYTES)

    def begin(self) -> Callable[[], list[Unit]]:
        """Begin to read the next group; return a function that returns its units, none after the last group.

        A unit that is a group of its own is read only by that function: memory might have no room for two.
        """
        group = self._group()
        if len(group) < 2:
            return partial(self._one_by_one, group)
        packed = [stored(UNIT, name, copy, self._get) for name, copy in group]
        unpacked = self._thread.submit(unpack_together, packed, self._buffer)
        return lambda: self._together(group, unpacked.result())

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

    def _together(self, group: list[Place], data: bytes | None) -> list[Unit]:
        """Return the units of a group; `data`: its decompressed bytes, None if they did not fit."""
        if data is None:
            self._most = max(1, len(group) // 4)
            return self._one_by_one(group)
        parts = FRAME.split(data, len(group))
        return self._one_by_one(group) if parts is None else self._units(group, parts)

    def _one_by_one(self, group: list[Place]) -> list[Unit]:
        return self._units(group, [unpack(UNIT, name, copy, self._get) for name, copy in group])

    def _units(self, group: list[Place], parts: list[bytes]) -> list[Unit]:
        if 2 * sum(map(len, parts)) <= GROUP_BYTES:
            self._most = max(self._most, min(2 * len(group), GROUP_UNITS))
        return [Unit(UnitName.decode(name), data) for (name, _), data in zip(group, parts, strict=True)]
