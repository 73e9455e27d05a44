"""Readers are reused, unless something went wrong with them; idle ones are closed."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from streamapp.worker.restore.readers import Readers


class Reader:
    """One that says what is done with it."""

    def __init__(self, abandoned: Callable[[], bool]) -> None:
        self.abandoned = abandoned
        self.said: list[str] = []
        self.closed = threading.Event()

    def reuse(self, abandoned: Callable[[], bool]) -> None:
        self.abandoned = abandoned
        self.said.append("reused")

    def release(self) -> None:
        self.said.append("released")

    def close(self) -> None:
        self.said.append("closed")
        self.closed.set()


def yes() -> bool:
    return True


def no() -> bool:
    return False


def test_what_comes_back_is_reused() -> None:
    readers = Readers(Reader)
    with readers.borrow(no) as reader:
        first, second = reader(), reader()
        assert first is not second, "both are in use"
    with readers.borrow(yes) as reader:
        found = {reader(), reader()}
        third = reader()
    assert found == {first, second}
    assert third not in found
    assert first.abandoned is yes
    assert first.said == ["released", "reused", "released"]
    readers.close()
    assert first.said[-1] == second.said[-1] == third.said[-1] == "closed"


def test_two_restores_have_readers_of_their_own() -> None:
    readers = Readers(Reader)
    with readers.borrow(no) as reader:
        reader()
    with readers.borrow(no) as one, readers.borrow(no) as other:
        assert one() is not other()


def test_what_was_in_use_when_something_failed_is_not_used_again() -> None:
    readers = Readers(Reader)
    used: list[Reader] = []
    with pytest.raises(OSError, match="broken"), readers.borrow(no) as reader:
        used.append(reader())
        message = "broken"
        raise OSError(message)
    assert used[0].said == ["closed"]
    with readers.borrow(no) as reader:
        assert reader() is not used[0]


def test_what_nobody_wants_for_a_while_is_closed() -> None:
    readers = Readers(Reader, idle_s=0.0)
    with readers.borrow(no) as reader:
        used = reader()
    assert used.closed.wait(60)
