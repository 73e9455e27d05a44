"""Labels: what labels buy, how many were requested, and of which classes they are."""

from __future__ import annotations

import asyncio
import html
from collections.abc import Sequence
from typing import Any, Final

from nicegui import ui

from streamapp.web.charts.accuracy_chart import forecast_chart
from streamapp.web.charts.chart_view import ChartView
from streamapp.web.charts.label_charts import budget_chart, class_history
from streamapp.web.formatting import cut, number, share
from streamapp.web.pages.model.measure_words import advice_in_words
from streamapp.web.pages.model.tabs import Newest, TabPlace
from streamapp.web.watch.inspector import Found
from streamapp.web.watch.watching import Looking, heading

CLASSES_LISTED: Final = 20
SPEC_FRESH_MS: Final = 600_000
"""Age of a model whose budget is drawn, at most: a budget seldom changes."""


class LabelsTab:
    """The elements of the tab in one browser."""

    def __init__(self, place: TabPlace) -> None:
        self._place = place
        self._limit: float | None = None
        heading("What would 500 more labels buy?", 2)
        self._advice = ui.label()
        self._forecast = ChartView(
            "Accuracy against labels, with a forecast", empty="No evaluation has a learning curve yet."
        )
        heading("Requested labels", 2)
        self._budget = ChartView("Requested labels against records")
        heading("Classes of the labels over time", 2)
        self._classes = ChartView("Shares of the classes among new labels, against labels")
        heading("Classes of all labels learned", 2)
        self._looking = Looking(place.watching.inspector, self._draw, place.person)

    async def begin(self) -> None:
        """Look up the budget, and the weights of the classes."""
        await self._looking.look("model", fresh_ms=SPEC_FRESH_MS, key=self._place.asked.key)
        await self._show_budget()

    async def show(self, newest: Newest) -> None:
        """Show the newest evaluation, and the curves up to it."""
        self._advice.set_text(advice_in_words(newest.evaluation))
        self._forecast.show(forecast_chart(newest.evaluation))
        points = await self._show_budget()
        self._classes.show(class_history(points))

    async def _show_budget(self) -> list[dict[str, Any]]:
        watched, key = self._place.watching.watched, self._place.asked.key
        points: list[dict[str, Any]] = await asyncio.to_thread(watched.curve, key)
        self._budget.show(budget_chart(points, self._limit))
        return points

    def _draw(self, reply: Found) -> None:
        model = reply.answer
        self._limit = model["spec"]["budget"].get("limit")
        masses = model["nodes"][0]["masses"] if model["nodes"] else []
        ui.html(shares_table(model["classes"][: len(masses)], masses), sanitize=False).classes("w-full")


def shares_table(classes: Sequence[str], masses: Sequence[float]) -> str:
    """Return the classes with the largest learned weights, with a bar each, as HTML; texts are escaped."""
    heaviest = sorted(zip(masses, classes, strict=True), reverse=True)
    total = sum(masses)
    if not total:
        return "<p>No label has been learned yet.</p>"
    rows = "".join(
        f'<tr><th scope="row">{html.escape(cut(name))}</th>'
        f'<td class="grove-number">{number(round(mass, 2))}</td>'
        f'<td class="grove-number">{share(mass / total)}</td><td>{_bar(mass / total)}</td></tr>'
        for mass, name in heaviest[:CLASSES_LISTED]
    )
    n_more = len(heaviest) - CLASSES_LISTED
    more = f"<caption>and {n_more:,} more classes</caption>" if n_more > 0 else ""
    return (
        f'<table class="grove-table grove-shares">{more}<thead><tr><th scope="col">Class</th>'
        '<th scope="col" class="grove-number">Weight</th><th scope="col" class="grove-number">Share</th>'
        f'<th scope="col">Picture</th></tr></thead><tbody>{rows}</tbody></table>'
    )


def _bar(part: float) -> str:
    return (
        '<svg aria-hidden="true" viewBox="0 0 100 12" preserveAspectRatio="none">'
        f'<rect width="{100 * part:.1f}" height="12" fill="var(--grove-series-1)"/></svg>'
    )
