"""ALGORITHMS sections 4 and 11."""

import numpy as np
import pytest

from core.leaf_curve import at_most, f1_of, grid, leaf_curve, mean_curve, running_mean, tuned
from core.spec import Spec


def test_the_running_mean_of_algorithm_3():
    hits = np.array([True, False, True, True])
    means, m = running_mean(hits), 0.0
    for i, hit in enumerate(hits, 1):
        m = (1.0 - 1.0 / i) * m + hit / i
        assert means[i - 1] == pytest.approx(m)
    assert means[-1] == 0.75


def test_f1_of_the_positive_class():
    """TP = 30, FP = 20, FN = 10."""
    label = np.repeat([1, 0, 1, 0], [30, 20, 10, 40]).astype(np.int32)
    prediction = np.repeat([1, 1, 0, 0], [30, 20, 10, 40]).astype(np.int32)
    assert f1_of(label, prediction, 1) == pytest.approx(0.666667, abs=1e-6)
    assert f1_of(label[:0], prediction[:0], 1) == 0.0


def test_the_last_measure_at_every_number_of_leaves():
    assert leaf_curve([1, 1, 2, 2, 4, 2], [0.5, 0.6, 0.7, 0.8, 0.9, 0.65]) == {1: 0.6, 2: 0.65, 4: 0.9}
    with pytest.raises(ValueError, match="leaves=1 points must be as many as measure=2"):
        leaf_curve([1], [0.1, 0.2])


def test_the_mean_leaves_out_what_few_streams_reach():
    curves = [{1: 0.5, 2: 0.6}] * 19 + [{1: 0.7, 2: 0.8, 3: 0.9}]
    assert mean_curve(curves) == {1: pytest.approx(0.51), 2: pytest.approx(0.61)}
    assert mean_curve(curves, share=0.05)[3] == 0.9
    with pytest.raises(ValueError, match="curves="):
        mean_curve([])
    with pytest.raises(ValueError, match="share=2"):
        mean_curve(curves, share=2)


def test_a_measure_at_equal_leaves():
    curve = {1: 0.5, 7: 0.8, 12: 0.9}
    assert [at_most(curve, n) for n in (0, 1, 6, 7, 11, 100)] == [None, 0.5, 0.5, 0.8, 0.8, 0.9]


def test_every_value_of_a_grid_is_a_parameter():
    for parameter, learner, first, last in (
        ("c", "c-tree", 1e-4, 2.0),
        ("delta", "corrh-tree", 1e-10, 0.999),
    ):
        values = grid(parameter)
        assert (len(values), values[0]) == (200, pytest.approx(first))
        assert values[-1] == pytest.approx(last)
        assert np.diff(np.log(values)) == pytest.approx(np.log(values[1] / values[0]))
        for value in values[[0, 100, -1]]:
            assert Spec.parse({"learner": {"name": learner, parameter: float(value)}})
    with pytest.raises(ValueError, match="parameter='tau' must be one of c, delta"):
        grid("tau")
    with pytest.raises(ValueError, match="size=1"):
        grid("c", 1)


def test_tuning_takes_the_best_mean_and_of_equals_the_first():
    values = np.array([0.1, 0.2, 0.3])
    assert tuned(values, np.array([[0.5, 0.7], [0.8, 0.6], [0.7, 0.7]])) == 0.2
    assert tuned(values, np.array([0.5, 0.9, 0.9])) == 0.2
