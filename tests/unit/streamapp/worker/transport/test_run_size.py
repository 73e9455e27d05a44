"""Run size: runs grow while they are full and cheap, and shrink when one takes too long."""

from __future__ import annotations

import pytest

from streamapp.worker.transport.run_size import FEWEST, FIRST, TARGET_S, RunSize


def test_full_runs_that_cost_little_grow_up_to_the_most() -> None:
    size = RunSize(3 * FIRST)
    assert size.limit == FIRST
    size.note(FIRST, TARGET_S / 4)
    assert size.limit == 2 * FIRST
    size.note(2 * FIRST, TARGET_S / 4)
    assert size.limit == 3 * FIRST


def test_small_runs_say_nothing_about_larger_ones() -> None:
    size = RunSize(3 * FIRST)
    for _ in range(100):
        size.note(3, TARGET_S / 20)
    assert size.limit == FIRST


@pytest.mark.parametrize("times", [1.25, 3.0, 6.0])
def test_a_run_that_took_too_long_makes_them_smaller_by_half_at_most(times: float) -> None:
    size = RunSize(FIRST)
    size.note(FIRST, TARGET_S * times)
    assert size.limit == max(int(FIRST / times), FIRST // 2)


def test_after_a_run_that_held_up_the_others_the_next_one_does_not() -> None:
    size = RunSize(5 * FIRST)
    size.note(FIRST, 50 * TARGET_S)
    assert FIRST // 51 <= size.limit <= FIRST // 50


def test_runs_stay_worth_their_cost_and_never_have_more_than_the_most() -> None:
    for most in (1, 7, FIRST):
        size = RunSize(most)
        for _ in range(50):
            size.note(size.limit, 10 * TARGET_S)
        assert size.limit == min(FEWEST, most)
        for _ in range(50):
            size.note(size.limit, 0.0)
        assert size.limit == most


def test_what_costs_the_same_a_record_settles_below_the_target() -> None:
    size, record_s = RunSize(1_000_000), 2e-6
    for _ in range(50):
        size.note(size.limit, size.limit * record_s)
    assert TARGET_S / 2 <= size.limit * record_s <= TARGET_S
