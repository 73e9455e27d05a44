"""A restore by offsets and journal of a group: when it waits for them, and when it gives up."""

import re
import time
from collections.abc import Callable, Iterable
from typing import Self

import pytest

from streamapp.errors import NotYetError
from streamapp.worker.journal.entry import Reset, Skip
from streamapp.worker.restore import restorer
from streamapp.worker.restore.errors import RestoreError
from streamapp.worker.restore.log_reader import Offset
from streamapp.worker.restore.rebuild import Committed, RestoreRequest
from streamapp.worker.restore.restore_progress import RestoreProgress
from streamapp.worker.restore.restorer import AHEAD_TIMEOUT_S, TIMEOUT_S, Restorer, check_identity
from streamapp.worker.snapshots.snapshot_table import Chunks
from streamapp.worker.task.sources import Positions
from streamapp.worker.task.task_config import TaskConfig
from streamapp.worker.transport.membership import Membership
from tests.positions import at, committed
from tests.unit.streamapp.worker.restore.test_tail import Journal
from topics.definitions import TopicNames

NAMES = TopicNames("grove.")
IDS = {"grove.controls": "C", "grove.instances": "I", "grove.feature-values": "F", "grove.labels": "L"}
SOURCES = {topic: topic.removeprefix("grove.").replace("-", "_") for topic in IDS}


class Group:
    """A group with committed offsets and its journal, as clients see them."""

    def __init__(self, journal: Positions | None, offsets: Committed, *, anew: bool = False) -> None:
        """`journal`: where it ends, None: it is empty; `anew`: offsets were committed while nobody worked."""
        self.journal, self.anew = Journal(), anew
        self.committed: dict[str, int | None] = {
            str(source): position for source, position in offsets.items()
        }
        if journal is not None:
            self.journal.add(Reset(4, journal))
        self.is_open = False  # the first transaction of the journal
        self.is_late = False  # that transaction was committed after the journal was read
        self.pending = 0  # answers that a transaction holds back
        self.waited: list[float] = []  # seconds that an answer was waited for
        self.meanwhile: Callable[[], object] | None = None  # done once while offsets are waited for

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        """Nothing is open."""

    def reuse(self, abandoned: Callable[[], bool]) -> None:
        """Nothing is left of the restore before."""

    def release(self) -> None:
        """Nothing is read."""

    def close(self) -> None:
        """Nothing is open."""

    def check_led(self, topic: str, partition: int) -> None:
        """There is a leader."""

    def topic_ids(self, topics: Iterable[str]) -> dict[str, str]:
        return IDS

    def offsets(self, topics: Iterable[str], partition: int, timeout_s: float) -> dict[str, Offset]:
        self.waited.append(timeout_s)
        if self.meanwhile is not None:
            meanwhile, self.meanwhile = self.meanwhile, None
            meanwhile()
        if self.pending:
            self.pending -= 1
            message = "pending"
            raise NotYetError(message)
        return {
            topic: Offset(self.committed[SOURCES[topic]], topic_id, anew=self.anew)
            for topic, topic_id in IDS.items()
        }

    def of(self, topic: str, partition: int) -> "Group":
        assert (topic, partition) == ("grove.journal", 3)
        return self

    def has_open_transaction(self, topic: str, partition: int) -> bool:
        assert (topic, partition) == ("grove.journal", 3)
        return self.is_open

    def is_empty(self) -> bool:
        return not (self.journal.records or self.is_late)

    def __getattr__(self, name: str) -> object:
        """Return what a reader of the journal has."""
        return getattr(self.journal, name)


@pytest.fixture
def waited(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Return the clock, in seconds."""
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    return now


@pytest.fixture
def restorer_of(monkeypatch: pytest.MonkeyPatch) -> Callable[[Group], Restorer]:
    """Return a function that makes the restorer of a worker whose clients see this group."""

    def made(group: Group) -> Restorer:
        monkeypatch.setattr(restorer, "LogReader", lambda *given, **options: group)
        monkeypatch.setattr(restorer, "Identity", lambda kafka, first_s: group)
        return Restorer({}, "group", NAMES, TaskConfig())

    return made


Made = Callable[[Group], Restorer]


def wanted(generation: int, kept: Positions | None = None, partition: int = 3) -> RestoreRequest:
    chunks = Chunks(lambda key: None, list)
    member = Membership(generation, "me", None)
    progress = RestoreProgress(partition)
    return RestoreRequest(partition, at(), kept, chunks, lambda: False, progress, member)


def ahead() -> Group:
    return Group(at(instances=9), committed(instances=8))


def without_journal() -> Group:
    return Group(None, committed(instances=8))


@pytest.mark.parametrize(("journal", "timeout_s"), [(9, AHEAD_TIMEOUT_S), (7, TIMEOUT_S)])
def test_a_difference_that_stays_is_one(
    waited: list[float], restorer_of: Made, journal: int, timeout_s: float
) -> None:
    here = restorer_of(Group(at(instances=journal), committed(instances=8)))
    for _ in range(2):
        with pytest.raises(NotYetError):
            here.restore(wanted(1))
        waited[0] += timeout_s
    waited[0] += 1.0
    with pytest.raises(RestoreError):
        here.restore(wanted(1))


def test_a_difference_that_passes_is_none(waited: list[float], restorer_of: Made) -> None:
    group = ahead()
    here = restorer_of(group)
    with pytest.raises(NotYetError):
        here.restore(wanted(1))
    waited[0] += AHEAD_TIMEOUT_S + 1.0
    group.committed["instances"] = 9
    assert here.restore(wanted(1)).positions == at(instances=9)
    group.committed["instances"] = 8
    with pytest.raises(NotYetError):
        here.restore(wanted(1))


def test_what_was_seen_before_a_rebalance_does_not_count(waited: list[float], restorer_of: Made) -> None:
    here = restorer_of(ahead())
    with pytest.raises(NotYetError):
        here.restore(wanted(1))
    waited[0] += 1000.0
    with pytest.raises(NotYetError):
        here.restore(wanted(2))
    waited[0] += AHEAD_TIMEOUT_S + 1.0
    with pytest.raises(RestoreError):
        here.restore(wanted(2))


def test_offsets_without_any_journal_are_told_at_once(restorer_of: Made) -> None:
    said = "grove.journal is empty: they were committed by a release that kept no journal.*"
    with pytest.raises(RestoreError, match=said + "'grove models reset --partition 3'"):
        restorer_of(without_journal()).restore(wanted(1))


@pytest.mark.parametrize("was", ["is_open", "is_late"])
def test_a_journal_whose_first_transaction_is_open_or_was_just_now_is_waited_for(
    was: str, restorer_of: Made
) -> None:
    group = without_journal()
    setattr(group, was, True)
    with pytest.raises(NotYetError):
        restorer_of(group).restore(wanted(1))


def test_offsets_that_are_not_told_are_waited_for_longer_each_time(restorer_of: Made) -> None:
    group, kept = Group(at(instances=7), committed(instances=7)), at(instances=7)
    here, group.pending = restorer_of(group), 6
    for _ in range(6):
        with pytest.raises(NotYetError):
            here.restore(wanted(1, kept))
    for partition in (3, 3, 4):
        assert here.restore(wanted(1, kept, partition)).positions == kept
    assert group.waited == [1.0, 2.0, 4.0, 8.0, 10.0, 10.0, 10.0, 1.0, 1.0]


def test_two_restores_of_a_partition_may_be_told_its_offsets_at_once(restorer_of: Made) -> None:
    """One that nobody waits for any more is answered while the next one waits for the same."""
    group, kept = Group(at(instances=7), committed(instances=7)), at(instances=7)
    here = restorer_of(group)
    told: list[Positions] = []
    group.meanwhile = lambda: told.append(here.restore(wanted(2, kept)).positions)
    assert here.restore(wanted(1, kept)).positions == kept
    assert told == [kept]


@pytest.mark.parametrize(
    ("offsets", "says"),
    [
        (committed(), "the group group has no offsets, the journal ends at controls 2, instances 9"),
        (committed(), "'grove models restore --partition 3' lets it go on where the journal ends"),
        (
            committed(controls=2),
            "Kafka deletes offsets with their topic, so grove.instances was created again; stop",
        ),
        (committed(controls=2, instances=8), "offsets were reset"),
    ],
)
def test_an_offset_that_is_gone_is_no_missing_record(
    waited: list[float], restorer_of: Made, offsets: Committed, says: str
) -> None:
    here = restorer_of(Group(at(controls=2, instances=9), offsets))
    with pytest.raises(NotYetError):
        here.restore(wanted(1))
    waited[0] += AHEAD_TIMEOUT_S + 1.0
    with pytest.raises(RestoreError, match=re.escape(says)):
        here.restore(wanted(1))


def test_an_offset_of_a_topic_that_was_made_anew_is_none_of_the_new_one() -> None:
    ids = {"grove.controls": "C", "grove.instances": "new", "grove.feature-values": "F", "grove.labels": ""}
    with pytest.raises(
        RestoreError, match="topic grove.instances was created again: its id is new, offset 7 is"
    ):
        check_identity(3, ids, of(Offset(None, ""), Offset(7, "old"), Offset(7, "L")))
    check_identity(3, ids, of(Offset(0, "C"), Offset(7, ""), Offset(7, "L")))


def of(*offsets: Offset) -> dict[str, Offset]:
    found = dict(zip(("grove.controls", "grove.instances", "grove.labels"), offsets, strict=True))
    return found | {"grove.feature-values": Offset(None, "F")}


@pytest.mark.parametrize("anew", [False, True])
def test_a_task_is_kept_unless_somebody_changed_what_it_goes_on_with_while_it_slept(
    anew: bool, restorer_of: Made
) -> None:
    stands = at(controls=5, instances=60, labels=7)
    group = Group(stands, committed(controls=5, instances=60, labels=7), anew=anew)
    group.journal.add(Skip(4, "instances", 61, "I"))
    restored = restorer_of(group).restore(wanted(1, stands))
    assert restored.positions == stands
    assert (restored.task is not None) is anew
    assert [(each.source, each.offset) for each in restored.skips] == ([("instances", 61)] if anew else [])
