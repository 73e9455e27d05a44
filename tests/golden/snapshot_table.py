"""Writes a snapshot as it lies in the table: ``python -m tests.golden.snapshot_table``.

``snapshot-table-<version>.json`` has the manifest of one snapshot as it lies in the journal, all chunks that
it needs by their keys, and the units that must be read from them, in their order (all hexadecimal, but for
the names of the units). Two snapshots wrote them, and one unit is in two chunks. Files of formats that were
released stay, and stay readable.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from streamapp.worker.journal.entry import Manifest, encode
from streamapp.worker.snapshots.chunks import UNIT, Copy, chunk_keys, pack
from streamapp.worker.snapshots.index import FORMAT_VERSION, Index
from tests.golden.versions import ascending
from tests.positions import at

HERE = Path(__file__).parent
BEFORE: Final = {"pending/0/0": bytes(range(256))}  # of the snapshot before this one, still valid
UNITS: Final = {"model/user-17/1": b"state " * 100, "model/größe/2": b"", "task//0": b"\x00\xff"}

Chunks = dict[bytes, bytes]


def files() -> list[Path]:
    return ascending(HERE.glob("snapshot-table-*.json"))


def file_of_now() -> Path:
    return HERE / f"snapshot-table-{FORMAT_VERSION}.json"


def snapshot() -> tuple[Manifest, Chunks]:
    """Return a manifest, and the chunks that it needs."""
    chunks: Chunks = {}
    kept = {name.encode(): in_two(name.encode(), data, chunks) for name, data in BEFORE.items()}
    fresh = {}
    for name, data in UNITS.items():
        fresh[name.encode()], items = pack(UNIT, name.encode(), 2, 7, data)
        chunks.update(items)
    index = Index(kept).after(fresh, ())
    where, items = index.pack(2, 7)
    chunks.update(items)
    n = len(index.copies)
    return Manifest(
        2,
        7,
        4,
        "here",
        at(controls=5, instances=30, labels=2),
        99,
        "{}",
        n,
        index.size,
        where.chunks,
        where.crc,
        where.size,
    ), chunks


def in_two(name: bytes, data: bytes, chunks: Chunks) -> Copy:
    """Put a unit into two chunks, as if it were longer than one may be; return where it lies."""
    copy, ((_, value),) = pack(UNIT, name, 2, 6, data)
    copy = copy._replace(chunks=2)
    chunks.update(zip(chunk_keys(UNIT, name, copy), (value[:100], value[100:]), strict=True))
    return copy


def body() -> dict[str, Any]:
    """Return what stands in the file."""
    manifest, chunks = snapshot()
    return {
        "manifest": encode(manifest).hex(),
        "chunks": {key.hex(): value.hex() for key, value in chunks.items()},
        "units": {name: data.hex() for name, data in (BEFORE | UNITS).items()},
    }


def main() -> None:
    text = json.dumps(body(), indent=1, ensure_ascii=False)
    file_of_now().write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
