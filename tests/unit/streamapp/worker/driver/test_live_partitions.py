"""The ends of the logs of live partitions, as the driver reports them turn after turn."""

import weakref

from faust.types import TP

from streamapp.worker.driver.live_partitions import LivePartitions
from streamapp.worker.transport.runs import TimeOrder

TOPICS = ("instances", "labels")


def live(*partitions: int) -> LivePartitions:
    parts = LivePartitions()
    parts.orders = {
        number: TimeOrder(number, [(topic, 0) for topic in TOPICS], skew_ms=0, max_idle_ms=0, max_records=100)
        for number in partitions
    }
    return parts


def places(parts: LivePartitions) -> list[TP]:
    return [TP(*ahead.place) for ahead in parts.topics]


def ends(at: int, *partitions: int) -> dict[TP, int]:
    return {TP(topic, number): at for topic in TOPICS for number in partitions}


def test_a_turn_without_news_reports_the_same_mapping_again() -> None:
    parts = live(0, 1)
    parts.note_log_ends(ends(5, 0, 1))
    before = parts.log_ends()
    assert before == ends(5, 0, 1)
    parts.note_log_ends(ends(5, 0, 1))
    assert parts.log_ends() is before


def test_every_change_is_reported() -> None:
    parts = live(0, 1)
    assert parts.log_ends() == {}, "the broker has not answered yet"
    parts.note_log_ends(ends(5, 0, 1))
    parts.note_log_ends({TP("labels", 1): 6})  # the only one that was requested
    assert parts.log_ends() == ends(5, 0, 1) | {TP("labels", 1): 6}
    del parts.orders[0]  # its partition is stopped
    assert parts.log_ends() == ends(5, 1) | {TP("labels", 1): 6}
    parts.end_epoch()
    assert parts.log_ends() == {}


def test_a_partition_that_comes_to_life_gets_the_ends_that_are_reported_for_it() -> None:
    parts = live(0)
    parts.note_log_ends(ends(5, 0))
    parts.orders |= live(1).orders
    assert parts.log_ends() == ends(5, 0)
    parts.note_log_ends(ends(5, 0, 1))
    assert parts.log_ends() == ends(5, 0, 1)
    parts.end_epoch()
    parts.orders |= live(0).orders
    parts.note_log_ends(ends(5, 0))
    assert parts.orders[0].topics["labels"].log_end == 5


def test_one_partition_takes_the_place_of_another() -> None:
    """Their number stays the same, and so does the number of their topics."""
    parts = live(0, 1)
    parts.note_log_ends(ends(5, 0, 1))
    assert places(parts) == [*ends(5, 0), *ends(5, 1)]
    del parts.orders[0]
    parts.orders |= live(2).orders
    assert sorted(places(parts)) == sorted(ends(0, 1, 2))
    assert parts.log_ends() == ends(5, 1)
    parts.note_log_ends(ends(7, 1, 2))
    assert parts.log_ends() == ends(7, 1, 2)


def test_fetched_records_are_forgotten_with_their_assignment() -> None:
    parts = live(0)
    assert parts.is_at_rest
    order = weakref.ref(parts.orders[0])
    parts.end_epoch()
    assert order() is None
