"""How long a restore waits for a journal and offsets that differ."""

import time
from collections.abc import Iterable
from dataclasses import replace
from typing import ClassVar, Self

import pytest

from streamapp.errors import NotYetError
from streamapp.worker.journal.entry import Reset, Skip
from streamapp.worker.restore import restorer
from streamapp.worker.restore.errors import RestoreError
from streamapp.worker.restore.log_reader import Offset
from streamapp.worker.restore.progress import RestoreProgress
from streamapp.worker.restore.rebuild import Committed, EndMismatchError, RestoreRequest
from streamapp.worker.restore.restorer import AHEAD_TIMEOUT_S, TIMEOUT_S, Restorer, check_identity
from streamapp.worker.snapshots.table import Chunks
from streamapp.worker.task.config import TaskConfig
from streamapp.worker.transport.thread import Membership
from tests.positions import at, committed
from tests.unit.streamapp.worker.restore.test_tail import Journal
from topics.definitions import TopicNames

AHEAD = EndMismatchError(at(instances=9), at(instances=8))
BEHIND = EndMismatchError(at(instances=7), at(instances=8))


@pytest.fixture
def waited(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Return the clock, in seconds."""
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    return now


def wanted(generation: int) -> RestoreRequest:
    chunks = Chunks(lambda key: None, list)
    member = Membership(generation, "me", None)
    return RestoreRequest(3, at(), None, chunks, lambda: False, RestoreProgress(3), member)


@pytest.mark.parametrize(("difference", "timeout_s"), [(AHEAD, AHEAD_TIMEOUT_S), (BEHIND, TIMEOUT_S)])
def test_a_difference_that_stays_is_one(
    waited: list[float], difference: EndMismatchError, timeout_s: float
) -> None:
    here = Restorer({}, "group", TopicNames("grove."), TaskConfig())
    for _ in range(2):
        assert isinstance(here._wait(wanted(1), difference), NotYetError)
        waited[0] += timeout_s
    waited[0] += 1.0
    assert isinstance(here._wait(wanted(1), difference), RestoreError)


def test_what_was_seen_before_a_rebalance_does_not_count(waited: list[float]) -> None:
    here = Restorer({}, "group", TopicNames("grove."), TaskConfig())
    assert isinstance(here._wait(wanted(1), AHEAD), NotYetError)
    waited[0] += 1000.0
    assert isinstance(here._wait(wanted(2), AHEAD), NotYetError)
    waited[0] += AHEAD_TIMEOUT_S + 1.0
    assert isinstance(here._wait(wanted(2), AHEAD), RestoreError)


def test_offsets_without_any_journal_are_told_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    here = Restorer({}, "group", TopicNames("grove."), TaskConfig())
    here._identity = Log()  # type: ignore[assignment]
    monkeypatch.setattr(restorer, "LogReader", lambda *given: Log())
    failure = here._wait(wanted(1), EndMismatchError(None, at(instances=8)))
    assert isinstance(failure, RestoreError)
    assert "grove.journal is empty: they were committed by a release that kept no journal" in str(failure)
    assert "'grove models reset --partition 3'" in str(failure)


@pytest.mark.parametrize("was", ["open", "committed"])
def test_a_journal_whose_first_transaction_is_open_or_was_just_now_is_waited_for(
    was: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = Restorer({}, "group", TopicNames("grove."), TaskConfig())
    here._identity = Log(is_open=was == "open")  # type: ignore[assignment]
    monkeypatch.setattr(restorer, "LogReader", lambda *given: Log(records=was == "committed"))
    assert isinstance(here._wait(wanted(1), EndMismatchError(None, at(instances=8))), NotYetError)


class Pending:
    """A reader of offsets that a transaction holds back."""

    def __init__(self) -> None:
        self.waited: list[float] = []
        self.ends = False

    def offsets(self, topics: Iterable[str], partition: int, timeout_s: float) -> dict[str, Offset]:
        self.waited.append(timeout_s)
        if not self.ends:
            message = "pending"
            raise NotYetError(message)
        return {"grove.instances": Offset(7, "I")}


def test_offsets_that_are_not_told_are_waited_for_longer_each_time() -> None:
    here, reader = Restorer({}, "group", TopicNames("grove."), TaskConfig()), Pending()
    for _ in range(6):
        with pytest.raises(NotYetError):
            here._offsets(reader, 3)  # type: ignore[arg-type]
    reader.ends = True
    for partition in (3, 3, 4):
        assert here._offsets(reader, partition) == {"grove.instances": Offset(7, "I")}  # type: ignore[arg-type]
    assert reader.waited == [1.0, 2.0, 4.0, 8.0, 10.0, 10.0, 10.0, 1.0, 1.0]


def test_two_restores_of_a_partition_may_be_told_its_offsets_at_once() -> None:
    here = Restorer({}, "group", TopicNames("grove."), TaskConfig())
    told: list[dict[str, Offset]] = []

    class Answered:
        """One that nobody waits for any more, answered while the next one waits for the same."""

        def offsets(self, topics: Iterable[str], partition: int, timeout_s: float) -> dict[str, Offset]:
            if not told:
                told.append({})
                told.append(here._offsets(self, partition))  # type: ignore[arg-type]
            return {"grove.instances": Offset(7, "I")}

    assert here._offsets(Answered(), 3) == {"grove.instances": Offset(7, "I")}  # type: ignore[arg-type]
    assert told[1] == {"grove.instances": Offset(7, "I")}


class Log:
    """The journal as a client sees it."""

    def __init__(self, *, is_open: bool = False, records: bool = False) -> None:
        self._is_open = is_open
        self._records = records

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        """Nothing is open."""

    def has_open_transaction(self, topic: str, partition: int) -> bool:
        assert (topic, partition) == ("grove.journal", 3)
        return self._is_open

    def of(self, topic: str, partition: int) -> Self:
        assert (topic, partition) == ("grove.journal", 3)
        return self

    def is_empty(self) -> bool:
        assert not self._is_open
        return not self._records


@pytest.mark.parametrize(
    ("offsets", "says"),
    [
        (committed(), "the group group has no offsets, the journal ends at controls 2, instances 9"),
        (committed(), "'grove models restore --partition 3' lets it go on where the journal ends"),
        (
            committed(controls=2),
            "Kafka deletes offsets with their topic, so grove.instances was made anew; stop",
        ),
        (committed(controls=2, instances=8), "offsets were reset"),
    ],
)
def test_an_offset_that_is_gone_is_no_missing_record(
    waited: list[float], offsets: Committed, says: str
) -> None:
    here, difference = (
        Restorer({}, "group", TopicNames("grove."), TaskConfig()),
        EndMismatchError(at(controls=2, instances=9), offsets),
    )
    assert isinstance(here._wait(wanted(1), difference), NotYetError)
    waited[0] += AHEAD_TIMEOUT_S + 1.0
    failure = here._wait(wanted(1), difference)
    assert isinstance(failure, RestoreError)
    assert says in str(failure)


def test_an_offset_of_a_topic_that_was_made_anew_is_none_of_the_new_one() -> None:
    ids = {"grove.controls": "C", "grove.instances": "new", "grove.feature-values": "F", "grove.labels": ""}
    with pytest.raises(RestoreError, match="topic grove.instances was made anew: its id is new, offset 7 is"):
        check_identity(3, ids, of(Offset(None, ""), Offset(7, "old"), Offset(7, "L")))
    check_identity(3, ids, of(Offset(0, "C"), Offset(7, ""), Offset(7, "L")))


def of(*offsets: Offset) -> dict[str, Offset]:
    found = dict(zip(("grove.controls", "grove.instances", "grove.labels"), offsets, strict=True))
    return found | {"grove.feature-values": Offset(None, "F")}


class Stands:
    """A group that stands at 5, 60 and 7, to which its journal leads."""

    ids: ClassVar = {
        "grove.controls": "C",
        "grove.instances": "I",
        "grove.feature-values": "F",
        "grove.labels": "L",
    }

    def __init__(self, *, anew: bool) -> None:
        self.anew, self.journal = anew, Journal()
        self.journal.add(Reset(4, at(controls=5, instances=60, labels=7)))
        self.journal.add(Skip(4, "instances", 61, "I"))

    def release(self) -> None:
        """Nothing is read."""

    def close(self) -> None:
        """Nothing is open."""

    def check_led(self, topic: str, partition: int) -> None:
        """There is a leader."""

    def offsets(self, topics: Iterable[str], partition: int, timeout_s: float) -> dict[str, Offset]:
        return of(Offset(5, "C"), Offset(60, "I", anew=self.anew), Offset(7, "L"))

    def topic_ids(self, topics: Iterable[str]) -> dict[str, str]:
        return self.ids

    def of(self, topic: str, partition: int) -> Journal:
        return self.journal


@pytest.mark.parametrize("anew", [False, True])
def test_a_task_is_kept_unless_somebody_changed_what_it_goes_on_with_while_it_slept(
    anew: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, kafka = Restorer({}, "group", TopicNames("grove."), TaskConfig()), Stands(anew=anew)
    here._identity = kafka  # type: ignore[assignment]
    monkeypatch.setattr(restorer, "LogReader", lambda *given: kafka)
    restored = here.restore(replace(wanted(1), kept_positions=at(controls=5, instances=60, labels=7)))
    assert restored.positions == at(controls=5, instances=60, labels=7)
    assert (restored.task is not None) is anew
    assert [(each.source, each.offset) for each in restored.skips] == ([("instances", 61)] if anew else [])
