"""Label charts: requested labels and their budget, and the classes of the labels over time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from streamapp.web.charts.axis import Axis, axis
from streamapp.web.charts.drawing import LINES_MAX, Drawing, Line, Names, Point, line_chart
from streamapp.web.formatting import cut

Evaluation = Mapping[str, Any]

ENDS: Final = ("answered", "declined", "expired", "outstanding")
"""How requests for labels end; outstanding requests wait."""
CLASSES_DRAWN: Final = LINES_MAX - 1
OTHERS: Final = "all others"
_NONE: Final[Evaluation] = {"classes": {}}


def budget_chart(points: Sequence[Evaluation], limit: float | None) -> Drawing:
    """Return the requested labels by their ends against records.

    limit: the labels per record that the budget allows; None: not known.
    """
    lines = [
        Line(name, [Point(point["records"], point.get(name, 0)) for point in points])
        for name in ENDS
        if name == "answered" or any(point.get(name) for point in points)
    ]
    if limit is not None:
        allowed = [Point(point["records"], round(limit * point["records"], 1)) for point in points]
        lines.append(Line("allowed by the budget", allowed))
    return line_chart(Names("records", "labels"), lines, y_axis=_counts)


def _counts(values: Sequence[float]) -> Axis:
    return axis([0.0, *values], floor=0.0, span_min=5.0)


def class_history(points: Sequence[Evaluation]) -> Drawing:
    """Return the share of each class among the labels between consecutive evaluations.

    The classes with most labels have one line each; all other classes share one.
    """
    with_classes = [point for point in points if point.get("classes")]
    names = list(with_classes[-1]["classes"])[:CLASSES_DRAWN] if with_classes else []
    labels: list[int] = []
    shares: list[list[float]] = []
    for before, after in zip([_NONE, *with_classes], with_classes, strict=False):
        came = {name: max(0, n - before["classes"].get(name, 0)) for name, n in after["classes"].items()}
        if total := sum(came.values()):
            labels.append(after["labels"])
            shares.append([100 * came.get(name, 0) / total for name in names])
    lines = [
        Line(cut(name), [Point(at, parts[index]) for at, parts in zip(labels, shares, strict=True)])
        for index, name in enumerate(names)
    ]
    if with_classes and len(with_classes[-1]["classes"]) > len(names):
        rest = [Point(at, max(0.0, 100.0 - sum(parts))) for at, parts in zip(labels, shares, strict=True)]
        lines.append(Line(OTHERS, rest))
    return line_chart(Names("labels", "share", "%"), lines, y_axis=_shares)


def _shares(values: Sequence[float]) -> Axis:
    return axis([0.0, *values], floor=0.0, ceiling=100.0, span_min=10.0)
