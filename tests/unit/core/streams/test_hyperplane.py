"""Hyperplane: the concept, how its weights move, entering it anywhere."""

from typing import Any

import numpy as np
import pytest

from core.errors import ParameterError
from core.streams import open_generator
from core.streams.hyperplane import Plugin

FLAVOURS = ("counter", "java")


def sides(x, weights):
    return (x @ weights >= 0.5 * weights.sum()).astype(np.int32)


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_a_hyperplane_that_stands_still(flavour):
    plane = Plugin(rng=flavour, magnitude=0.0, noise=0.0, seed=3)
    x, y = plane.take(3000)
    assert np.array_equal(y, sides(x, plane.weights()))
    assert 0 < y.sum() < 3000
    assert x.min() >= 0.0
    assert x.max() < 1.0


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_without_turns_the_weights_rise_by_the_magnitude(flavour):
    options: dict[str, Any] = {"drift_attributes": 3, "magnitude": 0.25, "sigma": 0.0, "noise": 0.0}
    plane = Plugin(rng=flavour, seed=5, **options)
    x, y = plane.take(2000)
    moving = np.arange(10) < 3
    expected = [sides(row, plane.weights() + 0.25 * i * moving) for i, row in enumerate(x)]
    assert y.tolist() == expected
    # Far out the three that rise decide alone.
    assert np.mean(y[1000:] == sides(x[1000:], moving)) > 0.99 > np.mean(y[:20] == sides(x[:20], moving))


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_with_a_turn_after_each_record_the_weights_move_to_and_fro(flavour):
    options: dict[str, Any] = {"drift_attributes": 10, "magnitude": 1.0, "sigma": 1.0, "noise": 0.0}
    plane = Plugin(rng=flavour, **options)
    x, y = plane.take(1000)
    first = plane.weights()
    assert np.array_equal(y[::2], sides(x[::2], first))
    assert np.array_equal(y[1::2], sides(x[1::2], first + 1.0))
    assert not np.array_equal(y[1::2], sides(x[1::2], first))


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_the_share_of_noise(flavour):
    plane = Plugin(rng=flavour, magnitude=0.0, noise=0.2)
    x, y = plane.take(20_000)
    flipped = np.mean(y != sides(x, plane.weights()))
    assert abs(flipped - 0.2) < 4.5 * np.sqrt(0.2 * 0.8 / 20_000)


def test_it_can_be_entered_further_back():
    plane = Plugin(drift_attributes=5, magnitude=0.1, noise=0.0)
    _, whole = plane.take(600)
    write, x, y = plane.writer(), np.empty((200, 10)), np.empty(200, np.int32)
    for first in (400, 0, 200, 400):
        write(first, x, y)
        assert y.tolist() == whole[first : first + 200].tolist()


def test_no_more_attributes_move_than_there_are():
    with pytest.raises(ParameterError, match="drift_attributes=11 must be at most attributes=10"):
        open_generator("hyperplane", drift_attributes=11)
