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
        ("~50", Delay(50, "records", "exponential")),
        ("30s", Delay(30, "seconds")),
        ("250ms", Delay(0.25, "seconds")),
        ("~1.5 s", Delay(1.5, "seconds", "exponential")),
        ("5min", Delay(300, "seconds")),
        ("5m", Delay(300, "seconds")),
        ("2h", Delay(7200, "seconds")),
        ("exponential:30s", Delay(30, "seconds", "exponential")),
        ("exponential: 50", Delay(50, "records", "exponential")),
        ("uniform:10-200", Delay(10, "records", "uniform", 200)),
        ("uniform:0.5s-5min", Delay(0.5, "seconds", "uniform", 300)),
        ("uniform:10-60s", Delay(10, "seconds", "uniform", 60)),
        ("lognormal:30s,1.5", Delay(30, "seconds", "lognormal", 1.5)),
        ("lognormal:200 , 0.5", Delay(200, "records", "lognormal", 0.5)),
    ],
)
def test_parsing(text, delay):
    assert Delay.parse(text) == delay


@pytest.mark.parametrize(
    "text",
    [
        *["", "ten", "5 days", "~", "1e3", "30 s later", "fixed:3", "normal:3,1", "~exponential:3"],
        *["exponential:", "exponential:3,4", "uniform:3", "uniform:3-", "lognormal:30s", "lognormal:30s,2s"],
    ],
)
def test_what_is_no_delay_shows_how_to_write_one(text):
    with pytest.raises(ValueError, match=r"must be a number of records \(200\) or a time"):
        Delay.parse(text)


@pytest.mark.parametrize(
    ("amount", "rule"), [(-1, "least 0"), (float("nan"), "least 0"), (float("inf"), "most 1,000")]
)
def test_impossible_amounts(amount, rule):
    with pytest.raises(ValueError, match=f"must be at {rule}"):
        Delay(amount)


@pytest.mark.parametrize("text", ["-1", "-30s", "~-5", "uniform:-3-5", "uniform:3--5", "lognormal:-30s,1.5"])
def test_a_negative_delay_is_refused_by_its_bound(text):
    message = f"delay='{text}' must be at least 0; without a delay write 0"
    with pytest.raises(ValueError, match=message):
        Delay.parse(text)


@pytest.mark.parametrize(
    ("text", "most"),
    [
        ("1000000000001", "1,000,000,000,000 records"),
        ("uniform:0-" + 400 * "9", "1,000,000,000,000 records"),
        ("3155760001s", "3,155,760,000 seconds, 100 years"),
        ("~900000h", "3,155,760,000 seconds, 100 years"),
        ("lognormal:" + 20 * "9" + "s,1", "3,155,760,000 seconds, 100 years"),
    ],
)
def test_a_delay_that_no_timestamp_has_room_for_is_refused_by_its_bound(text, most):
    message = f"delay='{text}' must be at most {most}; labels that never come are a loss, not a delay"
    with pytest.raises(ValueError, match=message):
        Delay.parse(text)


def test_drawn_delays_are_at_most_the_longest():
    """A delay beyond the room of a timestamp would be in the past."""
    drawn = Delay.parse("lognormal:100000h,10").draw(1, Draw.LABEL_DELAY, ROWS)
    assert (drawn == 3_155_760_000).any()
    assert drawn.max() == 3_155_760_000


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "uniform:10s-60",
            "delay='uniform:10s-60' must have both ends in records, or both in a unit of time",
        ),
        ("uniform:60-10", "delay=uniform:60-10 must have a LOW that is at most its HIGH; exchange them"),
        ("uniform:5min-10s", "delay=uniform:300s-10s must have a LOW that is at most its HIGH"),
        ("uniform:0.5-3", "delay=uniform:0.5-3 records must be a whole number"),
        ("lognormal:0,1", "delay=lognormal:0,1 must have a MEDIAN above 0; without a delay write 0"),
        ("lognormal:3s,11", "delay=lognormal:3s,11 must have a SIGMA from 0 to 10, the standard deviation"),
        ("lognormal:3s,-1", "delay=lognormal:3s,-1 must have a SIGMA from 0 to 10"),
    ],
)
def test_parameters_that_make_no_distribution(text, message):
    with pytest.raises(ValueError, match=message):
        Delay.parse(text)


@pytest.mark.parametrize(
    "text", ["7", "1234567", "2.5s", "0.00001s", "exponential:30s", "uniform:10-200", "lognormal:30s,1.5"]
)
def test_the_text_of_a_delay_is_read_back(text):
    assert Delay.parse(text).text == text


def test_half_a_record_is_no_delay():
    with pytest.raises(ValueError, match=r"delay=0.5 records must be a whole number"):
        Delay(0.5)


def test_fixed_delays_are_all_the_same():
    assert set(Delay(7).draw(1, Draw.LABEL_DELAY, ROWS[:100])) == {7.0}


def test_random_records_are_geometric():
    drawn = Delay(20, "records", "exponential").draw(1, Draw.LABEL_DELAY, ROWS)
    assert np.array_equal(drawn, np.floor(drawn)) and drawn.min() == 0
    error = np.sqrt(20 * 21 / len(ROWS))
    assert abs(drawn.mean() - 20) < 4 * error
    p = 1 / 21
    for k in (0, 1, 5):
        share = p * (1 - p) ** k
        assert abs((drawn == k).mean() - share) < 4 * np.sqrt(share / len(ROWS))


def test_random_seconds_are_exponential():
    drawn = Delay(3.0, "seconds", "exponential").draw(1, Draw.LABEL_DELAY, ROWS)
    assert drawn.min() >= 0
    assert abs(drawn.mean() - 3) < 4 * 3 / np.sqrt(len(ROWS))
    for t in (1, 3, 9):
        share = np.exp(-t / 3)
        assert abs((drawn > t).mean() - share) < 4 * np.sqrt(share / len(ROWS))


def test_random_delays_with_mean_nothing_are_nothing():
    assert set(Delay(0, "records", "exponential").draw(1, Draw.LABEL_DELAY, ROWS[:10])) == {0.0}


@pytest.mark.parametrize("text", ["~20", "exponential:3s", "uniform:5-9", "uniform:1s-2s", "lognormal:30s,1"])
def test_a_row_has_the_same_delay_in_every_batch_and_another_with_another_seed(text):
    delay, rows = Delay.parse(text), ROWS[:1000]
    drawn = delay.draw(1, Draw.LABEL_DELAY, rows)
    in_parts = [delay.draw(1, Draw.LABEL_DELAY, part) for part in (rows[:7], rows[7:500], rows[500:])]
    assert np.array_equal(np.concatenate(in_parts), drawn)
    assert not np.array_equal(delay.draw(2, Draw.LABEL_DELAY, rows), drawn)


def test_uniform_records_are_whole_and_include_both_ends():
    drawn = Delay.parse("uniform:5-9").draw(1, Draw.LABEL_DELAY, ROWS)
    shares = [(drawn == records).mean() for records in range(5, 10)]
    assert sum(shares) == pytest.approx(1.0)
    assert max(abs(share - 0.2) for share in shares) < 4 * np.sqrt(0.16 / len(ROWS))


def test_uniform_seconds_fill_the_range():
    drawn = Delay.parse("uniform:10s-2min").draw(1, Draw.LABEL_DELAY, ROWS)
    assert 10 <= drawn.min() < 10.1 and 119.9 < drawn.max() <= 120
    assert abs(drawn.mean() - 65) < 4 * 110 / np.sqrt(12 * len(ROWS))


@pytest.mark.parametrize(("text", "step"), [("lognormal:30s,1.5", 0.0), ("lognormal:3000,1.5", 0.5)])
def test_the_logarithm_of_a_lognormal_delay_is_normal(text, step):
    delay = Delay.parse(text)
    drawn = delay.draw(1, Draw.LABEL_DELAY, ROWS)
    assert step == 0.0 or np.array_equal(drawn, np.rint(drawn))
    for z, share in ((-1.0, 0.158655), (0.0, 0.5), (2.0, 0.977250)):
        below = drawn <= delay.amount * np.exp(1.5 * z) + step
        assert abs(below.mean() - share) < 4 * np.sqrt(0.25 / len(ROWS))
