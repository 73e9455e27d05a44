"""Sine: the four functions, the irrelevant attributes."""

import numpy as np
import pytest

from core.streams import open_generator

BELOW = {
    1: lambda x, y: y < np.sin(x),
    2: lambda x, y: y >= np.sin(x),
    3: lambda x, y: y < 0.5 + 0.3 * np.sin(3 * np.pi * x),
    4: lambda x, y: y >= 0.5 + 0.3 * np.sin(3 * np.pi * x),
}


@pytest.mark.parametrize("function", BELOW)
@pytest.mark.parametrize("flavour", ["counter", "java"])
def test_the_curve_decides(flavour, function):
    generator = open_generator("sine", rng=flavour, function=function)
    x, y = generator.take(2000)
    positive = generator.schema.classes.index("positive")
    assert np.array_equal(y == positive, BELOW[function](x[:, 0], x[:, 1]))
    assert 0 < y.sum() < 2000


@pytest.mark.parametrize("flavour", ["counter", "java"])
def test_the_irrelevant_attributes_are_uniform_and_can_be_left_out(flavour):
    n = 20_000
    x, y = open_generator("sine", rng=flavour).take(n)
    assert np.abs(x.mean(axis=0) - 0.5).max() < 4.5 * np.sqrt(1 / 12 / n)
    together = np.corrcoef(np.column_stack([x[:, 2:], y]).T) - np.eye(3)
    assert np.abs(together).max() < 5.0 / np.sqrt(n)
    assert open_generator("sine", rng=flavour, irrelevant=False).take(10)[0].shape == (10, 2)


def test_in_the_counter_flavour_they_change_nothing_else():
    whole, labels = open_generator("sine", balanced=True).take(200)
    few, same = open_generator("sine", balanced=True, irrelevant=False).take(200)
    assert np.array_equal(whole[:, :2], few)
    assert np.array_equal(labels, same)
