"""Compare page: the curves of two models in one chart, and the differences between the models."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from nicegui import ui

from streamapp.web.charts.accuracy_chart import compared_curves
from streamapp.web.charts.chart_view import ChartView
from streamapp.web.formatting import cut, number, share
from streamapp.web.page_frame import Person
from streamapp.web.watch.inspector import Found
from streamapp.web.watch.watching import Looking, Watching, heading, model_link, table, watch_frame

MEASURES: Final = {
    "records": "records",
    "labels": "labels",
    "accuracy": "accuracy",
    "accuracy_windowed": "accuracy on recent labels",
    "accuracy_unbiased": "accuracy over all records, estimated",
    "kappa": "kappa",
    "kappa_m": "kappa beside the most frequent class",
    "asked": "labels requested",
}
"""Names of the compared measures, by field of an evaluation."""


class ComparePage:
    """The elements of the page in one browser."""

    def __init__(self, watching: Watching, person: Person, first: str, second: str) -> None:
        self._watching, self._keys = watching, (first, second)
        with watch_frame("/models", person, watching):
            heading("Compare two models")
            with ui.row():
                for key in self._keys:
                    ui.link(key or "(no name)", model_link(key)).classes("grove-text")
            self._chart = ChartView("Accuracy of both models against labels", empty="No evaluation yet.")
            self._measures = ui.column().classes("w-full")
            heading("Differences", 2)
            self._differences = Looking(watching.inspector, self._draw, person)
        ui.timer(0.0, self._begin, once=True)

    async def _begin(self) -> None:
        first, second = self._keys
        watched = self._watching.watched
        curves = [await asyncio.to_thread(watched.curve, key) for key in self._keys]
        names = (first, second if second != first else f"{second} ")
        self._chart.show(compared_curves(dict(zip(names, curves, strict=True))))
        newest = [points[-1] if points else {} for points in curves]
        rows = [
            {"measure": title}
            | {f"of{at}": _said(name, evaluation.get(name)) for at, evaluation in enumerate(newest)}
            for name, title in MEASURES.items()
        ]
        with self._measures:
            table({"measure": "Measure", "of0": cut(first), "of1": cut(second)}, rows, "measure")
        await self._differences.look("differences", first=first, second=second)

    def _draw(self, reply: Found) -> None:
        if not reply.answer:
            ui.label("No difference in spec, schema, counts and tests.")
            return
        rows: list[dict[str, Any]] = [
            {
                "at": str(at),
                "part": difference["part"],
                "name": difference["name"],
                "first": cut(str(difference["first"]), 200),
                "second": cut(str(difference["second"]), 200),
            }
            for at, difference in enumerate(reply.answer)
        ]
        first, second = map(cut, self._keys)
        table({"part": "Part", "name": "Name", "first": first, "second": second}, rows, "at")


def _said(name: str, value: float | None) -> str:
    return share(value) if name.startswith("accuracy") else number(value)
