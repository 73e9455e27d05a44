"""Where a partition goes on after a reset or restore: offsets that are gone, logs that are other ones."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from core.state_version import STATE_VERSION
from streamapp.errors import NotYetError
from streamapp.worker.journal.entry import Entry, Reset, Skip
from streamapp.worker.restore.log_reader import Offset
from streamapp.worker.restore.rebuild import Committed
from streamapp.worker.restore.reset import ResetError, StartingPoint, starting_point
from streamapp.worker.task.sources import Positions, source_topics
from tests.positions import at, committed
from tests.unit.streamapp.worker.restore.test_tail import Journal
from topics.definitions import TopicNames

NAMES = TopicNames("grove.")
IDS = ("C", "I", "F", "L")
WHOLE = (0, 100)


class Kafka:
    """Logs of the sources, offsets of a group, a journal."""

    def __init__(self, offsets: dict[str, Offset], instances: tuple[int, int], journal: Journal) -> None:
        self.found = offsets
        self.logs = dict.fromkeys(source_topics(NAMES).values(), WHOLE) | {NAMES.instances: instances}
        self.journal = journal
        self.ids = IDS
        self.committed: Any = None
        self._topic = ""

    def offsets(self, topics: Iterable[str], partition: int) -> dict[str, Offset]:
        return self.found

    def topic_ids(self, topics: Iterable[str]) -> dict[str, str]:
        return dict(zip(topics, self.ids, strict=True))

    def of(self, topic: str, partition: int) -> Kafka:
        self._topic = topic
        return self

    def range(self) -> tuple[int, int]:
        return self.logs[self._topic]

    def open(self, topic: str, partition: int) -> None:
        assert topic == NAMES.journal
        self.journal.open(topic, partition)

    def to_end(self) -> Any:
        return self.journal.to_end()

    def commit(
        self, positions: dict[str, int], partition: int, topic_ids: dict[str, str], count: int | None = None
    ) -> None:
        self.committed = positions, topic_ids

    def starting_point(self) -> StartingPoint:
        begin = starting_point(self, self, NAMES, 0)  # type: ignore[arg-type]
        positions, ids = self.committed
        assert positions == {topic: begin.positions[source] for source, topic in source_topics(NAMES).items()}
        assert ids == self.topic_ids(ids)
        return begin


def journal(end: Positions | None) -> Journal:
    made = Journal()
    if end is not None:
        made.add(Entry(4, STATE_VERSION, "", at(), end, ()))
    return made


def offsets(positions: Committed, ids: tuple[str, ...] = IDS) -> dict[str, Offset]:
    topics = source_topics(NAMES).values()
    each = zip(topics, positions.values(), ids, strict=True)
    return {topic: Offset(position, "" if position is None else id_) for topic, position, id_ in each}


END = at(controls=5, instances=60, labels=7)
NO_INSTANCES, NO_LABELS = committed(controls=5, labels=7), committed(controls=5, instances=60)


@pytest.mark.parametrize(
    ("found", "instances", "expected"),
    [
        pytest.param(offsets(END), WHOLE, END, id="all as it was"),
        pytest.param(
            offsets(END), (70, 100), at(controls=5, instances=70, labels=7), id="retention took records"
        ),
        pytest.param(
            offsets(END), (0, 40), at(controls=5, instances=40, labels=7), id="the log lost its end"
        ),
        pytest.param(
            offsets(END, ids=("C", "old", "F", "L")),
            (0, 40),
            at(controls=5, labels=7),
            id="made anew, shorter",
        ),
        pytest.param(
            offsets(END, ids=("C", "old", "F", "L")), WHOLE, at(controls=5, labels=7), id="made anew, longer"
        ),
        pytest.param(
            offsets(END, ids=("C", "", "F", "L")),
            (0, 40),
            at(controls=5, instances=40, labels=7),
            id="the id is not known",
        ),
        pytest.param(
            offsets(NO_INSTANCES),
            WHOLE,
            at(controls=5, labels=7),
            id="the offset went with the topic",
        ),
        pytest.param(
            offsets(NO_LABELS),
            WHOLE,
            at(controls=5, instances=60),
            id="one was never read",
        ),
        pytest.param(
            offsets(committed()), (0, 40), at(controls=5, labels=7), id="expired, and a log is shorter"
        ),
    ],
)
def test_it_goes_on_at_the_committed_offsets_as_far_as_the_logs_are_the_same(
    found: dict[str, Offset], instances: tuple[int, int], expected: Positions
) -> None:
    assert Kafka(found, instances, journal(END)).starting_point() == StartingPoint(expected, 4, is_end=False)


def test_without_offsets_it_goes_on_where_the_journal_ends() -> None:
    assert Kafka(offsets(committed()), WHOLE, journal(END)).starting_point() == StartingPoint(
        END, 4, is_end=True
    )


def test_without_offsets_and_journal_it_begins_with_the_first_records() -> None:
    kafka = Kafka(offsets(committed()), (30, 100), journal(None))
    assert kafka.starting_point() == StartingPoint(at(instances=30), 0, is_end=False)


def test_what_is_not_known_yet_is_not_guessed() -> None:
    kafka = Kafka(offsets(END), WHOLE, journal(END))

    def not_now(topics: Iterable[str]) -> dict[str, str]:
        message = "topic grove.instances: no answer"
        raise NotYetError(message)

    kafka.topic_ids = not_now  # type: ignore[method-assign]
    with pytest.raises(ResetError, match="partition 0: .*no answer.*; try again later"):
        kafka.starting_point()
    assert kafka.committed is None


def test_what_is_to_be_skipped_is_said_again_behind_a_reset_as_far_as_it_lies_ahead() -> None:
    said = journal(END)
    skips = [
        Skip(4, "instances", 59, "I"),
        Skip(4, "instances", 60, "I"),
        Skip(4, "labels", 9, "L"),
        Skip(4, "labels", 8, "old"),
    ]
    for each in (*skips, skips[1]):
        said.add(each)
    assert Kafka(offsets(END), WHOLE, said).starting_point() == StartingPoint(
        END, 4, is_end=False, skips=(skips[1], skips[2])
    )


def test_a_topic_that_was_made_anew_has_nothing_that_is_to_be_skipped() -> None:
    said = journal(END)
    said.add(Skip(4, "instances", 70, "old"))
    begin = Kafka(offsets(END, ids=("C", "old", "F", "L")), WHOLE, said).starting_point()
    assert (begin.positions, begin.skips) == (at(controls=5, labels=7), ())


def test_a_skip_is_no_place_where_the_journal_ends() -> None:
    said = journal(END)
    said.add(Reset(4, at(controls=6, instances=61, labels=8)))
    said.add(Skip(5, "instances", 70, "I"))
    assert Kafka(offsets(committed()), WHOLE, said).starting_point() == StartingPoint(
        at(controls=6, instances=61, labels=8), 5, is_end=True, skips=(Skip(5, "instances", 70, "I"),)
    )
