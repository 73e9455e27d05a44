"""How long fetches of a trickle wait: by the CPU time that the whole process takes for a round."""

from __future__ import annotations

import pytest

from streamapp.worker.driver.pace import PACE_MAX_S, SILENCE_S, RoundTime

LASTS_S = 0.002
SHARE = 0.25


def trickle(cost_s: float, rounds: int = 200, share: float = SHARE) -> tuple[RoundTime, float]:
    """Return the mean of rounds that each cost CPU time and come at the pace, and the time of the last."""
    mean, now, process_s = RoundTime(share), 100.0, 7.0
    for _ in range(rounds):
        now += max(mean.between_fetches_s, LASTS_S)
        process_s += cost_s
        mean.note(now - LASTS_S, now, process_s)
    return mean, now


@pytest.mark.parametrize("share", [0.01, SHARE, 1.0])
@pytest.mark.parametrize("part_of_limit", [0.1, 0.5, 1.0])
def test_a_trickle_takes_its_share_of_a_core(share: float, part_of_limit: float) -> None:
    cost_s = part_of_limit * share * PACE_MAX_S
    mean, _ = trickle(cost_s, share=share)
    assert cost_s / mean.between_fetches_s == pytest.approx(share, rel=0.01)
    assert mean.lasts_s == pytest.approx(LASTS_S, rel=0.01)


def test_a_costly_round_does_not_make_records_wait_longer_than_the_limit() -> None:
    assert trickle(0.1)[0].between_fetches_s == PACE_MAX_S


def test_what_the_process_did_in_a_silence_is_not_the_cost_of_the_next_round() -> None:
    mean, now = trickle(0.001)
    before = mean.between_fetches_s
    mean.note(now + 2 * SILENCE_S, now + 2 * SILENCE_S + LASTS_S, 1000.0)
    assert mean.between_fetches_s == before
    mean.note(now + 3 * SILENCE_S, now + 3 * SILENCE_S - LASTS_S, 1000.001)
    assert mean.between_fetches_s == pytest.approx(before, rel=0.01), "counted again"


def test_the_first_round_of_all_costs_nothing_yet() -> None:
    mean = RoundTime(SHARE)
    mean.note(100.0, 100.01, 3600.0)
    assert mean.between_fetches_s == 0.0
