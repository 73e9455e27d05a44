import math

import numpy as np
import pytest

from core.numeric import idbd

TRACE = [((1.0, 2.0, -1.0), 1.0), ((1.0, 0.5, 0.5), 0.0), ((1.0, 2.0, -1.0), 1.0)]
"""Inputs and target of three records."""


def unit(n=3):
    words = np.full(3 * n + 2, np.nan)
    idbd.idbd_start(words, 1, n)
    return words


def learn(words, records, share=1.0):
    predictions = []
    for inputs, target in records:
        row = np.array(inputs)
        predictions.append(idbd.idbd_predict(words, 1, row, len(row)))
        idbd.idbd_update(words, 1, row, len(row), target, share)
    return predictions


def test_published_trace():
    words = unit()
    assert learn(words, TRACE) == pytest.approx([0.0, 0.075, 0.294375], abs=5e-7)
    assert words[1:4].tolist() == pytest.approx([0.081541, 0.168781, -0.087170], abs=5e-7)
    assert words[4:7].tolist() == pytest.approx([-2.995461, -2.994403, -2.995352], abs=5e-7)
    assert words[7:10].tolist() == pytest.approx([0.076853, 0.148131, -0.083981], abs=5e-7)
    assert np.isnan(words[[0, 10]]).all()  # nothing beside its words is written


def test_start():
    assert unit()[1:10].tolist() == [0.0] * 3 + [math.log(0.05)] * 3 + [0.0] * 3


def test_child_has_weights_and_step_sizes_but_no_traces():
    words = unit()
    learn(words, TRACE)
    child = np.concatenate([words, np.full(9, np.nan)])
    idbd.idbd_inherit(child, len(words), 1, 3)
    assert child[len(words) :].tolist() == [*words[1:7].tolist(), 0.0, 0.0, 0.0]


def test_prediction_is_clipped_but_the_error_is_not():
    words = unit(1)
    words[1] = 3.0
    assert idbd.idbd_output(words, 1, np.ones(1), 1) == 3.0
    assert learn(words, [((1.0,), 1.0)]) == [1.0]
    assert words[1] == pytest.approx(3.0 - 2.0 * 0.05)
    words[1] = -3.0
    assert learn(words, [((1.0,), 1.0)]) == [0.0]


def test_step_sizes_keep_within_their_limits():
    words = unit(2)
    for i in range(20_000):  # one input that agrees with itself for long, one that does not
        learn(words, [((1.0, 5.0 if i % 2 else -5.0), float(i % 2))])
    assert (words[3:5] >= idbd.LOWEST).all()
    assert (words[3:5] <= idbd.HIGHEST).all()


def test_many_inputs_do_not_overshoot():
    """With 50 inputs of standard size and more a step of 0.05 each would go past the target, and grow."""
    rng = np.random.default_rng(1)
    words = unit(201)
    weights = rng.normal(size=200)
    for _ in range(3000):
        x = np.clip(rng.normal(size=200), -5.0, 5.0)
        row = np.array([1.0, *x])
        target = float(weights @ x > 0.0)
        before = abs(target - idbd.idbd_output(words, 1, row, 201))
        idbd.idbd_update(words, 1, row, 201, target, 1.0)
        assert abs(target - idbd.idbd_output(words, 1, row, 201)) <= before * (1.0 + 1e-12)
    assert np.abs(words[1:202]).max() < 1.0
    right = 0
    for _ in range(1000):
        x = np.clip(rng.normal(size=200), -5.0, 5.0)
        right += (idbd.idbd_output(words, 1, np.array([1.0, *x]), 201) > 0.5) == (weights @ x > 0.0)
    assert right > 800


def test_no_share_of_a_record_changes_nothing_but_half_does():
    words = unit()
    learn(words, TRACE)
    before = words.copy()
    learn(words, TRACE[:1], share=0.0)
    assert np.array_equal(words, before, equal_nan=True)
    learn(words, TRACE[:1], share=0.5)
    half = words.copy()
    words = before.copy()
    learn(words, TRACE[:1])
    assert half[1:4] - before[1:4] == pytest.approx(0.5 * (words[1:4] - before[1:4]), rel=1e-2)


def test_irrelevant_inputs_get_smaller_steps():
    """Sutton's experiment in small: five inputs matter, fifteen do not, and the signs change now and then."""
    rng = np.random.default_rng(7)
    words = unit(20)
    words[21:41] = math.log(0.05)
    signs = np.ones(5)
    for t in range(20_000):
        if t % 20 == 0:
            signs[rng.integers(5)] *= -1.0
        x = rng.normal(size=20)
        idbd.idbd_update(words, 1, x, 20, float(signs @ x[:5]), 1.0)
    steps = np.exp(words[21:41])
    assert steps[:5].min() > 3.0 * steps[5:].max()
