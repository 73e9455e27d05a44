"""Delays as people write them and as they are drawn."""

import numpy as np
import pytest

from topics.delay import Delay
from topics.draws import Draw

ROWS = np.arange(100_000, dtype=np.int64)


@pytest.mark.parametrize(
    ("text", "delay"),
    [
        ("0", Delay()),
        ("200", Delay(200)),
        ("200 records", Delay(200)),
        ("~50", Delay(50, "records", True)),
        ("30s", Delay(30, "seconds")),
        ("250ms", Delay(0.25, "seconds")),
        ("~1.5 s", Delay(1.5, "seconds", True)),
        ("5min", Delay(300, "seconds")),
        ("5m", Delay(300, "seconds")),
        ("2h", Delay(7200, "seconds")),
    ],
)
def test_parsing(text, delay):
    assert Delay.parse(text) == delay


@pytest.mark.parametrize("text", ["", "-1", "ten", "5 days", "~", "1e3", "30 s later"])
def test_what_is_no_delay_shows_how_to_write_one(text):
    with pytest.raises(ValueError, match=r"must be a number of records \(200\) or a time"):
        Delay.parse(text)


@pytest.mark.parametrize("amount", [-1, float("inf"), float("nan")])
def test_impossible_amounts(amount):
    with pytest.raises(ValueError, match="must be at least 0"):
        Delay(amount)


def test_half_a_record_is_no_delay():
    with pytest.raises(ValueError, match=r"delay=0.5 records must be a whole number"):
        Delay(0.5)


def test_fixed_delays_are_all_the_same():
    assert set(Delay(7).draw(1, Draw.LABEL_DELAY, ROWS[:100])) == {7.0}


def test_random_records_are_geometric():
    drawn = Delay(20, "records", True).draw(1, Draw.LABEL_DELAY, ROWS)
    assert np.array_equal(drawn, np.floor(drawn)) and drawn.min() == 0
    error = np.sqrt(20 * 21 / len(ROWS))
    assert abs(drawn.mean() - 20) < 4 * error
    p = 1 / 21
    for k in (0, 1, 5):
        share = p * (1 - p) ** k
        assert abs((drawn == k).mean() - share) < 4 * np.sqrt(share / len(ROWS))


def test_random_seconds_are_exponential():
    drawn = Delay(3.0, "seconds", True).draw(1, Draw.LABEL_DELAY, ROWS)
    assert drawn.min() >= 0
    assert abs(drawn.mean() - 3) < 4 * 3 / np.sqrt(len(ROWS))
    for t in (1, 3, 9):
        share = np.exp(-t / 3)
        assert abs((drawn > t).mean() - share) < 4 * np.sqrt(share / len(ROWS))


def test_random_delays_with_mean_nothing_are_nothing():
    assert set(Delay(0, "records", True).draw(1, Draw.LABEL_DELAY, ROWS[:10])) == {0.0}
