"""Start page: the queue and the day of an annotator; for operators the models, and the troubles first."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import Any, Final
from urllib.parse import quote

from nicegui import run, ui

from streamapp.web.clock import now_ms
from streamapp.web.formatting import cut, moment, number
from streamapp.web.page_frame import Person, frame
from streamapp.web.pages.sparkline import sparkline
from streamapp.web.pages.surroundings import Surroundings
from streamapp.web.queue.overview import Day, OpenRequests
from streamapp.web.users import OPERATOR
from streamapp.web.watch.inspector import Found
from streamapp.web.watch.model_words import accuracy_in_words
from streamapp.web.watch.watched import ModelRow
from streamapp.web.watch.watching import LOOK_S, Looking, Watching, heading, model_link
from streamapp.web.wording import span

MODELS: Final = 10
INSPECTED_S: Final = 15.0
SOON_MS: Final = 3600 * 1000
"""A request whose deadline is nearer than this needs a hand."""
RECENT_MS: Final = 24 * 3600 * 1000
"""A drift alarm of this age or less needs a look."""
CALM: Final = "Nothing needs a hand now."
NO_REQUESTS: Final = (
    "No model waits for a label. A model whose spec has a query strategy requests labels as its records come."
)
NO_MODELS: Final = (
    "No model is known yet. A model begins with the first record of its key: send records with "
    "'grove replay', or try 'grove demo --web'."
)


class StartPage:
    """The elements of the page in one browser."""

    def __init__(self, around: Surroundings, watching: Watching | None, person: Person) -> None:
        """watching: None if models are not watched, as in tests of the queue alone."""
        self._around, self._overview, self._person = around, around.queue.overview, person
        self._watching = watching if person.role == OPERATOR else None
        self._behind: int | None = None
        self._has_workers = True
        self._letters: int | None = None
        self._shown: dict[int, str] = {}
        with frame("/", person, has_users=around.has_users, wide=True):
            heading("Start")
            if self._watching is not None:
                heading("What needs a hand", 2)
                self._hands = ui.html(sanitize=False).props("role=status").classes("w-full")
            with ui.element("div").classes("grove-grid"):
                with ui.element("section").classes("grove-tile"):
                    heading("My queue", 2)
                    self._queue = ui.label().props("role=status")
                    ui.link("Label the next card", "/label").classes("grove-action")
                with ui.element("section").classes("grove-tile"):
                    heading("My day", 2)
                    self._day = ui.label()
                if self._watching is not None:
                    with ui.element("section").classes("grove-tile"):
                        heading("Lag", 2)
                        self._lag = Looking(self._watching.inspector, self._draw_lag, person)
                        ui.link("All partitions", "/partitions")
                    with ui.element("section").classes("grove-tile"):
                        heading("Dead letters", 2)
                        self._dead = Looking(self._watching.inspector, self._draw_letters, person)
                        ui.link("All dead letters", "/dead-letters")
            if self._watching is not None:
                heading("Requested labels, by model", 2)
                self._asked = ui.html(sanitize=False).classes("w-full")
                heading("Models", 2)
                self._models = ui.html(sanitize=False).classes("w-full")
                ui.link("All models", "/models")
        ui.timer(LOOK_S, self.tick)
        ui.timer(0.0, self.tick, once=True)
        if self._watching is not None:
            ui.timer(INSPECTED_S, self._inspect)
            ui.timer(0.0, self._inspect, once=True)

    async def tick(self) -> None:
        """Show the current state of queue and models."""
        if not self._person.signed_in():
            ui.navigate.to("/sign-in")
            return
        now = now_ms()
        self._queue.set_text(queue_in_words(self._around.counts().open))
        day = await run.io_bound(self._overview.day_of, self._person.annotator, now)
        self._day.set_text(day_in_words(day))
        if self._watching is None:
            return
        asked = await run.io_bound(self._overview.by_model, now)
        rows, curves = await run.io_bound(self._newest)
        self._set(self._asked, asked_table(asked, now) if asked else f"<p>{html.escape(NO_REQUESTS)}</p>")
        self._set(
            self._models, models_table(rows, curves, now) if rows else f"<p>{html.escape(NO_MODELS)}</p>"
        )
        lines = hands(
            self._around.trouble(),
            asked,
            rows,
            now,
            behind=self._behind,
            has_workers=self._has_workers,
            letters=self._letters,
        )
        self._set(self._hands, hands_list(lines))

    def _newest(self) -> tuple[list[ModelRow], dict[str, list[float]]]:
        assert self._watching is not None
        watched = self._watching.watched
        rows, _ = watched.models("", "last_ms", descending=True, first=0, count=MODELS)
        return rows, {row.key: accuracies(watched.curve(row.key)) for row in rows}

    def _set(self, element: ui.html, text: str) -> None:
        """Send a part of the page again only if it has changed."""
        if self._shown.get(element.id) != text:
            self._shown[element.id] = text
            element.set_content(text)

    async def _inspect(self) -> None:
        await self._lag.look("partitions", fresh_ms=round(INSPECTED_S * 900))
        await self._dead.look("dead-letters", fresh_ms=round(INSPECTED_S * 900), limit=1)

    def _draw_lag(self, reply: Found) -> None:
        self._behind = sum(row.get("behind", 0) for row in reply.answer["rows"])
        self._has_workers = bool(reply.answer["members"])
        workers = _n(len(reply.answer["members"]), "worker") if self._has_workers else "no worker runs"
        ui.label(f"{number(self._behind)} records wait for the workers; {workers}.")

    def _draw_letters(self, reply: Found) -> None:
        self._letters = sum(reply.answer["reasons"].values())
        ui.label(f"{self._letters:,} in all." if self._letters else "There is none.")


def queue_in_words(n_open: int) -> str:
    """Return how many requests wait.

    >>> queue_in_words(1), queue_in_words(1200)
    ('1 request waits for an answer.', '1,200 requests wait for an answer.')
    """
    if not n_open:
        return "No request waits. A card appears on the label page as soon as a model requests a label."
    return f"{n_open:,} request{' waits' if n_open == 1 else 's wait'} for an answer."


def day_in_words(day: Day) -> str:
    """Return the answers of a day.

    >>> day_in_words(Day(3, 1, 0))
    'Today (UTC): 3 labels, "I do not know" 1 time.'
    """
    if not (day.labels or day.declined or day.values):
        return "No answer yet today (UTC)."
    parts = [_n(day.labels, "label")]
    parts += [f'"I do not know" {_n(day.declined, "time")}'] if day.declined else []
    parts += [f"{_n(day.values, 'card')} with values"] if day.values else []
    return f"Today (UTC): {', '.join(parts)}."


def _n(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def accuracies(points: Sequence[dict[str, Any]]) -> list[float]:
    """Return the accuracy of each evaluation: the unbiased one where there is one, else the recent one."""
    values = [
        point.get("accuracy_unbiased")
        if point.get("accuracy_unbiased") is not None
        else point.get("accuracy_windowed")
        for point in points
    ]
    return [value for value in values if isinstance(value, int | float)]


def hands(
    trouble: str,
    asked: Sequence[OpenRequests],
    rows: Sequence[ModelRow],
    now: int,
    *,
    behind: int | None,
    has_workers: bool,
    letters: int | None,
) -> list[tuple[str, str]]:
    """Return what needs a person, the most urgent first, each with the address of its page.

    behind, letters: None before they were looked up.
    """
    lines = [(trouble, "/partitions")] if trouble else []
    if behind is not None and not has_workers:
        lines.append((f"No worker runs; {behind:,} records wait.", "/partitions"))
    for requests in asked:
        if requests.deadline_ms is not None and requests.deadline_ms - now < SOON_MS:
            ms_left = requests.deadline_ms - now
            when = f"in {span(ms_left)}" if ms_left > 0 else "by the clock already"
            lines.append(
                (f"{cut(requests.key)}: {_n(requests.n, 'request')}, the first expires {when}.", "/label")
            )
    if letters:
        lines.append((f"{_n(letters, 'dead letter')}: records that were not processed.", "/dead-letters"))
    lines += [
        (f"{cut(row.key)}: drift alarm {span(now - row.drift_ms)} ago.", model_link(row.key))
        for row in rows
        if row.drift_ms and now - row.drift_ms < RECENT_MS
    ]
    return lines


def hands_list(lines: Sequence[tuple[str, str]]) -> str:
    """Return a list of links as HTML; its texts are escaped."""
    if not lines:
        return f"<p>{CALM}</p>"
    items = "".join(
        f'<li><a href="{html.escape(address)}">{html.escape(text)}</a></li>' for text, address in lines
    )
    return f"<ol>{items}</ol>"


def asked_table(asked: Sequence[OpenRequests], now: int) -> str:
    """Return the open requests by model as HTML."""
    rows = [
        (
            _model(requests.key),
            f"{requests.n:,}",
            _ago(requests.oldest_ms, now),
            "none" if requests.deadline_ms is None else _in(requests.deadline_ms, now),
        )
        for requests in asked
    ]
    return _table(("Model", "Requests", "Oldest", "First deadline"), rows, numeric=(1,))


def models_table(rows: Sequence[ModelRow], curves: dict[str, list[float]], now: int) -> str:
    """Return the models with the newest records as HTML."""
    cells = [
        (
            _model(row.key),
            html.escape(accuracy_in_words(row)),
            sparkline(curves[row.key]),
            number(row.labels),
            number(row.drifts),
            _ago(row.last_ms, now),
        )
        for row in rows
    ]
    head = (
        "Model",
        "Accuracy (95 % interval)",
        "Its course",
        "Labels",
        "Drift alarms",
        "Newest evaluation or event",
    )
    return _table(head, cells, numeric=(3, 4))


def _model(key: str) -> str:
    return f'<a href="/model?key={quote(key, safe="")}">{html.escape(cut(key))}</a>'


def _ago(time_ms: int, now: int) -> str:
    """Return an age, with the time itself as a hint."""
    return f'<span title="{html.escape(moment(time_ms))} UTC">{span(now - time_ms)} ago</span>'


def _in(time_ms: int, now: int) -> str:
    when = f"in {span(time_ms - now)}" if time_ms > now else "late by the clock"
    return f'<span title="{html.escape(moment(time_ms))} UTC">{when}</span>'


def _table(head: Sequence[str], rows: Sequence[Sequence[str]], *, numeric: Sequence[int]) -> str:
    """Return a table as HTML; cells are HTML. numeric: columns with numbers, to the right."""

    def place(at: int) -> str:
        return ' class="grove-number"' if at in numeric else ""

    top = "".join(f'<th scope="col"{place(at)}>{html.escape(text)}</th>' for at, text in enumerate(head))
    body = "".join(
        f"<tr>{''.join(f'<td{place(at)}>{cell}</td>' for at, cell in enumerate(row))}</tr>" for row in rows
    )
    return (
        '<div class="grove-scroll" tabindex="0" role="region" aria-label="Table">'
        f'<table class="grove-table"><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>'
    )
