"""Events: what happened to the model, by kind, newest or oldest first."""

from __future__ import annotations

import asyncio
import html
from collections.abc import Mapping, Sequence
from typing import Any, Final

from nicegui import ui

from streamapp.web.charts.chart_view import ChartView
from streamapp.web.charts.event_timeline import event_timeline
from streamapp.web.clock import now_ms
from streamapp.web.formatting import cut, event_in_words, number
from streamapp.web.layout.times import time_html
from streamapp.web.pages.model.tabs import Asked, Newest, TabPlace
from streamapp.web.watch.watching import heading

ROWS: Final = 20
DRAWN: Final = 200
"""Events on the timeline, at most: the newest."""
ALL: Final = ""
ORDERS: Final = {False: "newest first", True: "oldest first"}


class EventsTab:
    """The elements of the tab in one browser."""

    def __init__(self, place: TabPlace) -> None:
        self._place = place
        self._first, self._shown, self._partition = 0, "", 0
        self._question = 0
        heading("Events over time", 2)
        self._timeline = ChartView(
            "Events by time", low=True, empty="Nothing has happened to this model yet."
        )
        heading("List of events", 2)
        with ui.row().classes("items-end"):
            kind = place.asked.kind
            kinds = {ALL: "all kinds", kind: cut(kind) or "all kinds"}
            self._kind = ui.select(kinds, value=kind, label="Kind", on_change=self._choose)
            self._kind.classes("grove-select")
            self._order = ui.select(ORDERS, value=False, label="Order", on_change=self._choose)
            self._order.classes("grove-select")
        self._count = ui.label().props("role=status")
        self._list = ui.html(sanitize=False).classes("w-full")
        with ui.row():
            self._back = ui.button("Previous", on_click=lambda: self._turn(-ROWS))
            self._on = ui.button("Next", on_click=lambda: self._turn(ROWS))
            for button in (self._back, self._on):
                button.props("no-caps outline")

    async def begin(self) -> None:
        """Nothing but what the topics have."""

    async def show(self, newest: Newest) -> None:
        """Show events that came since the last call."""
        self._partition = newest.model.partition
        await self._fill()

    async def _choose(self) -> None:
        self._first = 0
        kind = str(self._kind.value or ALL)
        ui.navigate.history.replace(self._place.asked.link("events", kind=kind))
        await self._fill()

    async def _turn(self, by: int) -> None:
        self._first = max(0, self._first + by)
        await self._fill()

    async def _fill(self) -> None:
        watched, asked = self._place.watching.watched, self._place.asked
        self._question += 1
        question, kind = self._question, str(self._kind.value or ALL)
        first, oldest_first = self._first, bool(self._order.value)
        counts = await asyncio.to_thread(watched.event_counts, asked.key)
        drawn = await asyncio.to_thread(watched.events, asked.key, count=DRAWN)
        kinds = (kind,) if kind else ()
        events = await asyncio.to_thread(
            watched.events, asked.key, kinds, first=first, count=ROWS, oldest_first=oldest_first
        )
        if question != self._question:
            return  # a person has chosen something else meanwhile, whose answer comes
        options = {ALL: f"all kinds ({sum(counts.values()):,})"}
        options |= {name: f"{cut(name)} ({n:,})" for name, n in counts.items()}
        options.setdefault(kind, f"{cut(kind)} (0)")
        if options != self._kind.options:
            self._kind.set_options(options)
        self._timeline.show(event_timeline(drawn, asked.link("events"), self._record_page))
        total = counts.get(kind, 0) if kind else sum(counts.values())
        last = first + len(events)
        self._count.set_text(f"{first + 1:,}–{last:,} of {total:,}" if events else "No such event.")
        self._back.set_enabled(first > 0)
        self._on.set_enabled(last < total)
        text = events_table(events, asked, self._partition, now_ms()) if events else ""
        if text != self._shown:
            self._shown = text
            self._list.set_content(text)

    def _record_page(self, event: Mapping[str, Any]) -> str:
        at = record_place(event, self._partition)
        return "" if at is None else self._place.asked.link("explanation", at=at)


def events_table(events: Sequence[Mapping[str, Any]], asked: Asked, partition: int, now: int) -> str:
    """Return events as an HTML table; texts are escaped. A record of instances leads to its explanation."""
    rows = "".join(
        f"<tr><td>{time_html(event['time_ms'], now)}</td><td>{html.escape(cut(str(event['event'])))}</td>"
        f'<td class="grove-number">{number(event.get("version"))}</td>'
        f"<td>{html.escape(cut(event_in_words(dict(event)), 300))}</td>"
        f"<td>{_record(event, asked, partition)}</td></tr>"
        for event in events
    )
    head = "".join(
        f'<th scope="col"{place}>{name}</th>'
        for name, place in (
            ("When", ""),
            ("Event", ""),
            ("Labels learned", ' class="grove-number"'),
            ("In words", ""),
            ("Record", ""),
        )
    )
    return (
        '<div class="grove-scroll" tabindex="0" role="region" aria-label="Events">'
        f'<table class="grove-table"><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>'
    )


def _record(event: Mapping[str, Any], asked: Asked, partition: int) -> str:
    """Return the record that led to an event; with a link, if it is a record of instances."""
    name = html.escape(cut(str(event.get("instance_id") or "a control"), 60))
    place = record_place(event, partition)
    if place is None:
        return name
    address = html.escape(asked.link("explanation", at=place))
    return f'<a href="{address}">{name}</a>'


def record_place(event: Mapping[str, Any], partition: int) -> str | None:
    """Return the place of an event's record in instances, PARTITION:OFFSET; None: it is of another topic.

    >>> record_place({"topic": "grove.instances", "offset": 7}, 2), record_place({"topic": "grove.labels"}, 2)
    ('2:7', None)
    """
    return f"{partition}:{event['offset']}" if str(event.get("topic")).endswith("instances") else None
