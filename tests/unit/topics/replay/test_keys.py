"""Rows find their model key, the same one whenever they are sent."""

import numpy as np

from topics.clients.partitioner import partition_of
from topics.replay import ReplayPlan
from topics.replay.row_keys import KeyRing

ROWS = np.arange(50_000, dtype=np.int64)
KEYS = tuple(f"model-{n}" for n in range(20))


def ring(**options):
    return KeyRing(ReplayPlan(keys=KEYS, **options), 8)


def test_partitions_are_those_of_murmur2():
    assert ring().partitions.tolist() == [partition_of(k.encode(), 8) for k in KEYS]


def test_round_robin():
    assert ring(spread="round-robin").of(ROWS[:45]).tolist() == [n % 20 for n in range(45)]


def test_zipf_shares():
    keys = ring(spread="zipf", zipf_exponent=1.1).of(ROWS)
    shares = np.arange(1, 21) ** -1.1
    shares /= shares.sum()
    found = np.bincount(keys, minlength=20) / len(ROWS)
    assert np.all(np.abs(found - shares) < 5 * np.sqrt(shares / len(ROWS)))


def test_zipf_belongs_to_rows_and_seed():
    whole = ring(spread="zipf").of(ROWS[:1000])
    assert np.array_equal(whole[500:], ring(spread="zipf").of(ROWS[500:1000]))
    assert not np.array_equal(whole, ring(spread="zipf", seed=2).of(ROWS[:1000]))


def test_exponent_nothing_is_even():
    counts = np.bincount(ring(spread="zipf", zipf_exponent=0).of(ROWS), minlength=20)
    assert np.all(np.abs(counts - 2500) < 5 * 50)
