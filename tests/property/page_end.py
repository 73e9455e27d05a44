"""A program that has kernels read bytes which end where a page ends that nobody may read beyond.

    python -m tests.property.page_end records|checksum|json|packed|beyond

Whoever reads one byte more is killed. `beyond` does so, to show it.
"""

from __future__ import annotations

import ctypes
import mmap
import random
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tests.property import test_columnar, test_packed_forms
from tests.property.test_record_batches import batch
from topics.codecs.json.compiled.rows import scan
from topics.codecs.json.compiled.shape import INSTANCES, shape_of
from topics.codecs.json.compiled.shapes import _Known
from topics.codecs.limits import Limits
from topics.codecs.packed.compiled.packed import PARTS
from topics.codecs.packed.compiled.packed import read_records as read_packed
from topics.codecs.packed.layout import INSTANCE, LABEL
from topics.columns.checksum import PART, TABLES, crc32c
from topics.columns.plain_batches import (
    IS_CHECKED,
    MOST_BYTES,
    MOST_OF_BATCH,
    MOST_RECORDS,
    SEARCH_FIELDS,
    find_plain,
)
from topics.columns.record_batches import BATCH_COLUMNS, read_records
from topics.columns.spans import ROWS
from topics.fetching.batches import HEAD

PAGES = 16
SIZE = PAGES * mmap.PAGESIZE


class PageEnd:
    """Pages of memory, with one behind them that must not be touched."""

    def __init__(self) -> None:
        self._pages = mmap.mmap(-1, SIZE + mmap.PAGESIZE)
        place = ctypes.c_char.from_buffer(self._pages)
        self._address = ctypes.addressof(place)
        self.all = np.frombuffer(self._pages, dtype=np.uint8)[:SIZE]
        libc = ctypes.CDLL(None, use_errno=True)
        protect = libc.mprotect(ctypes.c_void_p(self._address + SIZE), ctypes.c_size_t(mmap.PAGESIZE), 0)
        if protect != 0:
            raise OSError(ctypes.get_errno(), "mprotect")

    def holding(self, data: bytes) -> Any:
        """Return the bytes, uint8, the last of which is the last one that may be read."""
        room = self.all[SIZE - len(data) :]
        room[:] = np.frombuffer(data, dtype=np.uint8)
        return room

    def read_beyond(self) -> int:
        return ctypes.string_at(self._address + SIZE, 1)[0]


def cuts(data: bytes) -> Iterator[bytes]:
    """Yield what the bytes begin with, of each length."""
    return (data[:n] for n in range(len(data) + 1))


def records(pages: PageEnd) -> None:
    headers = [("h", b"1"), ("content-type", None)]
    whole = batch(0, [(1, 5, b"key", b"value" * 30, headers), (2, 6, None, b"", [])], 0, 0)
    for data in cuts(whole * 2):
        search = np.zeros(SEARCH_FIELDS, dtype=np.int64)
        search[[MOST_RECORDS, MOST_OF_BATCH, MOST_BYTES]] = 1 << 30
        search[IS_CHECKED] = 1
        found = find_plain(pages.holding(data), TABLES, search, np.empty((2, BATCH_COLUMNS), dtype=np.int64))
        assert found == len(data) // len(whole)
    raw = whole[HEAD.size :]
    for data in (*cuts(raw), *(b"\xff" * n for n in range(20))):
        table = np.array([[0, len(data), 2, 0, 0, 1, 0]], dtype=np.int64)
        assert table.shape[1] == BATCH_COLUMNS
        read_records(pages.holding(data), table, np.empty((ROWS, 2), dtype=np.int64))


def checksum(pages: PageEnd) -> None:
    for size in (*range(100), *(3 * PART * k + d for k in (1, 2) for d in range(-20, 20))):
        crc32c(pages.holding(bytes(size)), 0, size, TABLES)


def json(pages: PageEnd) -> None:
    rng = random.Random(1)
    for seed in range(200):
        producer = test_columnar.Producer(rng, 0.3 if seed % 2 else 0.0)
        whole = [producer.record() for _ in range(4)]
        shapes = (shape_of_or_none(value) for value in whole)
        known = _Known.of(tuple({shape for shape in shapes if shape is not None}))
        if not known.shapes:
            continue
        for value in whole:
            for data in cuts(value):
                cells = np.empty((1, known.width), dtype=np.int64)
                kinds = np.empty((1, known.width), dtype=np.uint8)
                where = np.zeros(1, dtype=np.int64), np.array([len(data)], dtype=np.int64)
                shape = np.empty(1, dtype=np.int16)
                scan(pages.holding(data), *where, *known.tables, shape, cells, kinds)


def shape_of_or_none(value: bytes) -> Any:
    try:
        return shape_of(value, INSTANCES, Limits())
    except (ValueError, IndexError):  # shapes are learned of good records only
        return None


def packed(pages: PageEnd) -> None:
    rng = random.Random(2)
    for _ in range(200):
        value = test_packed_forms.Producer(rng, rng.choice([0.0, 0.5])).record()
        for data in (*cuts(value), value + b"\xf0"):
            where = np.zeros(1, dtype=np.int64), np.array([len(data)], dtype=np.int64)
            buffer = pages.holding(data)
            for kind in (INSTANCE, LABEL):
                rows, form, others = np.zeros(1, np.int64), np.zeros(3, np.int64), np.empty(2, np.int64)
                for count in (0, 1):
                    values = np.empty((count, int(form[1])), dtype=np.int64)
                    parts = np.empty((count, PARTS), dtype=np.int64)
                    read_packed(buffer, *where, kind, 64, rows, form, values, parts, others)


def beyond(pages: PageEnd) -> None:
    pages.read_beyond()


PROGRAMS: dict[str, Callable[[PageEnd], None]] = {
    module.__name__: module for module in (records, checksum, json, packed, beyond)
}

if __name__ == "__main__":
    PROGRAMS[sys.argv[1]](PageEnd())
    print("survived")
