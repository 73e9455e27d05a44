"""Random RBF: MOA's model and first records, the shape of the blobs."""

import numpy as np
import pytest

from core.streams import _java, open_generator
from core.streams.rbf import Plugin


def chosen_blobs(options, n):
    """Return blobs and classes of the first records by MOA's order of draws."""
    generator = Plugin(rng="java", **options)
    centre, label, _, weight = generator.blobs()
    random, blobs_drawn = _java.seeded(generator.seed), []
    for _ in range(n):
        until = sum(weight) * _java.double(random)
        blobs_drawn.append(next(i for i in range(len(weight)) if sum(weight[: i + 1]) > until))
        for _ in range(centre.shape[1]):
            _java.double(random)
        _java.gaussian(random)
    return blobs_drawn, [int(label[i]) for i in blobs_drawn]


def test_the_first_records_of_vfs():
    options = {"classes": 15, "attributes": 200, "centroids": 100}
    assert chosen_blobs(options, 3) == ([77, 39, 55], [2, 12, 3])
    x, y = open_generator("rbf", rng="java", **options).take(3)
    assert y.tolist() == [2, 12, 3]
    assert x[0, :3] == pytest.approx([0.288691, 1.031696, 0.451251], abs=5e-7)


def test_the_first_records_of_the_defaults():
    assert chosen_blobs({}, 3) == ([37, 29, 38], [1, 1, 1])
    x, y = open_generator("rbf", rng="java").take(3)
    assert y.tolist() == [1, 1, 1]
    assert x[0, :3] == pytest.approx([0.210372, 1.009586, 0.091900], abs=5e-7)


@pytest.mark.parametrize("flavour", ["counter", "java"])
def test_records_lie_at_a_gaussian_distance_from_their_blob(flavour):
    generator = Plugin(rng=flavour, centroids=1, attributes=3, classes=2)
    centre, label, spread, _ = generator.blobs()
    x, y = generator.take(20_000)
    assert set(y.tolist()) == {int(label[0])}
    offset = (x - centre[0]) / spread[0]
    distance = np.linalg.norm(offset, axis=1)
    assert abs(np.mean(distance**2) - 1.0) < 4.5 * np.sqrt(2.0 / 20_000)
    assert np.all(np.abs(offset.mean(axis=0)) < 4.5 / np.sqrt(20_000))


@pytest.mark.parametrize("flavour", ["counter", "java"])
def test_blobs_are_chosen_by_weight(flavour):
    generator = Plugin(rng=flavour, centroids=4, classes=4, seed=3, model_seed=8)
    _, label, _, weight = generator.blobs()
    _, y = generator.take(20_000)
    for of_class in range(4):
        share = weight[label == of_class].sum() / weight.sum()
        assert abs(np.mean(y == of_class) - share) < 4.5 * np.sqrt(0.25 / 20_000)


@pytest.mark.parametrize("flavour", ["counter", "java"])
def test_the_model_seed_makes_the_blobs_and_the_seed_the_records(flavour):
    one, two = Plugin(rng=flavour, seed=1), Plugin(rng=flavour, seed=2)
    assert np.array_equal(one.blobs()[0], two.blobs()[0])
    assert not np.array_equal(one.take(5)[0], two.take(5)[0])
    other = Plugin(rng=flavour, model_seed=2)
    assert not np.array_equal(one.blobs()[0], other.blobs()[0])
