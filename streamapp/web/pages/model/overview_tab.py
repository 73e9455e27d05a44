"""Overview: how the model does now, and its accuracy over time."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Final

from nicegui import ui

from streamapp.web.charts.accuracy_chart import accuracy_chart
from streamapp.web.charts.chart_view import ChartView
from streamapp.web.charts.drawing import Mark
from streamapp.web.clock import now_ms
from streamapp.web.layout.data_table import DataTable
from streamapp.web.pages.model.measure_words import (
    MEASURES,
    advice_in_words,
    basis_in_words,
    measure_rows,
)
from streamapp.web.pages.model.tabs import Asked, Newest, TabPlace
from streamapp.web.watch.state_words import (
    Tile,
    accuracy_tile,
    challenger_tile,
    drift_tile,
    labels_tile,
    trend_tile,
)
from streamapp.web.watch.watched import is_alarm
from streamapp.web.watch.watching import heading

MARKED: Final = {"drift": "drift", "reset": "reset", "imported": "import", "promoted": "promotion"}
"""Kinds of events that are drawn into the curve, with their names there."""
MARKS_READ: Final = 200


class OverviewTab:
    """The elements of the tab in one browser."""

    def __init__(self, place: TabPlace) -> None:
        self._place = place
        asked = place.asked
        with ui.element("div").classes("grove-grid grove-tiles"):
            self._accuracy = _TileView("Accuracy", explained="accuracy")
            self._trend = _TileView("Trend")
            drifts = asked.link("events", kind="drift")
            self._drift = _TileView("Drift", "All drifts", drifts, explained="drift")
            self._labels = _TileView("Labels", "Requests, budget, classes", asked.link("labels"))
            self._challenger = _TileView("Challenger")
            self._more = _TileView("500 more labels", "Forecast", asked.link("labels"))
        heading("Accuracy", 2)
        self._curve = ChartView(
            "Accuracy against labels",
            empty="No evaluation yet: the first comes at evaluation.every labels of the spec.",
        )
        heading("Measures per class", 2)
        self._basis = ui.label()
        self._measures = DataTable(
            "Measures per class", MEASURES, key="name", empty="No evaluation has measures per class yet."
        )

    async def begin(self) -> None:
        """Nothing but what the topics have."""

    async def show(self, newest: Newest) -> None:
        """Show the newest evaluation, and the curve up to it."""
        watched, asked = self._place.watching.watched, self._place.asked
        points = await asyncio.to_thread(watched.curve, asked.key)
        events = await asyncio.to_thread(watched.events, asked.key, tuple(MARKED), count=MARKS_READ)
        drifts = [event for event in events if is_alarm(event["event"], event["detail"])]
        now = now_ms()
        self._accuracy.show(accuracy_tile(newest.model))
        self._trend.show(trend_tile(points, newest.evaluation))
        self._drift.show(drift_tile(newest.model, drifts[0] if drifts else None, now))
        self._labels.show(labels_tile(newest.model, newest.evaluation))
        self._challenger.show(challenger_tile(newest.evaluation))
        self._more.show(_advice(newest.evaluation))
        self._curve.show(accuracy_chart(points, curve_marks(events, asked)))
        self._basis.set_text(basis_in_words(newest.evaluation))
        self._measures.show(measure_rows(newest.evaluation))


class _TileView:
    """A tile: its title, a figure, words, and a link."""

    def __init__(self, title: str, link: str = "", address: str = "", *, explained: str = "") -> None:
        with ui.element("section").classes("grove-tile"):
            heading(title, 2, explained=explained)
            self._figure = ui.label().classes("grove-figure-large")
            self._words = ui.label().classes("grove-muted grove-text")
            if address:
                ui.link(link, address)

    def show(self, tile: Tile) -> None:
        self._figure.set_text(tile.figure)
        self._words.set_text(tile.words)


def _advice(evaluation: dict[str, Any] | None) -> Tile:
    advice = (evaluation or {}).get("advice")
    figure = {"stop": "Stop", "go on": "Go on", "ask again after drift": "Ask again"}.get(str(advice), "–")
    return Tile(figure, advice_in_words(evaluation))


def curve_marks(events: Sequence[Mapping[str, Any]], asked: Asked) -> list[Mark]:
    """Return drifts, resets and new models at their labels; each leads to the events of its kind."""
    return [
        Mark(
            event["version"],
            MARKED[event["event"]],
            asked.link("events", kind=event["event"]),
            is_alarm=event["event"] == "drift",
        )
        for event in events
        if event["event"] in MARKED
        and (event["event"] != "drift" or is_alarm(event["event"], event["detail"]))
    ]
