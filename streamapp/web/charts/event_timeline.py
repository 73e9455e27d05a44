"""Timeline: the events of a model at their times, with a row and a symbol for each kind."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final
from urllib.parse import quote

from streamapp.web.charts.drawing import (
    ALARM,
    GRID,
    SYMBOLS,
    TEXT,
    TOOLTIP,
    Drawing,
    Link,
    colour,
    template_free,
)
from streamapp.web.formatting import cut, event_in_words, moment, number

KINDS_MAX: Final = len(SYMBOLS)
"""Kinds of events that have a row; the rest share the last one."""
OTHER: Final = "other"
ORDER: Final = ("drift", "split", "revised", "pruned")
"""Kinds in the first rows; any further kind follows by name."""


def event_timeline(
    events: Sequence[Mapping[str, Any]],
    address: str = "",
    record_page: Callable[[Mapping[str, Any]], str] = lambda _: "",
) -> Drawing:
    """Return events at their times.

    address: page of the events, to which the kind is added. record_page: returns the page of the record that
    led to an event; "": it has none. A click on a point opens it or, without one, the events of its kind.
    """
    ordered = sorted(events, key=lambda event: event["time_ms"])
    kinds = sorted({str(event["event"]) for event in events}, key=_rank)
    rows_of = {
        kind: kind if at < KINDS_MAX - 1 or len(kinds) <= KINDS_MAX else OTHER
        for at, kind in enumerate(kinds)
    }
    listed = list(dict.fromkeys(rows_of.values()))
    series = [
        {
            "name": row,
            "type": "scatter",
            "symbol": SYMBOLS[at],
            "symbolSize": 11,
            "itemStyle": {"color": ALARM if row == "drift" else colour(at), "opacity": 0.8},
            "data": [
                {
                    "value": [event["time_ms"], row],
                    "text": template_free(f"{moment(event['time_ms'])} UTC\n{_words(event)}"),
                }
                for event in ordered
                if rows_of[event["event"]] == row
            ],
        }
        for at, row in enumerate(listed)
    ]
    style = {"axisLabel": {"color": TEXT, "hideOverlap": True}, "axisLine": {"lineStyle": {"color": TEXT}}}
    options = {
        "animation": False,
        "useUTC": True,
        "tooltip": {
            **TOOLTIP,
            "trigger": "item",
            ":formatter": "(item) => (item.data && item.data.text) || ''",
        },
        "grid": {"left": 8, "right": 24, "top": 12, "bottom": 8, "containLabel": True},
        "xAxis": {"type": "time", **style, "splitLine": {"show": True, "lineStyle": {"color": GRID}}},
        "yAxis": {"type": "category", "data": listed, "inverse": True, **style},
        "series": series,
    }
    rows, places, addresses = [], [], {}
    counts = dict.fromkeys(listed, 0)
    for event in ordered:
        row = rows_of[event["event"]]
        places.append((listed.index(row), counts[row]))
        if page := record_page(event):
            addresses[places[-1]] = page
        counts[row] += 1
        when = f"{moment(event['time_ms'])} UTC"
        rows.append([when, str(event["event"]), number(event.get("version")), _words(event)])
    readouts = [f"{row[0]}: {row[3]}" for row in rows]
    links = [
        Link(f"{kind} ({counts[kind]:,})", f"{address}&kind={quote(kind)}", kind)
        for kind in listed
        if address and kind != OTHER
    ]
    head = ["time", "event", "labels learned", "in words"]
    return Drawing(options, readouts, head, rows, places, links, addresses)


def _words(event: Mapping[str, Any]) -> str:
    return cut(event_in_words(dict(event)), 160)


def _rank(kind: str) -> tuple[int, str]:
    return (ORDER.index(kind) if kind in ORDER else len(ORDER), kind)
