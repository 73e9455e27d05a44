"""Stored snapshot: from its manifest to the units."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from streamapp.worker.journal.entry import Manifest
from streamapp.worker.snapshots.chunks import UNIT, unpack
from streamapp.worker.snapshots.index import Index
from streamapp.worker.task.unit import Unit, UnitName

Get = Callable[[bytes], bytes | None]


class StoredSnapshot:
    """A snapshot in a table; the index is read at once, the units one by one."""

    def __init__(self, manifest: Manifest, get: Get) -> None:
        """Raise DamagedError if the table lacks a chunk of the index."""
        self.manifest = manifest
        self.index = Index.read(manifest, get)
        self._get = get

    def units(self) -> Iterator[Unit]:
        """Yield the units; DamagedError at one that is not whole."""
        for name, copy in self.index.copies.items():
            yield Unit(UnitName.decode(name), unpack(UNIT, name, copy, self._get))
