"""Words that lie on a disk: as they were put, in places that are used again, gone with their task."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import numpy as np
import pytest

from streamapp.worker.task.models.eviction import swap_file as module
from streamapp.worker.task.models.eviction.swap_file import UNIT, SwapFile, SwapFileError, room_of


def words(n: int, first: int = 1) -> np.ndarray:
    return np.arange(first, first + n, dtype=np.int64)


def test_words_come_back_as_they_were(tmp_path: Path) -> None:
    swap = SwapFile(tmp_path)
    sizes = [1, 31, 32, 33, 500, 5000, 100_000]
    for slot, n in enumerate(sizes):
        swap.write(slot, words(n, slot))
    for slot, n in reversed(list(enumerate(sizes))):
        assert swap.read(slot).tolist() == words(n, slot).tolist()
        now = swap.read_now(slot)
        assert now is None or now.tolist() == words(n, slot).tolist()
    assert swap.read(3).ctypes.data % 64 == 0
    assert not swap.holds(99)
    swap.close()


def test_the_file_has_no_name(tmp_path: Path) -> None:
    swap = SwapFile(tmp_path)
    swap.write(0, words(10))
    assert list(tmp_path.iterdir()) == []
    swap.close()


def test_places_are_used_again_and_are_at_most_a_quarter_too_large(tmp_path: Path) -> None:
    for size in [*range(8, 5000, 8), *range(5000, 3_000_000, 77_777)]:
        assert size <= room_of(size) <= max(1.25 * size, size + UNIT)
    swap = SwapFile(tmp_path)
    for slot in range(20):
        swap.write(slot, words(100))
    size = swap.size
    for number in range(200):
        swap.write(number % 20, words(100 + number % 20, number))
        swap.drop((number + 7) % 20)
        swap.write((number + 7) % 20, words(100))
    assert swap.size == size
    swap.drop(3)
    assert not swap.holds(3)
    swap.close()


def test_words_that_were_altered_are_an_error(tmp_path: Path) -> None:
    swap = SwapFile(tmp_path)
    swap.write(0, words(10))
    assert swap._file is not None
    os.pwrite(swap._file, b"x", 17)
    with pytest.raises(SwapFileError, match="slot 0: must be what was written"):
        swap.read(0)
    os.ftruncate(swap._file, 5)
    with pytest.raises(SwapFileError, match="must be what was written"):
        swap.read(0)
    swap.close()


def test_a_disk_that_takes_nothing_leaves_the_place_empty(tmp_path: Path) -> None:
    swap = SwapFile(tmp_path / "not there")
    with pytest.raises(OSError, match="No such file"):
        swap.write(0, words(10))
    assert not swap.holds(0)
    (tmp_path / "not there").mkdir()
    swap.write(0, words(10))
    assert swap.read(0).tolist() == words(10).tolist()
    swap.close()


def test_a_closed_shelf_gives_and_takes_nothing(tmp_path: Path) -> None:
    swap = SwapFile(tmp_path)
    swap.write(0, words(10))
    swap.close()
    swap.close()
    with pytest.raises(SwapFileError, match="given up"):
        swap.read(0)
    with pytest.raises(SwapFileError, match="given up"):
        swap.write(0, words(10))


def test_a_file_system_that_cannot_say_whether_it_waits_is_read_in_the_other_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    swap = SwapFile(tmp_path)
    swap.write(0, words(10))
    real, errors = os.preadv, [11, 95]

    def preadv(file: int, buffers: list[memoryview], offset: int, flags: int = 0) -> int:
        if flags and errors:
            number = errors.pop(0)
            raise OSError(number, os.strerror(number))
        return real(file, buffers, offset, flags)

    monkeypatch.setattr(os, "preadv", preadv)
    assert swap.read_now(0) is None
    if module._NO_WAIT:
        assert not swap._waits
        assert swap.read_now(0) is None
        assert swap._waits
    assert swap.read(0).tolist() == words(10).tolist()
    swap.close()


def test_a_read_and_a_close_do_not_meet(tmp_path: Path) -> None:
    """The number of a closed file may be another file's at once."""
    swap = SwapFile(tmp_path)
    for slot in range(8):
        swap.write(slot, words(20_000, slot))
    wrong: list[object] = []
    reading = threading.Event()

    def read() -> None:
        while True:
            for slot in range(8):
                try:
                    found = swap.read(slot)
                except SwapFileError:
                    return
                if found[0] != slot:
                    wrong.append(found[0])
                reading.set()

    thread = threading.Thread(target=read)
    thread.start()
    assert reading.wait(30)
    swap.close()
    other = os.open(tmp_path / "other", os.O_RDWR | os.O_CREAT)
    thread.join(30)
    os.close(other)
    assert not thread.is_alive()
    assert wrong == []
