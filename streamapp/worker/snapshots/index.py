"""Index of a snapshot: for each unit, which copy in the table is valid.

It is a unit itself, written whole with every snapshot; its manifest in the journal names it with its
checksum. Chunks that no index names are garbage, even if another worker wrote them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Final

import msgpack

from streamapp.errors import OtherReleaseError
from streamapp.worker.journal.entry import Manifest
from streamapp.worker.snapshots.chunks import INDEX, UNIT, Copy, DamagedError, chunk_keys, pack, unpack

FORMAT_VERSION: Final = 1
NAME: Final = b"index"


@dataclass(slots=True)
class Index:
    """Units by name, in the order a task is built from them."""

    copies: dict[bytes, Copy] = field(default_factory=dict)

    def after(self, fresh: Mapping[bytes, Copy], removed: Collection[bytes]) -> Index:
        """Return the index of the next snapshot: with the units it wrote, without the removed units."""
        gone = set(removed)
        kept = {name: copy for name, copy in self.copies.items() if name not in gone}
        return Index(kept | dict(fresh))

    def only_here(self, other: Index) -> list[bytes]:
        """Return the keys of chunks that this index names and `other` does not."""
        return [
            key
            for name, copy in self.copies.items()
            if other.copies.get(name) != copy
            for key in chunk_keys(UNIT, name, copy)
        ]

    def keys(self) -> set[bytes]:
        return {key for name, copy in self.copies.items() for key in chunk_keys(UNIT, name, copy)}

    @property
    def size(self) -> int:
        """Return the bytes of all units, compressed."""
        return sum(copy.size for copy in self.copies.values())

    def pack(self, incarnation: int, sequence: int) -> tuple[Copy, list[tuple[bytes, bytes]]]:
        """Return the future place of the index, and its chunks."""
        body = msgpack.packb([FORMAT_VERSION, [[name, *copy] for name, copy in self.copies.items()]])
        return pack(INDEX, NAME, incarnation, sequence, bytes(body))

    @staticmethod
    def read(manifest: Manifest, get: Callable[[bytes], bytes | None], most: int) -> Index:
        """Return the index that a manifest names; DamagedError if the table does not have it.

        `most`: bytes that it may decompress to.
        """
        data = unpack(INDEX, NAME, where(manifest), get, most)
        try:
            version, *rest = msgpack.unpackb(data, use_list=False)
            copies = {name: Copy(*copy) for name, *copy in rest[0]} if version == FORMAT_VERSION else {}
        except (ValueError, TypeError, IndexError, msgpack.UnpackException) as error:
            message = f"the index cannot be understood: {error!r}; something else wrote to the table"
            raise DamagedError(message) from error
        if version != FORMAT_VERSION:
            message = (
                f"snapshot format version={version} must be {FORMAT_VERSION}; run the release that wrote it"
            )
            raise OtherReleaseError(message)
        index = Index(copies)
        if len(index.copies) != manifest.units or index.size != manifest.size:
            message = f"the index has {len(index.copies)} units, its manifest has {manifest.units}"
            raise DamagedError(message)
        return index


def where(manifest: Manifest) -> Copy:
    return Copy(
        manifest.incarnation,
        manifest.sequence,
        manifest.index_chunks,
        manifest.index_crc,
        manifest.index_size,
    )


def index_keys(manifest: Manifest) -> set[bytes]:
    """Return the keys of the chunks of a snapshot's index."""
    return set(chunk_keys(INDEX, NAME, where(manifest)))
