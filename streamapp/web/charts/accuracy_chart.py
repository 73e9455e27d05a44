"""Accuracy charts: accuracy against labels of a model, of several models, and with a forecast."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from streamapp.web.charts.axis import Axis, axis
from streamapp.web.charts.drawing import Drawing, Line, Mark, Names, Point, line_chart
from streamapp.web.formatting import cut

Evaluation = Mapping[str, Any]

MORE: Final = 500
"""Labels that a forecast looks ahead (core/learning_curve/fit.py)."""
UNBIASED: Final = "all records, estimated"
RECENT: Final = "recent labels"
SO_FAR: Final = "all labels so far"
SPAN_MIN: Final = 10.0
"""An accuracy axis shows at least these points of per cent."""
_NAMES: Final = Names("labels", "accuracy", "%")


def accuracy_chart(points: Sequence[Evaluation], marks: Sequence[Mark] = ()) -> Drawing:
    """Return the accuracies of one model against labels, with the interval of the unbiased one."""
    lines = [
        Line(UNBIASED, _band(points, "accuracy_unbiased"), "95 % interval"),
        Line(RECENT, _values(points, "accuracy_windowed")),
        Line(SO_FAR, _values(points, "accuracy")),
    ]
    return line_chart(_NAMES, lines, marks, y_axis=accuracy_axis)


def compared_curves(curves: Mapping[str, Sequence[Evaluation]]) -> Drawing:
    """Return the recent and the unbiased accuracy of several models against labels, without intervals.

    A band of one model would hide the lines of another.
    """
    lines: list[Line] = []
    for name, points in curves.items():
        unbiased = [Point(point.x, point.y) for point in _band(points, "accuracy_unbiased")]
        lines += [Line(f"{cut(name)}: {RECENT}", _values(points, "accuracy_windowed"))]
        lines += [Line(f"{cut(name)}: {UNBIASED}", unbiased)]
    return line_chart(_NAMES, lines, y_axis=accuracy_axis)


def forecast_chart(evaluation: Evaluation | None) -> Drawing:
    """Return the accuracy by intervals of labels with a band of 90 %, and its forecast for 500 more."""
    newest: Evaluation = evaluation or {}
    curve = newest.get("learning_curve") or {"labels": [], "accuracy": []}
    intervals = [
        Point((first + last) / 2, 100 * value, 100 * low, 100 * high)
        for (first, last), (value, low, high) in zip(curve["labels"], curve["accuracy"], strict=True)
    ]
    figures = [newest.get(f"accuracy_forecast{end}") for end in ("", "_low", "_high")]
    ahead: list[Point] = []
    if None not in figures:
        value, low, high = (100 * float(figure) for figure in figures if figure is not None)
        ahead = [*intervals[-1:], Point(newest["labels"] + MORE, value, low, high)]
    lines = [
        Line("accuracy by labels", intervals, "90 % band"),
        Line(f"forecast for {MORE} more labels", ahead, "90 % band"),
    ]
    return line_chart(_NAMES, lines, y_axis=accuracy_axis)


def accuracy_axis(values: Sequence[float]) -> Axis:
    """Return an axis of per cent that shows the values and not all from 0.

    >>> accuracy_axis([88.0, 91.5])
    Axis(low=84.0, high=96.0, step=2.0)
    """
    return axis(values, floor=0.0, ceiling=100.0, span_min=SPAN_MIN)


def _values(points: Sequence[Evaluation], measure: str) -> list[Point]:
    return [Point(point["labels"], _share(point.get(measure))) for point in points]


def _band(points: Sequence[Evaluation], measure: str) -> list[Point]:
    """Return the points that have the measure and both ends of its interval."""
    names = (measure, f"{measure}_low", f"{measure}_high")
    return [
        Point(point["labels"], *(_share(point[name]) for name in names))
        for point in points
        if all(point.get(name) is not None for name in names)
    ]


def _share(value: float | None) -> float | None:
    return None if value is None else 100.0 * value
