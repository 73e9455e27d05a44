"""Start page: the queue and the day of an annotator; for operators the models, and the troubles first."""

from __future__ import annotations

import asyncio
import html
from collections.abc import Sequence
from typing import Final, Literal, NamedTuple

from nicegui import ui

from streamapp.web.clock import now_ms
from streamapp.web.formatting import cut, number, span
from streamapp.web.layout.data_table import Column, DataTable, Row, number_cell, time_cell
from streamapp.web.layout.headings import heading
from streamapp.web.layout.navigation import may_see
from streamapp.web.layout.times import relative
from streamapp.web.page_frame import Person, frame
from streamapp.web.pages.surroundings import Surroundings
from streamapp.web.queue.overview import Day, OpenRequests
from streamapp.web.users import OPERATOR
from streamapp.web.watch.inspector import Found
from streamapp.web.watch.model_columns import (
    ACCURACY,
    COURSE,
    DRIFTS,
    KEY,
    LABELS,
    LAST,
    key_cell,
    model_cells,
)
from streamapp.web.watch.watched import ModelRow
from streamapp.web.watch.watching import LOOK_S, Looking, Watching, model_link

MODELS: Final = 10
ALARMS: Final = 10
INSPECTED_S: Final = 15.0
SOON_MS: Final = 3600 * 1000
"""A request whose deadline is nearer than this needs attention."""
RECENT_MS: Final = 24 * 3600 * 1000
"""A drift alarm of this age or less needs attention."""
CALM: Final = "Nothing needs attention now."
NO_REQUESTS: Final = (
    "No model waits for a label. A model whose spec has a query strategy requests labels as its records come."
)
NO_MODELS: Final = (
    "No model is known yet. A model begins with the first record of its key: send records with "
    "'grove replay', or try 'grove demo --web'."
)
ASKED: Final = {
    "key": KEY,
    "requests": Column("Requests", numeric=True, explained="request"),
    "oldest": Column("Oldest request", short=True),
    "deadline": Column("First deadline", explained="deadline", short=True),
}
MODEL_COLUMNS: Final = {
    "key": KEY,
    "accuracy": ACCURACY,
    "course": COURSE,
    "labels": LABELS,
    "drifts": DRIFTS,
    "last_ms": LAST,
}


class Attention(NamedTuple):
    """Something that needs a person: in words, with the address of the page that shows it."""

    text: str
    address: str
    level: Literal["bad", "warn"]  # bad: nothing works until then


class StartPage:
    """The elements of the page in one browser."""

    def __init__(self, around: Surroundings, watching: Watching | None, person: Person) -> None:
        """watching: None if models are not watched, as in tests of the queue alone."""
        self._around, self._overview, self._person = around, around.queue.overview, person
        self._watching = watching if person.role == OPERATOR else None
        self._behind: int | None = None
        self._has_workers = True
        self._letters: int | None = None
        self._shown_attention = ""
        with frame("/", person, has_users=around.has_users, wide=True):
            heading("Start")
            if self._watching is not None:
                heading("Needs attention", 2)
                self.attention = ui.html(sanitize=False).props("role=status").classes("w-full")
            with ui.element("div").classes("grove-grid grove-tiles"):
                with ui.element("section").classes("grove-tile"):
                    heading("My queue", 2, explained="card")
                    self._queue = ui.label().props("role=status")
                    ui.link("Label the next card", "/label").classes("grove-action")
                with ui.element("section").classes("grove-tile"):
                    heading("My day", 2)
                    self._day = ui.label()
                self._reviews: ui.label | None = None
                if may_see(person.role, "/review"):
                    with ui.element("section").classes("grove-tile"):
                        heading("Review", 2, explained="review")
                        self._reviews = ui.label()
                        ui.link("Review the next outcome", "/review")
                if self._watching is not None:
                    self._draw_operator_tiles(self._watching)
            if self._watching is not None:
                heading("Requested labels, by model", 2, explained="request")
                self.asked = DataTable(
                    "Requested labels", ASKED, key="key", empty=NO_REQUESTS, sort_by="oldest"
                )
                heading("Models with the newest evaluations or events", 2, explained="model")
                self.models = DataTable(
                    "Models", MODEL_COLUMNS, key="key", empty=NO_MODELS, sort_by="last_ms", descending=True
                )
                ui.link("All models", "/models")
        ui.timer(LOOK_S, self.tick)
        ui.timer(0.0, self.tick, once=True)
        if self._watching is not None:
            ui.timer(INSPECTED_S, self._inspect)
            ui.timer(0.0, self._inspect, once=True)

    def _draw_operator_tiles(self, watching: Watching) -> None:
        with ui.element("section").classes("grove-tile"):
            heading("Lag", 2, explained="lag")
            self._lag = Looking(watching.inspector, self._draw_lag, self._person)
            ui.link("All partitions", "/partitions")
        with ui.element("section").classes("grove-tile"):
            heading("Dead letters", 2, explained="dead-letter")
            self._dead = Looking(watching.inspector, self._draw_letters, self._person)
            ui.link("All dead letters", "/dead-letters")

    async def tick(self) -> None:
        """Show the current state of queue and models."""
        if not self._person.signed_in():
            ui.navigate.to("/sign-in")
            return
        now = now_ms()
        asked = await asyncio.to_thread(self._overview.by_model, now)
        waiting = queue_in_words(self._around.counts().open, first_deadline(asked), now)
        self._queue.set_text(self._around.queue.leases.paused(self._person.annotator) or waiting)
        day = await asyncio.to_thread(self._overview.day_of, self._person.annotator, now)
        self._day.set_text(day_in_words(day))
        if self._reviews is not None:
            n_reviews = await asyncio.to_thread(self._around.queue.reviews.count_open)
            self._reviews.set_text(reviews_in_words(n_reviews))
        if self._watching is None:
            return
        rows, alarmed = await asyncio.to_thread(self._read_models, self._watching, now)
        self.asked.show([asked_row(requests, now) for requests in asked])
        self.models.show(rows)
        needs = attention(
            self._around.trouble(),
            asked,
            alarmed,
            now,
            behind=self._behind,
            has_workers=self._has_workers,
            letters=self._letters,
            paused=self._around.paused(),
        )
        text = attention_list(needs)
        if text != self._shown_attention:
            self._shown_attention = text
            self.attention.set_content(text)

    def _read_models(self, watching: Watching, now: int) -> tuple[list[Row], list[ModelRow]]:
        """Return the models with the newest records, and those with the newest drift alarms."""
        watched = watching.watched
        newest, _ = watched.models("", "last_ms", descending=True, first=0, count=MODELS)
        alarmed, _ = watched.models("", "drift_ms", descending=True, first=0, count=ALARMS)
        return [model_cells(watching, model, now) for model in newest], alarmed

    async def _inspect(self) -> None:
        await self._lag.look("partitions", fresh_ms=round(INSPECTED_S * 900))
        await self._dead.look("dead-letters", fresh_ms=round(INSPECTED_S * 900), limit=1)

    def _draw_lag(self, reply: Found) -> None:
        self._behind = sum(row.get("behind", 0) for row in reply.answer["rows"])
        self._has_workers = bool(reply.answer["members"])
        workers = _n(len(reply.answer["members"]), "worker") if self._has_workers else "no worker runs"
        ui.label(number(self._behind)).classes("grove-figure-large")
        ui.label(f"records wait for the workers; {workers}.")

    def _draw_letters(self, reply: Found) -> None:
        self._letters = sum(reply.answer["reasons"].values())
        ui.label(number(self._letters)).classes("grove-figure-large")
        ui.label("records were not processed." if self._letters else "Every record was processed.")


def first_deadline(asked: Sequence[OpenRequests]) -> int | None:
    """Return the time at which the first request of any model expires; None: none expires."""
    return min((requests.deadline_ms for requests in asked if requests.deadline_ms is not None), default=None)


def queue_in_words(n_open: int, deadline_ms: int | None = None, now: int = 0) -> str:
    """Return how many requests wait, and until when the first of them may be answered.

    >>> queue_in_words(1), queue_in_words(1200, 7_200_000)
    ('1 request waits for an answer.', '1,200 requests wait for an answer; the first expires in 2 h.')
    """
    if not n_open:
        return "No request waits. A card appears on the label page as soon as a model requests a label."
    words = f"{n_open:,} request{' waits' if n_open == 1 else 's wait'} for an answer"
    if deadline_ms is None:
        return f"{words}."
    return f"{words}; the first {_expires(deadline_ms, now)}."


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


def reviews_in_words(n_open: int) -> str:
    """Return how many outcomes wait for a reviewer.

    >>> reviews_in_words(0), reviews_in_words(1)
    ('No outcome of several answers waits for a review.', '1 outcome of several answers waits for a review.')
    """
    if not n_open:
        return "No outcome of several answers waits for a review."
    return f"{_n(n_open, 'outcome')} of several answers wait{'s' if n_open == 1 else ''} for a review."


def _n(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def attention(
    trouble: str,
    asked: Sequence[OpenRequests],
    alarmed: Sequence[ModelRow],
    now: int,
    *,
    behind: int | None,
    has_workers: bool,
    letters: int | None,
    paused: int = 0,
) -> list[Attention]:
    """Return what needs a person, the most urgent first.

    alarmed: models, those with the newest drift alarms first. behind, letters: None before they were looked
    up. paused: number of people who get no cards for now.
    """
    needs = [Attention(trouble, "/partitions", "bad")] if trouble else []
    if behind is not None and not has_workers:
        text = f"No worker runs; {behind:,} records wait. Start one with 'grove worker'."
        needs.append(Attention(text, "/partitions", "bad"))
    for requests in asked:
        if requests.deadline_ms is not None and requests.deadline_ms - now < SOON_MS:
            first = f"the first {_expires(requests.deadline_ms, now)}"
            text = f"{cut(requests.key)}: {_n(requests.n, 'request')} for a label; {first}."
            needs.append(Attention(text, "/label", "warn"))
    if letters:
        text = f"{_n(letters, 'dead letter')}: records that were not processed."
        needs.append(Attention(text, "/dead-letters", "warn"))
    if paused:
        text = (
            f"{paused:,} {'person gets' if paused == 1 else 'people get'} no cards: paused, with the reason."
        )
        needs.append(Attention(text, "/people", "warn"))
    needs += [
        Attention(
            f"{cut(row.key)}: drift alarm {relative(row.drift_ms, now)}; its accuracy may fall.",
            model_link(row.key),
            "warn",
        )
        for row in alarmed
        if row.drift_ms and now - row.drift_ms < RECENT_MS
    ]
    return needs


def attention_list(needs: Sequence[Attention]) -> str:
    """Return a list of links as HTML; its texts are escaped."""
    if not needs:
        return f'<p class="grove-calm">{CALM}</p>'
    items = "".join(
        f'<li class="grove-{need.level}">'
        f'<a href="{html.escape(need.address)}">{html.escape(need.text)}</a></li>'
        for need in needs
    )
    return f'<ul class="grove-attention">{items}</ul>'


def asked_row(requests: OpenRequests, now: int) -> Row:
    """Return the cells of the open requests of a model."""
    deadline = requests.deadline_ms
    late = "" if deadline is None or deadline > now else "too late by the clock"
    cell = time_cell(deadline, now)
    return {
        "key": key_cell(requests.key),
        "requests": number_cell(requests.n),
        "oldest": time_cell(requests.oldest_ms, now),
        "deadline": cell._replace(text=late) if late else cell,
    }


def _expires(deadline_ms: int, now: int) -> str:
    return f"expires in {span(deadline_ms - now)}" if deadline_ms > now else "has expired by the clock"
