"""Who has left the group since the last rebalance, and whose transactions are therefore ended."""

from __future__ import annotations

from queue import SimpleQueue
from threading import Event

import pytest

from streamapp.worker.processing import abandoned_transactions
from streamapp.worker.processing.abandoned_transactions import AbandonedTransactions
from topics.errors import AbortedError, BrokerError

PATIENCE = 60


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


class Later:
    """A group whose coordinator is away for some attempts; what happens comes as events."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, failures: int) -> None:
        monkeypatch.setattr(abandoned_transactions, "FIRST_PAUSE_S", 0.001)
        self.members = {"a", "b"}
        self.failures = failures
        self.members_are_unknown = False
        self.events: SimpleQueue[str] = SimpleQueue()
        self.abandoned = AbandonedTransactions("a", self._look, self._end)
        self.abandoned.check_now(abort=False)
        self.members = {"a"}

    def _look(self) -> set[str]:
        if self.members_are_unknown:
            self._fail(BrokerError("no coordinator"))
        return self.members

    def _end(self, name: str) -> None:
        self._fail(AbortedError("the coordinator is away"))
        self.events.put(f"ended {name}")

    def _fail(self, error: BrokerError) -> None:
        if self.failures:
            self.failures -= 1
            self.events.put("failed")
            raise error

    def until(self, event: str) -> int:
        """Return how many attempts failed before an event."""
        n_failed = 0
        while (seen := self.events.get(timeout=PATIENCE)) != event:
            assert seen == "failed"
            n_failed += 1
        return n_failed


@pytest.mark.parametrize("members_are_unknown", [False, True])
def test_a_coordinator_that_is_away_is_tried_again(
    members_are_unknown: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    later = Later(monkeypatch, failures=5)
    later.members_are_unknown = members_are_unknown
    later.abandoned.check(abort=True)
    assert later.until("ended b") == 5
    later.members = {"a", "b"}
    assert later.abandoned.check_now(abort=True)
    later.members = {"a"}
    later.abandoned.check(abort=True)
    assert later.until("ended b") == 0, "the next one that leaves"


def test_a_member_that_is_back_ends_the_attempts(monkeypatch: pytest.MonkeyPatch) -> None:
    later = Later(monkeypatch, failures=1)
    assert not later.abandoned.check_now(abort=True)
    later.members = {"a", "b"}
    assert later.abandoned.check_now(abort=False)
    assert later.events.get() == "failed"
    assert later.events.empty(), "its transaction may be a new one"


def test_a_worker_that_ends_attempts_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    later = Later(monkeypatch, failures=10)

    def stopped() -> bool:
        later.events.put("ends")
        return True

    later.abandoned._stopped = stopped
    for _ in range(3):
        later.abandoned.check(abort=True)
        assert [later.events.get(timeout=PATIENCE) for _ in range(2)] == ["failed", "ends"]


def test_a_check_during_another_is_made_after_it() -> None:
    group = Group()
    group.see("a", "b", "c")
    busy, free = Event(), Event()
    ended: SimpleQueue[str] = SimpleQueue()

    def end(name: str) -> None:
        busy.set()
        free.wait(PATIENCE)
        ended.put(name)

    group.abandoned._end = end
    group.members = {"a", "c"}
    group.abandoned.check(abort=True)
    assert busy.wait(PATIENCE)
    group.members = {"a"}
    group.abandoned.check(abort=True)
    free.set()
    assert [ended.get(timeout=PATIENCE) for _ in range(2)] == ["b", "c"]
