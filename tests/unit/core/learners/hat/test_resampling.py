"""Resampling at leaves: MOA's variates of the generator that MOA has, and how heavy records become."""

import numpy as np
import pytest

from core.kernels.jit import kernel, register, words_at
from core.layout.tree import Subtree
from core.learners.hat import resampling
from core.streams import _java
from tests.unit.core.builders import answer, halves, schema_of, spec_of, table_of


@kernel("void(int64, float64[::1], int64[::1])")
def draw(address, doubles, variates):
    ints, floats = words_at(address)
    leaf = Subtree(ints, floats, 0)
    for i in range(len(doubles)):
        doubles[i] = resampling.next_double(leaf)
        variates[i] = resampling.moa_poisson(doubles[i])


@kernel("void(int64[::1], float64[::1])")
def draw_java(random, doubles):
    for i in range(len(doubles)):
        doubles[i] = _java.double(random)


def test_zeros_are_a_generator_with_seed_1():
    ours, theirs = np.zeros(5000), np.zeros(5000)
    variates, state = np.zeros(5000, dtype=np.int64), np.zeros(Subtree.SIZE, dtype=np.int64)
    register(state)
    draw(state.ctypes.data, ours, variates)
    draw_java(_java.seeded(1), theirs)
    assert np.array_equal(ours, theirs)
    assert ours[0] == pytest.approx(0.7308781907032909, abs=0.0)  # new java.util.Random(1).nextDouble()
    assert 0 <= Subtree.over(state).draws < 1 << 48
    assert np.count_nonzero(state) == 1
    assert np.bincount(variates)[:4] / 5000 == pytest.approx([0.368, 0.368, 0.184, 0.061], abs=0.02)


@pytest.mark.parametrize("compat", [None, "moa"])
def test_a_leaf_learns_records_1_37_times_on_average(compat):
    x, y = halves(4000)
    weights = []
    for bootstrap in (True, False):
        table = table_of(
            schema_of(None, None, None),
            spec_of(name="hat", grace_period=1e6, bootstrap=bootstrap, compat=compat),
        )
        answer(table, x, y)
        model = table.model(0)
        tree = model.plan.blocks.view(model.ints, model.first)
        weights.append(tree.block.leaf(0).observed / 4000)
    assert weights[0] == pytest.approx(1 + np.exp(-1), abs=0.05)
    assert weights[1] == 1.0
