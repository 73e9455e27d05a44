"""The measure of a tree by its number of leaves [D61]."""

import numpy as np
import pytest

from core.bounds import c_tree, hoeffding
from core.spec import Spec
from streamapp.lab.experiments.leaf_curve import at_sizes, grid, leaf_curve, mean_curve


def test_the_last_measure_at_every_number_of_leaves():
    assert leaf_curve([1, 1, 2, 2, 4, 2], [0.5, 0.6, 0.7, 0.8, 0.9, 0.65]) == {1: 0.6, 2: 0.65, 4: 0.9}
    with pytest.raises(ValueError, match="leaves=1 points must equal measure=2"):
        leaf_curve([1], [0.1, 0.2])


def test_the_mean_leaves_out_what_few_streams_reach():
    curves = [{1: 0.5, 2: 0.6}] * 19 + [{1: 0.7, 2: 0.8, 3: 0.9}]
    assert mean_curve(curves) == {1: pytest.approx(0.51), 2: pytest.approx(0.61)}
    assert mean_curve(curves, share=0.05)[3] == 0.9
    with pytest.raises(ValueError, match="curves="):
        mean_curve([])
    with pytest.raises(ValueError, match="share=2"):
        mean_curve(curves, share=2)


def test_trees_of_one_size_at_the_end():
    """Half way between 4 and 16 leaves, in ratios, lie 8."""
    ends = [(4, 0.6), (16, 0.8), (1, 0.5), (1, 0.3)]
    by_size = at_sizes(ends, (1, 2, 8, 16, 32))
    assert by_size == pytest.approx({1: 0.4, 2: 0.5, 8: 0.7, 16: 0.8})
    assert at_sizes(ends[:1], (3, 4, 5)) == {4: 0.6}
    assert at_sizes([], (1, 2)) == {}


def test_every_value_of_a_grid_is_a_parameter():
    for parameter, learner, least, most in (
        ("c", "c-tree", 1e-4, 1.999),
        ("delta", "corrh-tree", 1e-10, 0.999),
    ):
        values = grid(parameter)
        assert (len(values), values[0], values[-1]) == (200, pytest.approx(least), pytest.approx(most))
        assert (np.diff(values) > 0).all()
        for value in values[[0, 100, -1]]:
            assert Spec.parse({"learner": {"name": learner, parameter: float(value)}})
    with pytest.raises(ValueError, match="parameter='tau' must be one of c, delta"):
        grid("tau")
    with pytest.raises(ValueError, match="size=1"):
        grid("c", 1)


@pytest.mark.parametrize(("parameter", "bound"), [("c", c_tree.Plugin), ("delta", hoeffding.Plugin)])
def test_the_bounds_of_a_grid_are_equal_ratios_apart(parameter, bound):
    case = {"criterion": "gini", "records": 1000, "attributes": 5}
    widths = np.array(
        [bound(**{parameter: float(v)}).epsilon(1.0, 1000, **case) for v in grid(parameter, 24)]
    )
    steps = widths[1:] / widths[:-1]
    assert steps == pytest.approx(steps[0])
