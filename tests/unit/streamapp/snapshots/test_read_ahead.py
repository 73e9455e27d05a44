"""Items that are read in a thread: in order, no more than there may be, and the thread always ends."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from streamapp.snapshots.read_ahead import ReadAhead
from streamapp.snapshots.table import ClosedError

BATCH, AHEAD = 10, 40


def reading(items: Iterator[int], size: int) -> ReadAhead[int]:
    return ReadAhead(items, lambda item: size, BATCH, AHEAD)


def threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "read-ahead"]


@pytest.mark.parametrize("n", [0, 1, 3, 4, 1000])
@pytest.mark.parametrize("size", [0, 1, 3, BATCH, AHEAD, 10 * AHEAD])
def test_all_items_come_in_order(n: int, size: int) -> None:
    with reading(iter(range(n)), size) as items:
        assert list(items) == list(range(n))
        assert list(items) == [], "once"
    assert threads() == []


class Source:
    """Numbers without end; says how many were asked for."""

    def __init__(self) -> None:
        self.made = 0
        self.taken = 0
        self.furthest = 0
        self.changed = threading.Condition()
        self.is_closed = False

    def __iter__(self) -> Iterator[int]:
        try:
            while True:
                with self.changed:
                    self.made += 1
                    self.furthest = max(self.furthest, self.made - self.taken)
                    self.changed.notify_all()
                yield self.made
        finally:
            self.is_closed = True

    def take(self, n: int) -> None:
        """Let n items be taken, and so many be made as may be."""
        with self.changed:
            self.taken += n
            assert self.changed.wait_for(lambda: self.made - self.taken == AHEAD // BATCH + 1, 60)


def test_no_more_is_read_than_there_may_be() -> None:
    source = Source()
    with reading(iter(source), BATCH) as items:
        for item in items:
            source.take(1)
            if item == 100:
                break
    # What fills the stretch, one in the thread's hands, and one that was taken and is not counted yet.
    assert source.furthest <= AHEAD // BATCH + 2
    assert threads() == []


@pytest.mark.parametrize("error", [ClosedError(), KeyError("of any kind"), GeneratorExit(), SystemExit(3)])
@pytest.mark.parametrize("at", [0, 1, 3, 4, 100])
def test_an_error_comes_in_its_place(at: int, error: BaseException) -> None:
    def source() -> Iterator[int]:
        yield from range(at)
        raise error

    seen = []
    with reading(source(), 3) as items, pytest.raises(type(error)) as raised:
        for item in items:
            seen.append(item)
    assert raised.value is error
    assert seen == list(range(at))
    assert threads() == []


@pytest.mark.parametrize("taken", [0, 1, 50])
def test_the_thread_ends_when_nobody_takes_any_more(taken: int) -> None:
    source = Source()

    class GaveUpError(Exception):
        pass

    def give_up() -> None:
        with reading(iter(source), BATCH) as items:
            for _ in range(taken):
                next(iter(items))
            source.take(taken)  # now it waits for room
            (thread,) = threads()
            assert thread.is_alive()
            raise GaveUpError

    with pytest.raises(GaveUpError):
        give_up()
    assert threads() == []
    assert source.is_closed


def test_the_thread_ends_with_the_item_that_it_is_at() -> None:
    begun, let_go = threading.Event(), threading.Event()

    def source() -> Iterator[int]:
        for number in range(1000):
            begun.set()
            assert let_go.wait(60)
            yield number

    with reading(source(), BATCH):
        assert begun.wait(60)
        (thread,) = threads()
        giving_up = threading.Timer(0.0, let_go.set)
        giving_up.start()
    assert not thread.is_alive()
    giving_up.join()
