"""Draws belong to rows: the same whatever the batch, even, and independent of each other."""

import numpy as np
import pytest

from topics.draws import Draw, uniform

ROWS = np.arange(200_000, dtype=np.int64)


def one(seed, stream, at):
    """SplitMix64 in plain Python."""
    mask = (1 << 64) - 1

    def mix(z):
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
        return z ^ (z >> 31)

    golden = 0x9E3779B97F4A7C15
    return (mix((mix((seed * golden + stream) & mask) + at * golden) & mask) >> 11) / (1 << 53)


@pytest.mark.parametrize("seed", [0, 1, 2**40])
def test_the_array_form_is_the_plain_form(seed):
    rows = np.array([0, 1, 2, 999, 2**40], dtype=np.int64)
    drawn = uniform(seed, Draw.LABEL_LOST, rows)
    assert drawn.tolist() == [one(seed, Draw.LABEL_LOST, int(r)) for r in rows]


def test_a_row_draws_the_same_in_any_batch():
    whole = uniform(1, Draw.LABEL_DELAY, ROWS[:1000])
    parts = [uniform(1, Draw.LABEL_DELAY, ROWS[a : a + 7]) for a in range(0, 1000, 7)]
    assert np.array_equal(whole, np.concatenate(parts)[:1000])


def test_draws_are_even():
    drawn = uniform(3, Draw.MODEL_KEY, ROWS)
    assert drawn.min() >= 0 and drawn.max() < 1
    counts = np.histogram(drawn, 100, (0, 1))[0]
    # chi-square with 99 degrees of freedom: mean 99, standard deviation 14
    assert np.sum((counts - 2000) ** 2) / 2000 < 99 + 5 * 14


def test_streams_and_seeds_are_independent():
    columns = [uniform(s, stream, ROWS) for s in (1, 2) for stream in Draw]
    correlation = np.corrcoef(columns) - np.eye(len(columns))
    assert np.abs(correlation).max() < 5 / np.sqrt(len(ROWS))
