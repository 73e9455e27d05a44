"""Watching: objects that the pages on models share, and small parts of pages."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Protocol
from urllib.parse import quote

from nicegui import ui

from streamapp.web.layout.data_table import SORTED_HEAD
from streamapp.web.layout.headings import heading as heading
from streamapp.web.page_frame import Person, frame
from streamapp.web.queue.overview import WaitingRecord
from streamapp.web.watch.courses import Courses
from streamapp.web.watch.inspector import Found, InspectionError, Inspector
from streamapp.web.watch.watched import Watched

LOOK_S: Final = 2.0
"""Seconds between two looks for new records."""
LINKS: Final = '<q-td :props="props"><a :href="props.row.link">{{ props.value }}</a></q-td>'
"""A cell with a link to the address in its row's field `link`; Vue escapes both texts."""


class Note(Protocol):
    """Writes an action of a person into the audit log."""

    def __call__(self, user: str, action: str, detail: str) -> None: ...


def no_records(key: str) -> Sequence[WaitingRecord]:  # noqa: ARG001 - the same for every key
    """Return no record: without a queue no request is known."""
    return ()


@dataclass(frozen=True, slots=True)
class Watching:
    """Objects that all pages on models share."""

    watched: Watched
    inspector: Inspector
    experiments: Path  # folder of results
    note: Note
    has_users: bool = False
    courses: Courses = field(default_factory=Courses)
    waiting: Callable[[str], Sequence[WaitingRecord]] = no_records
    """By model key, records whose labels are requested."""


@contextmanager
def watch_frame(active: str, person: Person, watching: Watching) -> Iterator[None]:
    """Draw the frame of a page on models, which uses the width of a large screen."""
    with frame(active, person, has_users=watching.has_users, wide=True):
        yield


def model_link(key: str, **more: str) -> str:
    """Return the address of a model's page; more: further parameters, of which empty ones are left out.

    >>> model_link("shop <1>"), model_link("k", tab="events", kind="")
    ('/model?key=shop%20%3C1%3E', '/model?key=k&tab=events')
    """
    rest = "".join(f"&{name}={quote(value, safe='')}" for name, value in more.items() if value)
    return f"/model?key={quote(key, safe='')}{rest}"


def facts(values: Mapping[str, str]) -> None:
    """Make a list of names and values."""
    with ui.element("dl").classes("grove-facts"):
        for name, value in values.items():
            with ui.element("div"):
                with ui.element("dt"):
                    ui.label(name)
                with ui.element("dd"):
                    ui.label(value)


def table(
    columns: Mapping[str, str], rows: Sequence[Mapping[str, Any]], key: str, links: str | None = None
) -> ui.table:
    """Make a table that its heads sort; columns: label by name of field; links: a column with links."""
    shown = [
        {
            "name": name,
            "label": label,
            "field": name,
            "align": "right" if rows and isinstance(rows[0].get(name), int | float) else "left",
            "sortable": True,
        }
        for name, label in columns.items()
    ]
    # People without a mouse scroll a table that is too wide with the arrow keys.
    with ui.element("div").classes("grove-scroll").props('tabindex=0 role=region aria-label="Table"'):
        drawn = ui.table(rows=[*map(dict, rows)], columns=shown, row_key=key)
    drawn.props("flat dense wrap-cells binary-state-sort").classes("w-full grove-data")
    drawn.add_slot("header-cell", SORTED_HEAD)
    if links is not None:
        drawn.add_slot(f"body-cell-{links}", LINKS)
    return drawn


class Looking:
    """A part of a page that is filled by an answer which may take a while."""

    def __init__(self, inspector: Inspector, draw: Callable[[Found], None], person: Person) -> None:
        """draw: makes the elements for each answer. person: gets no answer when they are not signed in."""
        self._inspector, self._draw, self._person = inspector, draw, person
        self._busy = False
        self._has_answer = False
        self._said = ui.label().props("role=status").classes("grove-muted")
        self._place = ui.column().classes("w-full")

    async def look(self, ask: str, *, fresh_ms: int = 15_000, **arguments: Any) -> None:
        """Send the question, and draw the answer; the old content stays until then."""
        if not self._person.signed_in():
            ui.navigate.to("/sign-in")
            return
        if self._busy:
            return
        self._busy = True
        if not self._has_answer:
            self._said.set_text("Reading …")
        try:
            reply = await asyncio.to_thread(self._inspector.look, ask, fresh_ms=fresh_ms, **arguments)
        except InspectionError as error:
            self._said.set_text(str(error))
            return
        finally:
            self._busy = False
        self._has_answer = True
        self._said.set_text("")
        self._place.clear()
        with self._place:
            self._draw(reply)


async def confirmed(question: str) -> bool:
    """Ask the user to confirm an action."""
    with ui.dialog() as dialog, ui.card():
        ui.label(question).style("overflow-wrap:anywhere")
        with ui.row():
            ui.button("Yes", on_click=lambda: dialog.submit(True)).props("no-caps")
            ui.button("Cancel", on_click=lambda: dialog.submit(False)).props("no-caps outline")
    answer = bool(await dialog)
    dialog.delete()
    return answer


async def carried_out(
    watching: Watching, user: str, action: str, ask: str, **arguments: Any
) -> tuple[Any, str]:
    """Carry out an action for a person and log it; return its result, and why it failed."""
    detail = ", ".join(f"{name}={value}" for name, value in sorted(arguments.items()) if value is not None)
    watching.note(user, action, detail)
    try:
        return await asyncio.to_thread(watching.inspector.do, ask, **arguments), ""
    except InspectionError as error:
        return None, str(error)
