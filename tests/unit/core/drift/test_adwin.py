"""ADWIN: the window is the inputs, its buckets obey the paper, it shrinks where it should."""

import itertools

import numpy as np

from core.drift import adwin
from core.drift.adwin import BUCKETS, AdwinState, Plugin
from core.drift.base import DRIFT, IN_CONTROL


def watch(errors, **parameters):
    """Return the levels and the state after each input."""
    plugin = Plugin(**parameters)
    p, words = Plugin.record().over(np.array(plugin.constants())), np.array(plugin.initial())
    levels, states = [], []
    for error in errors:
        levels.append(int(adwin.update(p, AdwinState.over(words), float(error))))
        states.append(AdwinState.over(words.copy()))
    return levels, states


def rows(state):
    """Return the buckets of each row as (sum, squares), the youngest row first."""
    rows_read = []
    for r in range(int(state.rows_used)):
        row = state.row(r)
        rows_read.append(row.sums[: 2 * int(row.buckets)].reshape(-1, 2))
    return rows_read


def test_the_window_holds_the_last_inputs():
    """Sum, width and squared deviations of window and buckets are those of the inputs themselves."""
    errors = np.random.default_rng(1).random(3000) < np.repeat([0.1, 0.6, 0.1], 1000)
    _, states = watch(errors, two_sided=False, clock=5)
    for end in (1, 6, 7, 500, 1100, 2200, 3000):
        state = states[end - 1]
        width = int(state.width)
        window = errors[end - width : end].astype(float)
        assert np.isclose(state.total, window.sum())
        assert np.isclose(state.squares, ((window - window.mean()) ** 2).sum(), atol=1e-9)
        position = end
        for r, buckets in enumerate(rows(state)):
            assert len(buckets) <= BUCKETS
            for total, squares in buckets[::-1]:
                part = errors[position - 2**r : position].astype(float)
                assert np.isclose(total, part.sum())
                assert np.isclose(squares, ((part - part.mean()) ** 2).sum(), atol=1e-9)
                position -= 2**r
        assert position == end - width
    assert any(int(after.width) < int(before.width) for before, after in itertools.pairwise(states))


def test_places_without_a_bucket_are_empty():
    """What was merged or dropped leaves nothing behind: equal windows are equal words in a snapshot."""
    errors = np.random.default_rng(1).random(3000) < np.repeat([0.1, 0.6, 0.1], 1000)
    _, states = watch(errors, two_sided=False, clock=5)
    for state in states[::7]:
        for r in range(adwin.ROWS):
            row = state.row(r)
            assert not row.sums[2 * int(row.buckets) :][: 2 * (BUCKETS + 1 - int(row.buckets))].any()
            assert r < state.rows_used or row.buckets == 0.0


def test_a_falling_error_rate_is_a_drift_only_if_wanted():
    errors = np.random.default_rng(2).random(2000) < np.repeat([0.6, 0.1], 1000)
    quiet, states = watch(errors)
    assert DRIFT not in quiet
    assert states[-1].width < 1100
    loud, _ = watch(errors, two_sided=True)
    assert 1000 < loud.index(DRIFT) < 1200


def test_a_rising_error_rate_is_a_drift_and_the_newer_part_of_the_window_stays():
    errors = np.random.default_rng(3).random(2000) < np.repeat([0.1, 0.6], 1000)
    levels, states = watch(errors)
    drift = levels.index(DRIFT)
    assert 1000 < drift < 1200
    kept = int(states[drift].width)
    assert 0 < kept < states[drift - 1].width
    assert states[drift + 1].width == kept + 1
    assert states[-1].total / states[-1].width > 0.55  # nothing of the old rate is left in the end


def test_the_window_may_begin_anew():
    """As River has it, and all models of state version 4."""
    errors = np.random.default_rng(3).random(2000) < np.repeat([0.1, 0.6], 1000)
    levels, states = watch(errors, keep_newer=False)
    drift = levels.index(DRIFT)
    assert 1000 < drift < 1200
    assert levels[drift + 1] == IN_CONTROL
    assert states[drift + 1].width == 1.0


def test_false_alarms_are_rare():
    """With δ = 0.002 the paper's bound on a false alarm at a check is 0.002; it is far from tight."""
    errors = np.random.default_rng(4).random(60_000) < 0.3
    assert watch(errors)[0].count(DRIFT) <= 60_000 // 32 * 0.002


def test_a_full_window_drops_its_oldest_bucket():
    plugin = Plugin(clock=10_000)
    state = AdwinState.over(np.array(plugin.initial()))
    # As if very many ones had come: five buckets in every row.
    for r in range(adwin.ROWS):
        row = state.row(r)
        row.buckets = BUCKETS
        row.sums[: 2 * BUCKETS : 2] = 2.0**r
    state.width = state.total = BUCKETS * (2.0**adwin.ROWS - 1)
    state.rows_used = adwin.ROWS
    before = float(state.width)
    p = Plugin.record().over(np.array(plugin.constants()))
    assert adwin.update(p, state, 1.0) == IN_CONTROL
    assert state.width == state.total == before + 1 - 2.0 ** (adwin.ROWS - 1)
    assert state.row(adwin.ROWS - 1).buckets == BUCKETS
    assert abs(state.squares) < 1e-6
