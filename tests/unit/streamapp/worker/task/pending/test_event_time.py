"""The clock of a partition: the highest timestamp that more than one record stands for."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamapp.worker.task.pending.event_time import TRUSTED, EventTime
from tests.naive.event_time import NaiveClock

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
    assert (time.clock, time.jumps, time.state()) == (NOW, 1, state)
    assert clocks_of(time, [NOW + 3 * DAY]) == [NOW + 3 * DAY]


def test_a_first_record_far_ahead_is_given_up_for_the_second() -> None:
    time = EventTime(DAY)
    assert clocks_of(time, [NOW + 80 * YEAR, NOW, NOW + 1]) == [NOW + 80 * YEAR, NOW, NOW + 1]
    assert time.jumps == 1
    assert clocks_of(time, [NOW + 80 * YEAR, NOW + 2]) == [NOW + 1, NOW + 2], "and is not believed again"


def test_a_first_record_far_back_is_given_up_when_two_say_so() -> None:
    time = EventTime(DAY)
    assert clocks_of(time, [0, NOW, NOW + 1, NOW + 2]) == [0, 0, NOW + 1, NOW + 2]


@pytest.mark.parametrize("n", [1, 2, 3, 40])
def test_a_clock_gone_wrong_goes_back_when_as_many_records_say_so_as_stood_for_it(n: int) -> None:
    wrong, right = [NOW + 80 * YEAR + i for i in range(n)], [NOW + i for i in range(n + 2)]
    at_start, later = EventTime(DAY), EventTime(DAY)
    assert clocks_of(at_start, wrong + right) == [*wrong, *[wrong[-1]] * (n - 1), *right[n - 1 :]]
    clocks_of(later, [NOW - 7] * (TRUSTED + 20))
    clocks = clocks_of(later, [*wrong, *right])
    if n == 1:
        assert clocks == [NOW - 7, *right], "alone it was never believed"
    else:
        assert clocks == [NOW - 7, *wrong[1:], *[wrong[-1]] * (n - 1), *right[n - 1 :]]


def test_a_clock_that_is_trusted_does_not_go_back_for_a_backfill() -> None:
    time = EventTime(DAY)
    clocks_of(time, [NOW] * TRUSTED)
    assert set(clocks_of(time, [NOW - YEAR + i for i in range(3 * TRUSTED)])) == {NOW}
    doubtful = EventTime(DAY)
    clocks_of(doubtful, [NOW] * (TRUSTED - 1))
    assert clocks_of(doubtful, [NOW - YEAR + i for i in range(TRUSTED)])[-1] == NOW - YEAR + TRUSTED - 2 + 1


def test_records_behind_that_do_not_follow_each_other_turn_nothing() -> None:
    time = EventTime(DAY)
    clocks_of(time, [NOW, NOW])
    assert set(clocks_of(time, [NOW - YEAR, NOW] * 50)) == {NOW}


TIMESTAMPS = st.lists(
    st.tuples(
        st.just(-1) | st.integers(0, 50) | st.integers(0, 1000) | st.integers(0, 10_000),
        st.sampled_from([1, 1, 2, 3, 120]),
    ),
    min_size=1,
    max_size=30,
).map(lambda bursts: [timestamp + i % 7 for timestamp, n in bursts for i in range(n)])


@given(timestamps=TIMESTAMPS)
def test_the_clock_is_the_naive_one(timestamps: list[int]) -> None:
    naive = NaiveClock(100)
    assert clocks_of(EventTime(100), timestamps) == [naive.see(timestamp) for timestamp in timestamps]


@given(timestamps=TIMESTAMPS, cuts=st.sets(st.integers(1, 400)))
def test_the_clock_does_not_depend_on_how_records_are_cut_into_runs(
    timestamps: list[int], cuts: set[int]
) -> None:
    whole, parts = EventTime(100), EventTime(100)
    expected = clocks_of(whole, timestamps)
    borders = [0, *sorted(cut for cut in cuts if cut < len(timestamps)), len(timestamps)]
    got: list[int] = []
    for start, stop in itertools.pairwise(borders):
        got += clocks_of(parts, timestamps[start:stop])
    assert got == expected
    assert whole.state() == parts.state()


def test_a_record_without_a_time_never_moves_the_clock_and_says_nothing_about_others() -> None:
    time = EventTime(DAY)
    assert clocks_of(time, [NOW, -1, NOW + 1, -1]) == [NOW, NOW, NOW + 1, NOW + 1]
    assert time.jumps == 0
    assert clocks_of(time, [NOW + 2 * DAY, -1, NOW + 2 * DAY + 1])[-1] == NOW + 2 * DAY + 1, "two in a row"


def test_a_clock_begins_with_the_first_record_that_has_a_time() -> None:
    time = EventTime(DAY)
    run = time.advance([-1, -1])
    assert ([*run.clocks()], run.begins, time.clock) == ([-1, -1], False, None)
    run = time.advance([NOW, NOW + 1])
    assert ([*run.clocks()], run.begins, run.turned_back) == ([NOW, NOW + 1], True, False)
    assert not time.advance([NOW + 2]).begins
