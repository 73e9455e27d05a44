"""Readers are lent anew, unless something went wrong with them; when nobody wants them they are closed."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from streamapp.restore.readers import Readers


class Reader:
    """One that says what is done with it."""

    def __init__(self, abandoned: Callable[[], bool]) -> None:
        self.abandoned = abandoned
        self.said: list[str] = []
        self.closed = threading.Event()

    def lend(self, abandoned: Callable[[], bool]) -> None:
        self.abandoned = abandoned
        self.said.append("lent")

    def rest(self) -> None:
        self.said.append("rests")

    def close(self) -> None:
        self.said.append("closed")
        self.closed.set()


def yes() -> bool:
    return True


def no() -> bool:
    return False


def test_what_comes_back_is_lent_anew() -> None:
    readers = Readers(Reader)
    with readers.lent(no) as reader:
        first, second = reader(), reader()
        assert first is not second, "both are in use"
    with readers.lent(yes) as reader:
        found = {reader(), reader()}
        third = reader()
    assert found == {first, second}
    assert third not in found
    assert first.abandoned is yes
    assert first.said == ["rests", "lent", "rests"]
    readers.close()
    assert first.said[-1] == second.said[-1] == third.said[-1] == "closed"


def test_two_restores_have_readers_of_their_own() -> None:
    readers = Readers(Reader)
    with readers.lent(no) as reader:
        reader()
    with readers.lent(no) as one, readers.lent(no) as other:
        assert one() is not other()


def test_what_was_in_use_when_something_failed_is_not_used_again() -> None:
    readers = Readers(Reader)
    used: list[Reader] = []
    with pytest.raises(OSError, match="broken"), readers.lent(no) as reader:
        used.append(reader())
        message = "broken"
        raise OSError(message)
    assert used[0].said == ["closed"]
    with readers.lent(no) as reader:
        assert reader() is not used[0]


def test_what_nobody_wants_for_a_while_is_closed() -> None:
    readers = Readers(Reader, idle_s=0.0)
    with readers.lent(no) as reader:
        used = reader()
    assert used.closed.wait(60)
