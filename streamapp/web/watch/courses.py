"""Courses: the accuracy of models over time in a few points, kept until a model has a new evaluation."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from streamapp.web.watch.watched import ModelRow, Watched

POINTS: Final = 48
"""Points of a course at most; a small picture shows no more."""
KEPT: Final = 1000


class CoursePoint(NamedTuple):
    """An accuracy, with the ends of its 95 % interval where it is estimated for all records."""

    accuracy: float
    low: float | None = None
    high: float | None = None


class Courses:
    """Courses by model; any thread may call. Many pages show the same models."""

    def __init__(self) -> None:
        self._turn = threading.Lock()
        self._kept: OrderedDict[str, tuple[ModelRow, list[CoursePoint]]] = OrderedDict()

    def of(self, watched: Watched, row: ModelRow) -> list[CoursePoint]:
        """Return the course of a model, oldest point first."""
        with self._turn:
            kept = self._kept.get(row.key)
            if kept is not None and kept[0] == row:
                self._kept.move_to_end(row.key)
                return kept[1]
        course = thinned(course_of(watched.curve(row.key)))
        with self._turn:
            self._kept[row.key] = row, course
            self._kept.move_to_end(row.key)
            while len(self._kept) > KEPT:
                self._kept.popitem(last=False)
        return course


def course_of(evaluations: Sequence[Mapping[str, Any]]) -> list[CoursePoint]:
    """Return the accuracy of each evaluation: over all records if one has it, else of recent labels.

    One course has one kind of accuracy, because the two kinds differ and a change of kind would look like a
    change of the model.
    """
    unbiased = [
        CoursePoint(
            point["accuracy_unbiased"],
            _number(point.get("accuracy_unbiased_low")),
            _number(point.get("accuracy_unbiased_high")),
        )
        for point in evaluations
        if _number(point.get("accuracy_unbiased")) is not None
    ]
    recent = [_number(point.get("accuracy_windowed")) for point in evaluations]
    return unbiased or [CoursePoint(value) for value in recent if value is not None]


def thinned(course: Sequence[CoursePoint]) -> list[CoursePoint]:
    """Return at most POINTS points, evenly chosen, the newest included.

    >>> course = [CoursePoint(n / 399) for n in range(400)]
    >>> len(thinned(course)), thinned(course)[-1].accuracy
    (48, 1.0)
    """
    if len(course) <= POINTS:
        return list(course)
    last = len(course) - 1
    return [course[round(at * last / (POINTS - 1))] for at in range(POINTS)]


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
