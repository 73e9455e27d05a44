"""Random trees of CDT, appendix D, and their streams [D25]."""

import numpy as np
import pytest

from core.streams import parse_address
from core.streams.rand_cbt import Plugin

BOTH = pytest.mark.parametrize("flavour", ["counter", "java"])


def concepts(n, flavour="counter", **options):
    return [Plugin(rng=flavour, model_seed=1000 * i + 7, **options).concept() for i in range(n)]


@BOTH
@pytest.mark.parametrize("leaves", [1, 2, 3, 50])
def test_boxes_tile_the_unit_cube(flavour, leaves):
    points = np.random.default_rng(0).random((500, 5))
    for tree in concepts(20, flavour, leaves=leaves):
        assert len(tree.low) == leaves
        assert np.prod(tree.high - tree.low, axis=1).sum() == pytest.approx(1.0)
        inside = (points[:, None] >= tree.low) & (points[:, None] < tree.high)
        assert (inside.all(axis=2).sum(axis=1) == 1).all()


def test_a_tree_of_one_leaf_counts_as_right():
    tree = Plugin(leaves=1).concept()
    assert tree.probability.tolist() == [pytest.approx(0.3)]
    assert tree.depth.tolist() == [0]


@BOTH
def test_the_shape_of_random_trees(flavour):
    """Expectations by recursion over the root split; standard deviations 2.1 leaves and 0.59 levels."""
    trees = concepts(1000, flavour)
    left = np.array([tree.is_left.sum() for tree in trees])
    depth = np.array([tree.depth.mean() for tree in trees])
    assert left.mean() == pytest.approx(28.1718, abs=4.0 * 2.1 / np.sqrt(1000))
    assert depth.mean() == pytest.approx(7.1781, abs=4.0 * 0.59 / np.sqrt(1000))
    assert np.mean([tree.depth.max() for tree in trees]) == pytest.approx(11.2, abs=0.3)
    ones = np.mean([tree.probability.mean() for tree in trees])
    assert ones == pytest.approx(0.525375, abs=4.0 * 0.4 * 2.1 / 50 / np.sqrt(1000))


def test_the_exact_expectations():
    """The recursion itself: P(left = 1) = 2/n, P(left = k) = 1/n for 2 ≤ k ≤ n-1."""
    lefts, depths = {1: (1.0, 0.0)}, {1: 0.0}  # as a left child and as another one
    for n in range(2, 51):
        sizes = [1] if n == 2 else [1, *range(1, n)]
        p = 1.0 / len(sizes)
        inner = sum(p * (lefts[k][0] + lefts[n - k][1]) for k in sizes)
        lefts[n] = (inner, inner)
        depths[n] = 1.0 + sum(p * (k * depths[k] + (n - k) * depths[n - k]) / n for k in sizes)
    assert lefts[50][1] == pytest.approx(28.1718, abs=1e-4)
    assert depths[50] == pytest.approx(7.1781, abs=1e-4)
    assert (0.7 * lefts[50][1] + 0.3 * (50 - lefts[50][1])) / 50 == pytest.approx(0.525375, abs=1e-6)


@BOTH
def test_every_leaf_has_its_share_and_its_noise(flavour):
    generator = Plugin(rng=flavour, per_leaf=400, leaves=20)
    tree = generator.concept()
    x, y = generator.take(3 * 8000)
    leaf = ((x[:, None] >= tree.low) & (x[:, None] < tree.high)).all(axis=2).argmax(axis=1)
    for part in (slice(0, 8000), slice(8000, 16_000), slice(16_000, 24_000)):
        assert np.bincount(leaf[part], minlength=20).tolist() == [400] * 20
    best = (tree.probability[leaf] > 0.5).astype(np.int32)
    assert np.mean(best == y) == pytest.approx(0.7, abs=4.0 * np.sqrt(0.21 / len(y)))


def test_it_is_shuffled_each_time_anew():
    generator = Plugin(per_leaf=50, leaves=10)
    tree = generator.concept()
    x, _ = generator.take(1000)
    leaf = ((x[:, None] >= tree.low) & (x[:, None] < tree.high)).all(axis=2).argmax(axis=1)
    assert not np.array_equal(leaf[:500], leaf[500:])
    # Unshuffled, neighbours are of the same leaf; shuffled, in one case of ten.
    same = np.mean(leaf[1:] == leaf[:-1])
    assert same == pytest.approx(0.1, abs=4.0 * np.sqrt(0.09 / 1000))


def test_its_address():
    generator, n = parse_address("gen:rand_cbt?leaves=7&q=0.9&model_seed=3&n=500")
    assert isinstance(generator, Plugin)
    assert (generator.leaves, generator.q, generator.model_seed, n) == (7, 0.9, 3, 500)
