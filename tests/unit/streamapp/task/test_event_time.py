"""The clock of a partition: the highest timestamp, unless one record alone says so."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamapp.task.event_time import EventTime

DAY = 86_400_000
YEAR = 365 * DAY
NOW = 1_700_000_000_000


def clocks_of(time: EventTime, timestamps: list[int]) -> list[int]:
    return [int(clock) for clock in time.advance(timestamps).clocks()]


def test_the_clock_is_the_highest_timestamp_and_never_goes_back() -> None:
    time = EventTime(DAY)
    assert clocks_of(time, [NOW, NOW + 5, NOW + 2, NOW + 7]) == [NOW, NOW + 5, NOW + 5, NOW + 7]
    assert clocks_of(time, [NOW - 3, NOW + 8]) == [NOW + 7, NOW + 8]
    assert (time.clock, time.jumps) == (NOW + 8, 0)


def test_a_single_jump_does_not_move_the_clock_and_is_counted() -> None:
    time = EventTime(DAY)
    assert clocks_of(time, [NOW, NOW + YEAR, NOW + 1]) == [NOW, NOW, NOW + 1]
    assert time.jumps == 1
    assert clocks_of(time, [NOW + YEAR, NOW + 2, NOW + YEAR]) == [NOW + 1, NOW + 2, NOW + 2]
    assert time.jumps == 3


def test_two_jumps_in_a_row_are_time_that_moved_on() -> None:
    time = EventTime(DAY)
    assert clocks_of(time, [NOW, NOW + 2 * DAY, NOW + 2 * DAY + 1]) == [NOW, NOW, NOW + 2 * DAY + 1]
    assert time.jumps == 1


@pytest.mark.parametrize("order", [(2 * DAY, 80 * YEAR), (80 * YEAR, 2 * DAY)])
def test_of_two_jumps_that_disagree_the_smaller_is_believed(order: tuple[int, int]) -> None:
    time = EventTime(DAY)
    time.advance([NOW])
    assert clocks_of(time, [NOW + order[0], NOW + order[1]])[-1] == NOW + 2 * DAY
    assert clocks_of(time, [NOW + 2 * DAY + 3]) == [NOW + 2 * DAY + 3]


def test_a_jump_of_exactly_the_limit_is_believed() -> None:
    time = EventTime(DAY)
    assert clocks_of(time, [NOW, NOW + DAY]) == [NOW, NOW + DAY]
    assert time.jumps == 0


def test_restore_brings_back_the_suspicion_as_well() -> None:
    time = EventTime(DAY)
    time.advance([NOW, NOW + 3 * DAY])
    state = time.state()
    assert clocks_of(time, [NOW + 3 * DAY]) == [NOW + 3 * DAY]
    time.restore(state)
    assert (time.clock, time.jumps) == (NOW, 1)
    assert clocks_of(time, [NOW + 3 * DAY]) == [NOW + 3 * DAY]


@given(
    timestamps=st.lists(st.integers(0, 50) | st.integers(0, 10_000), min_size=1, max_size=30),
    cuts=st.sets(st.integers(1, 29)),
)
def test_the_clock_does_not_depend_on_how_records_are_cut_into_runs(
    timestamps: list[int], cuts: set[int]
) -> None:
    whole, parts = EventTime(100), EventTime(100)
    expected = clocks_of(whole, timestamps)
    borders = [0, *sorted(cut for cut in cuts if cut < len(timestamps)), len(timestamps)]
    got: list[int] = []
    for start, stop in zip(borders, borders[1:], strict=False):
        got += clocks_of(parts, timestamps[start:stop])
    assert got == expected
    assert whole.state() == parts.state()
    assert all(a <= b for a, b in zip(got, got[1:], strict=False))
