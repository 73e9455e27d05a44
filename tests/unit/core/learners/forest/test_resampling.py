"""Resampling: the distribution of how often, the subsets, and that draws do not depend on each other."""

import math

import numpy as np
import pytest

from core.kernels.jit import kernel, start_of
from core.numeric import rng
from core.numeric.subsets import choose, choose_apart

KEY = rng.stream_key(1, rng.BAGGING)


@kernel("void(uint64, float64, int64[::1])")
def draw_times(key, mean, out):
    for i in range(len(out)):
        out[i] = rng.poisson(key, i << 20, mean)


@kernel("void(uint64, int64, int64, float64[::1])")
def draw_subset(key, first, m, out):
    choose(key, first, len(out), m, start_of(out))


@kernel("void(uint64, int64, int64, float64[::1])")
def draw_apart(key, number, m, out):
    choose_apart(key, number, len(out), m, start_of(out))


@pytest.mark.parametrize("mean", [0.5, 1.0, 6.0, 40.0])
def test_how_often_is_poisson(mean):
    n = 20_000
    drawn = np.zeros(n, dtype=np.int64)
    draw_times(KEY, mean, drawn)
    assert drawn.mean() == pytest.approx(mean, abs=4 * math.sqrt(mean / n))
    assert drawn.var() == pytest.approx(mean, rel=0.06)
    for k in range(3):
        expected = math.exp(-mean) * mean**k / math.factorial(k)
        assert (drawn == k).mean() == pytest.approx(expected, abs=4 * math.sqrt(expected / n) + 1e-9)


def test_a_subset_has_its_size_and_all_attributes_come_alike():
    n, m, times = 9, 4, 10_000
    counts, chosen = np.zeros(n), np.zeros(n)
    for leaf in range(times):
        draw_subset(KEY, leaf << 16, m, chosen)
        assert chosen.sum() == m
        assert set(chosen.tolist()) <= {0.0, 1.0}
        counts += chosen
    share = m / n
    assert np.abs(counts / times - share).max() < 4 * math.sqrt(share * (1 - share) / times)
    draw_subset(KEY, 7, n, chosen)
    assert chosen.tolist() == [1.0] * n


@pytest.mark.parametrize(("n", "m"), [(2, 2), (3, 2), (5, 3), (8, 5), (7, 1), (20, 12)])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_no_subset_comes_again_before_all_have_come(n, m, seed):
    """Each attribute is in as many of them as in any other."""
    key, chosen = rng.stream_key(seed, rng.SUBSPACE), np.zeros(n)
    every, subsets = math.comb(n, m), []
    for number in range(min(every, 500)):
        draw_apart(key, number, m, chosen)
        assert chosen.sum() == m
        subsets.append(tuple(chosen.tolist()))
    assert len(set(subsets)) == len(subsets)
    if every <= 500:
        assert (np.sum(subsets, axis=0) == every * m / n).all()
        draw_apart(key, every, m, chosen)
        assert tuple(chosen.tolist()) == subsets[0]


def test_other_seeds_draw_other_subsets_first():
    firsts, chosen = set(), np.zeros(8)
    for seed in range(20):
        draw_apart(rng.stream_key(seed, rng.SUBSPACE), 0, 5, chosen)
        firsts.add(tuple(chosen.tolist()))
    assert len(firsts) > 10
