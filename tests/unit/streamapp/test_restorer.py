"""How long a restore waits for a journal and offsets that differ."""

import pytest

from streamapp.restore import restorer
from streamapp.restore.errors import NotYetError, RestoreError
from streamapp.restore.progress import Progress
from streamapp.restore.rebuild import EndMismatchError, Wanted
from streamapp.restore.restorer import AHEAD_PATIENCE_S, PATIENCE_S, Restorer
from streamapp.snapshots.table import Chunks
from streamapp.task.config import TaskConfig
from streamapp.transport.thread import Membership
from topics.definitions import TopicNames

AHEAD = EndMismatchError((0, 9, 0), (0, 8, 0))
BEHIND = EndMismatchError((0, 7, 0), (0, 8, 0))


@pytest.fixture
def waited(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Return the clock, in seconds."""
    now = [100.0]
    monkeypatch.setattr(restorer.time, "monotonic", lambda: now[0])
    return now


def wanted(generation: int) -> Wanted:
    chunks = Chunks(lambda key: None, list)
    member = Membership(generation, "me", None)
    return Wanted(3, (0, 0, 0), None, chunks, lambda: False, Progress(3), member)


@pytest.mark.parametrize(("difference", "patience"), [(AHEAD, AHEAD_PATIENCE_S), (BEHIND, PATIENCE_S)])
def test_a_difference_that_stays_is_one(
    waited: list[float], difference: EndMismatchError, patience: float
) -> None:
    here = Restorer({}, "group", TopicNames("grove."), TaskConfig())
    for _ in range(2):
        assert isinstance(here._wait(wanted(1), difference), NotYetError)
        waited[0] += patience
    waited[0] += 1.0
    assert isinstance(here._wait(wanted(1), difference), RestoreError)


def test_what_was_seen_before_a_rebalance_does_not_count(waited: list[float]) -> None:
    here = Restorer({}, "group", TopicNames("grove."), TaskConfig())
    assert isinstance(here._wait(wanted(1), AHEAD), NotYetError)
    waited[0] += 1000.0
    assert isinstance(here._wait(wanted(2), AHEAD), NotYetError)
    waited[0] += AHEAD_PATIENCE_S + 1.0
    assert isinstance(here._wait(wanted(2), AHEAD), RestoreError)
