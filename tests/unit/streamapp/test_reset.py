"""Where a partition goes on after a reset or restore: offsets that are gone, logs that are other ones."""

from __future__ import annotations

from typing import Any

import pytest

from core.snapshot import STATE_VERSION
from streamapp.journal.entry import SOURCES, Entry, Positions, Reset, Skip
from streamapp.restore.errors import NotYetError
from streamapp.restore.log_reader import Offset
from streamapp.restore.reset import ResetError, Stand, stand
from tests.unit.streamapp.test_tail import Journal
from topics.definitions import TopicNames

NAMES = TopicNames("grove.")
IDS = ("C", "I", "L")
WHOLE = (0, 100)


class Kafka:
    """Logs of the sources, offsets of a group, a journal."""

    def __init__(self, offsets: tuple[Offset, ...], instances: tuple[int, int], journal: Journal) -> None:
        self.found = offsets
        self.logs = dict(zip(SOURCES, (WHOLE, instances, WHOLE), strict=True))
        self.journal = journal
        self.ids = IDS
        self.committed: Any = None
        self._topic = ""

    def offsets(self, topics: tuple[str, ...], partition: int) -> tuple[Offset, ...]:
        return self.found

    def topic_ids(self, topics: tuple[str, ...]) -> dict[str, str]:
        return dict(zip(topics, self.ids, strict=True))

    def of(self, topic: str, partition: int) -> Kafka:
        self._topic = topic
        return self

    def range(self) -> tuple[int, int]:
        return self.logs[self._topic.removeprefix(NAMES.prefix)]

    def open(self, topic: str, partition: int) -> None:
        assert topic == NAMES.journal
        self.journal.open(topic, partition)

    def to_end(self) -> Any:
        return self.journal.to_end()

    def commit(self, positions: dict[str, int], partition: int, topic_ids: dict[str, str]) -> None:
        self.committed = tuple(positions.values()), topic_ids

    def stand(self) -> Stand:
        stands = stand(self, self, NAMES, 0)  # type: ignore[arg-type]
        assert self.committed == (stands.positions, self.topic_ids(tuple(self.committed[1])))
        return stands


def journal(end: Positions | None) -> Journal:
    made = Journal()
    if end is not None:
        made.add(Entry(4, STATE_VERSION, "", (0, 0, 0), end, ()))
    return made


def offsets(*positions: int | None, ids: tuple[str, ...] = IDS) -> tuple[Offset, ...]:
    return tuple(Offset(at, "" if at is None else each) for at, each in zip(positions, ids, strict=True))


END = (5, 60, 7)


@pytest.mark.parametrize(
    ("committed", "instances", "expected"),
    [
        pytest.param(offsets(*END), WHOLE, END, id="all as it was"),
        pytest.param(offsets(*END), (70, 100), (5, 70, 7), id="retention took records"),
        pytest.param(offsets(*END), (0, 40), (5, 40, 7), id="the log lost its end"),
        pytest.param(offsets(*END, ids=("C", "old", "L")), (0, 40), (5, 0, 7), id="made anew, shorter"),
        pytest.param(offsets(*END, ids=("C", "old", "L")), WHOLE, (5, 0, 7), id="made anew, longer"),
        pytest.param(offsets(*END, ids=("C", "", "L")), (0, 40), (5, 40, 7), id="the id is not known"),
        pytest.param(offsets(5, None, 7), WHOLE, (5, 0, 7), id="the offset went with the topic"),
        pytest.param(offsets(5, 60, None), WHOLE, (5, 60, 0), id="one was never read"),
        pytest.param(offsets(None, None, None), (0, 40), (5, 0, 7), id="expired, and a log is shorter"),
    ],
)
def test_it_goes_on_at_the_committed_offsets_as_far_as_the_logs_are_the_same(
    committed: tuple[Offset, ...], instances: tuple[int, int], expected: Positions
) -> None:
    assert Kafka(committed, instances, journal(END)).stand() == Stand(expected, 4, is_end=False)


def test_without_offsets_it_goes_on_where_the_journal_ends() -> None:
    assert Kafka(offsets(None, None, None), WHOLE, journal(END)).stand() == Stand(END, 4, is_end=True)


def test_without_offsets_and_journal_it_begins_with_the_first_records() -> None:
    kafka = Kafka(offsets(None, None, None), (30, 100), journal(None))
    assert kafka.stand() == Stand((0, 30, 0), 0, is_end=False)


def test_what_is_not_known_yet_is_not_guessed() -> None:
    kafka = Kafka(offsets(*END), WHOLE, journal(END))

    def not_now(topics: tuple[str, ...]) -> dict[str, str]:
        message = "topic grove.instances: no answer"
        raise NotYetError(message)

    kafka.topic_ids = not_now  # type: ignore[method-assign, assignment]
    with pytest.raises(ResetError, match="partition 0: .*no answer.*; try again later"):
        kafka.stand()
    assert kafka.committed is None


def test_what_is_to_be_skipped_is_said_again_behind_a_reset_as_far_as_it_lies_ahead() -> None:
    said = journal(END)
    skips = [Skip(4, 1, 59, "I"), Skip(4, 1, 60, "I"), Skip(4, 2, 9, "L"), Skip(4, 2, 8, "old")]
    for each in (*skips, skips[1]):
        said.add(each)
    assert Kafka(offsets(*END), WHOLE, said).stand() == Stand(
        END, 4, is_end=False, skips=(skips[1], skips[2])
    )


def test_a_topic_that_was_made_anew_has_nothing_that_is_to_be_skipped() -> None:
    said = journal(END)
    said.add(Skip(4, 1, 70, "old"))
    stands = Kafka(offsets(*END, ids=("C", "old", "L")), WHOLE, said).stand()
    assert (stands.positions, stands.skips) == ((5, 0, 7), ())


def test_a_skip_is_no_place_where_the_journal_ends() -> None:
    said = journal(END)
    said.add(Reset(4, (6, 61, 8)))
    said.add(Skip(5, 1, 70, "I"))
    assert Kafka(offsets(None, None, None), WHOLE, said).stand() == Stand(
        (6, 61, 8), 5, is_end=True, skips=(Skip(5, 1, 70, "I"),)
    )
