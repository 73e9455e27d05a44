"""Axes: they show every value between round ticks, and leave their bounds only with a value."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from streamapp.web.charts.accuracy_chart import SPAN_MIN, accuracy_axis
from streamapp.web.charts.axis import STEPS, axis

NUMBERS = st.floats(-1e9, 1e9) | st.integers(-1000, 1000)


@given(st.lists(NUMBERS, max_size=20), st.sampled_from([0.0, 1.0, 10.0]))
def test_every_value_lies_between_round_ticks(values: list[float], span: float) -> None:
    made = axis(values, span_min=span)
    ticks = made.ticks()
    slack = 1e-5 * made.step
    assert all(made.low - slack <= value <= made.high + slack for value in values)
    assert 2 <= len(ticks) <= 9
    power = 10.0 ** math.floor(math.log10(made.step) + 1e-9)
    assert any(math.isclose(made.step / power, step) for step in STEPS)
    assert math.isclose(made.low / made.step, round(made.low / made.step), abs_tol=1e-6)


@given(st.lists(st.floats(0.0, 100.0), min_size=1, max_size=20))
def test_an_axis_of_accuracy_stays_in_per_cent_and_does_not_begin_at_0(values: list[float]) -> None:
    made = accuracy_axis(values)
    assert 0.0 <= made.low < made.high <= 100.0
    assert made.high - made.low >= SPAN_MIN * 0.999
    spread = max(values) - min(values)
    if spread < 20.0 and min(values) > 30.0:
        assert made.low > 0.0, "a fall from 95 to 85 is seen"


def test_without_values_there_is_an_axis() -> None:
    assert len(axis([]).ticks()) >= 2
    assert axis([math.nan, math.inf]).ticks()
