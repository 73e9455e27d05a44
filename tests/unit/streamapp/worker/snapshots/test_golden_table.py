"""Snapshots that a release left in the table can be read for ever."""

from __future__ import annotations

import json
from pathlib import Path

import msgpack
import pytest

from streamapp.worker.journal.entry import Manifest, decode
from streamapp.worker.snapshots.chunks import INDEX, UNIT, DamagedError, unpack
from streamapp.worker.snapshots.index import NAME, Index, where
from tests.golden import snapshot_table as golden
from tests.golden.snapshot_table import Chunks

MOST = 1 << 20
"""Bytes that a unit of the files may have."""


def read(path: Path) -> tuple[Manifest, Chunks, dict[str, str]]:
    """Return manifest, chunks and units (hexadecimal) of a file."""
    body = json.loads(path.read_text(encoding="utf-8"))
    manifest = decode(bytes.fromhex(body["manifest"]), partition=3)
    assert isinstance(manifest, Manifest)
    chunks = {bytes.fromhex(key): bytes.fromhex(value) for key, value in body["chunks"].items()}
    return manifest, chunks, body["units"]


def units(manifest: Manifest, chunks: Chunks) -> dict[str, str]:
    index = Index.read(manifest, chunks.get, MOST)
    return {
        name.decode(): unpack(UNIT, name, copy, chunks.get, MOST).hex() for name, copy in index.copies.items()
    }


def shape(manifest: Manifest, chunks: Chunks) -> tuple[int, list[tuple[object, ...]]]:
    """Return the index without checksums and sizes: those are the compressor's."""
    version, copies = msgpack.unpackb(unpack(INDEX, NAME, where(manifest), chunks.get, MOST), use_list=False)
    return version, [(len(each), *each[:4]) for each in copies]


@pytest.mark.parametrize("path", golden.files(), ids=lambda path: path.stem)
def test_what_a_release_has_written_is_read_for_ever(path: Path) -> None:
    manifest, chunks, expected = read(path)
    found = units(manifest, chunks)
    assert list(found.items()) == list(expected.items())


@pytest.mark.parametrize("path", golden.files(), ids=lambda path: path.stem)
def test_each_chunk_of_a_file_is_needed(path: Path) -> None:
    manifest, chunks, _ = read(path)
    for key in chunks:
        with pytest.raises(DamagedError, match="chunks are missing"):
            units(manifest, {other: value for other, value in chunks.items() if other != key})


def test_the_format_that_is_written_has_a_file() -> None:
    """Whoever changes what is written raises the version and leaves the old file in its place."""
    assert golden.file_of_now() in golden.files()
    manifest, chunks, expected = read(golden.file_of_now())
    today = golden.snapshot()
    assert units(*today) == expected
    assert set(today[1]) == set(chunks)
    assert shape(*today) == shape(manifest, chunks)
