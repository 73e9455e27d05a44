"""Who has left the group since the last rebalance, and whose transactions are therefore ended."""

from __future__ import annotations

from threading import Event

import pytest

from streamapp.worker.processing.abandoned_transactions import AbandonedTransactions
from topics.errors import BrokerError


class Group:
    """A group, and the workers whose transactions were ended."""

    def __init__(self) -> None:
        self.members: set[str] = set()
        self.ended: list[str] = []
        self.away = self.denied = False
        self.back: set[str] = set()  # who has come back by the time it is looked again
        self.abandoned = AbandonedTransactions("a", self._look, self._end)

    def _look(self) -> set[str]:
        if self.away:
            message = "the broker is away"
            raise BrokerError(message)
        members, self.members = self.members, self.members | self.back
        return members

    def _end(self, name: str) -> None:
        if self.denied:
            message = f"{name} is denied"
            raise BrokerError(message)
        self.ended.append(name)

    def see(self, *members: str, abort: bool = True) -> list[str]:
        """Return what was ended when these were members."""
        self.members, self.ended = set(members), []
        self.abandoned.check_now(abort)
        return self.ended


def test_who_has_gone_is_succeeded_once() -> None:
    group = Group()
    assert group.see("a", "b", "c", "d") == []
    assert group.see("a", "c") == ["b", "d"]
    assert group.see("a", "c") == []
    assert group.see("a", "b", "c") == []
    assert group.see("a", "c") == ["b"]


def test_who_inherits_nothing_leaves_it_to_those_that_do() -> None:
    group = Group()
    assert group.see("a", "b", abort=False) == []
    assert group.see("a", abort=False) == []
    assert group.see("a") == []


def test_what_is_not_known_now_is_seen_later(caplog: pytest.LogCaptureFixture) -> None:
    group = Group()
    group.see("a", "b")
    group.away = True
    assert group.see("a") == []
    assert "the members of the group are not known" in caplog.text
    group.away = False
    assert group.see("a") == ["b"]


def test_what_cannot_be_ended_is_told_and_the_others_are(caplog: pytest.LogCaptureFixture) -> None:
    group = Group()
    group.see("a", "b", "c")
    group.denied = True
    assert group.see("a") == []
    assert "left the group, stays open: b is denied" in caplog.text
    assert "left the group, stays open: c is denied" in caplog.text


def test_who_is_back_is_left_alone() -> None:
    group = Group()
    group.see("a", "b", "c")
    group.back = {"b"}
    assert group.see("a") == ["c"]


def test_our_own_absence_is_not_ended() -> None:
    group = Group()
    group.see("a", "b")
    assert group.see() == ["b"], "we were taken out of the group, and hold our own transaction"


def test_one_thread_is_enough() -> None:
    group = Group()
    group.see("a", "b")
    busy, free = Event(), Event()

    def end(name: str) -> None:
        busy.set()
        free.wait(60)

    group.abandoned._end = end
    group.members = {"a"}
    group.abandoned.check(abort=True)
    assert busy.wait(60)
    assert group.see("a") == [], "returns at once"
    free.set()
