"""The traces of ALGORITHMS section 10."""

import numpy as np
import pytest

from core.drift import ddm
from core.drift.base import DRIFT, IN_CONTROL, WARNING
from core.drift.ddm import ERRORS, MIN_P, MIN_S, Plugin


def watch(errors, **parameters):
    """Return the levels and the states after each of the errors (1 wrong, 0 right)."""
    plugin = Plugin(**parameters)
    params, state = np.array(plugin.constants()), np.array(plugin.initial())
    levels, states = [], []
    for error in errors:
        levels.append(int(ddm.update(params, 0, state, 0, float(error))))
        states.append(state.copy())
    return levels, states


def test_the_first_error_after_none_is_a_drift():
    levels, _ = watch([0] * 40 + [1])
    assert levels == [IN_CONTROL] * 40 + [DRIFT]


def test_minima_may_wait_for_errors():
    levels, states = watch([0] * 40 + [1] + [0] * 20, min_errors=1)
    assert DRIFT not in levels
    assert states[40][ERRORS] == 1.0
    assert np.isinf(states[39][MIN_P])
    assert np.isfinite(states[40][MIN_P])


def test_every_fifth_wrong_and_then_all():
    levels, states = watch([i % 5 == 4 for i in range(100)] + [1] * 10)
    p, s = states[28][ddm.P], None
    n = 29
    s = (p * (1 - p) / n) ** 0.5
    assert (p, s) == (pytest.approx(0.172414, abs=1e-6), pytest.approx(0.070145, abs=1e-6))
    p = states[99][ddm.P]
    assert (p, (p * (1 - p) / 100) ** 0.5) == (pytest.approx(0.2), pytest.approx(0.04))
    assert states[99][[MIN_P, MIN_S]] == pytest.approx([0.191919, 0.039579], abs=1e-6)
    assert levels.index(WARNING) + 1 == 104
    assert levels.index(DRIFT) + 1 == 110
    assert states[109][ddm.P] == pytest.approx(0.272727, abs=1e-6)
    assert Plugin().error_rate(states[109]) == states[109][ddm.P]


def test_after_a_drift_it_begins_anew_with_the_next_input():
    levels, states = watch([0] * 40 + [1] + [0] * 40)
    assert levels[41:] == [IN_CONTROL] * 40
    assert states[41][ddm.N] == 2.0
    again = watch([0] * 40)[1][-1]
    assert np.array_equal(states[80], again)


def test_no_verdict_while_warming_up():
    assert watch([0, 1] * 14)[0] == [IN_CONTROL] * 28


def test_the_levels_obey_their_parameters():
    errors = [i % 5 == 4 for i in range(100)] + [1] * 30
    early = watch(errors, warning=1.0, drift=2.0)[0]
    assert early.index(WARNING) + 1 < 104
    assert early.index(DRIFT) + 1 < 110
    assert DRIFT not in watch(errors, drift=100.0)[0]
