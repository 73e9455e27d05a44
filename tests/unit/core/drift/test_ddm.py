"""DDM on traces that were computed by hand (Gama et al. 2004)."""

import numpy as np
import pytest

from core.drift import ddm
from core.drift.base import DRIFT, IN_CONTROL, WARNING
from core.drift.ddm import DdmState, Plugin


def watch(errors, **parameters):
    """Return the levels and the states after each of the errors (1 wrong, 0 right)."""
    plugin = Plugin(**parameters)
    p, words = Plugin.record().over(np.array(plugin.constants())), np.array(plugin.initial())
    levels, states = [], []
    for error in errors:
        levels.append(int(ddm.update(p, DdmState.over(words), float(error))))
        states.append(DdmState.over(words.copy()))
    return levels, states


def test_the_first_error_after_none_is_a_drift():
    levels, _ = watch([0] * 40 + [1])
    assert levels == [IN_CONTROL] * 40 + [DRIFT]


def test_minima_may_wait_for_errors():
    levels, states = watch([0] * 40 + [1] + [0] * 20, min_errors=1)
    assert DRIFT not in levels
    assert states[40].errors == 1.0
    assert np.isinf(states[39].min_p)
    assert np.isfinite(states[40].min_p)


def test_every_fifth_wrong_and_then_all():
    levels, states = watch([i % 5 == 4 for i in range(100)] + [1] * 10)
    p, s = states[28].p, None
    n = 29
    s = (p * (1 - p) / n) ** 0.5
    assert (p, s) == (pytest.approx(0.172414, abs=1e-6), pytest.approx(0.070145, abs=1e-6))
    p = states[99].p
    assert (p, (p * (1 - p) / 100) ** 0.5) == (pytest.approx(0.2), pytest.approx(0.04))
    assert [states[99].min_p, states[99].min_s] == pytest.approx([0.191919, 0.039579], abs=1e-6)
    assert levels.index(WARNING) + 1 == 104
    assert levels.index(DRIFT) + 1 == 110
    assert states[109].p == pytest.approx(0.272727, abs=1e-6)
    assert Plugin().error_rate(states[109].floats) == states[109].p


def test_after_a_drift_it_begins_anew_with_the_next_input():
    levels, states = watch([0] * 40 + [1] + [0] * 40)
    assert levels[41:] == [IN_CONTROL] * 40
    assert states[41].n == 2.0
    again = watch([0] * 40)[1][-1]
    assert np.array_equal(states[80].floats, again.floats)


def test_no_verdict_while_warming_up():
    assert watch([0, 1] * 14)[0] == [IN_CONTROL] * 28


def test_the_levels_obey_their_parameters():
    errors = [i % 5 == 4 for i in range(100)] + [1] * 30
    early = watch(errors, warning=1.0, drift=2.0)[0]
    assert early.index(WARNING) + 1 < 104
    assert early.index(DRIFT) + 1 < 110
    assert DRIFT not in watch(errors, drift=100.0)[0]
