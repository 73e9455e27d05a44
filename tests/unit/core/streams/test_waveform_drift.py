"""Waveforms that have changed places."""

import numpy as np
import pytest

from core.errors import ParameterError
from core.streams import open_generator


@pytest.mark.parametrize("irrelevant", [False, True])
@pytest.mark.parametrize("drift", [0, 1, 10, 21])
def test_the_points_are_those_of_waveform_in_another_order(drift, irrelevant):
    options = {"irrelevant": irrelevant, "seed": 4}
    plain, label = open_generator("waveform", **options).take(200)
    moved, same = open_generator("waveform_drift", drift_attributes=drift, **options).take(200)
    assert np.array_equal(label, same)
    assert np.array_equal(np.sort(plain, axis=1), np.sort(moved, axis=1))
    changed = (plain != moved).any(axis=0).sum()
    assert changed == 0 if drift == 0 else 2 <= changed <= 2 * drift


def test_one_exchange_is_of_two_places():
    plain = open_generator("waveform", seed=4).take(5)[0]
    moved = open_generator("waveform_drift", drift_attributes=1, seed=4).take(5)[0]
    one, other = np.flatnonzero((plain != moved).any(axis=0))
    assert np.array_equal(plain[:, one], moved[:, other])
    assert np.array_equal(plain[:, other], moved[:, one])


def test_it_can_be_drifted_to():
    options = {"before": "waveform", "after": "waveform_drift", "position": 50.5, "width": 0.1}
    x, _ = open_generator("drift", **options).take(100)
    assert np.array_equal(x[:50], open_generator("waveform").take(50)[0])
    assert np.array_equal(x[50:], open_generator("waveform_drift").take(50)[0])


def test_no_more_exchanges_than_attributes():
    with pytest.raises(ParameterError, match="drift_attributes=22 must be at most 21"):
        open_generator("waveform_drift", drift_attributes=22)
    assert open_generator("waveform_drift", drift_attributes=40, irrelevant=True).take(1)[0].shape == (1, 40)
