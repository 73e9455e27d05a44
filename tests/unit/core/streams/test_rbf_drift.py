"""RBF with drift: where the blobs are, and when."""

from typing import Any

import numpy as np
import pytest

from core.streams import open_generator
from core.streams.rbf_drift import Plugin

ONE: dict[str, Any] = {"centroids": 1, "attributes": 2, "model_seed": 5}


@pytest.mark.parametrize("flavour", ["counter", "java"])
def test_without_speed_it_is_rbf(flavour):
    still = open_generator("rbf_drift", rng=flavour, speed=0.0, seed=3).take(500)
    plain = open_generator("rbf", rng=flavour, seed=3).take(500)
    assert np.array_equal(still[0], plain[0])
    assert np.array_equal(still[1], plain[1])


@pytest.mark.parametrize("flavour", ["counter", "java"])
def test_a_record_lies_where_its_blob_has_gone(flavour):
    """The same draws make both streams, so their difference is the way of the one blob."""
    speed = 2.0**-8
    generator = Plugin(rng=flavour, speed=speed, **ONE)
    way = generator.take(2000)[0] - open_generator("rbf", rng=flavour, **ONE).take(2000)[0]
    place, direction = generator.blobs()[0][0], generator.directions()[0]
    assert np.hypot(*direction) == pytest.approx(1.0)
    assert direction.min() > 0.0
    expected, turned = [], 0
    for number in range(1, 2001):
        if flavour == "counter":
            folded = (generator.blobs()[0][0] + number * speed * direction) % 2.0
            place = np.minimum(folded, 2.0 - folded)
        else:
            place = place + speed * direction
            outside = (place > 1.0) | (place < 0.0)
            direction = np.where(outside, -direction, direction)
            place, turned = np.clip(place, 0.0, 1.0), turned + outside.sum()
        expected.append(place)
    assert way + generator.blobs()[0][0] == pytest.approx(np.array(expected), abs=1e-9)
    assert flavour == "counter" or turned > 6


@pytest.mark.parametrize("flavour", ["counter", "java"])
def test_the_other_blobs_stay(flavour):
    options = {"drift_centroids": 3, "centroids": 6, "speed": 0.01}
    moved, label = open_generator("rbf_drift", rng=flavour, **options).take(400)
    plain, same = open_generator("rbf", rng=flavour, centroids=6).take(400)
    assert np.array_equal(label, same)
    stays = (moved == plain).all(axis=1)
    assert 0 < stays.sum() < 400
    assert Plugin(rng=flavour, centroids=2).directions().shape == (2, 10)
