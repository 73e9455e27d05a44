"""Models page: the list of all models, in pages, with a search."""

from __future__ import annotations

from typing import Any, Final

from nicegui import run, ui

from streamapp.web.formatting import moment, number
from streamapp.web.page_frame import Person
from streamapp.web.watch.model_words import accuracy_in_words
from streamapp.web.watch.watched import ModelRow
from streamapp.web.watch.watching import LOOK_S, Watching, heading, model_link, table, watch_frame

ROWS: Final = 25
ORDERS: Final = {
    "key": "name",
    "records": "records, most first",
    "labels": "labels, most first",
    "accuracy": "accuracy, lowest first",
    "drifts": "drifts, most first",
    "splits": "splits, most first",
    "last_ms": "newest evaluation or event first",
}
DESCENDING: Final = frozenset(("records", "labels", "drifts", "splits", "last_ms"))
COLUMNS: Final = {
    "key": "Model",
    "learner": "Learner",
    "records": "Records",
    "labels": "Labels",
    "accuracy": "Accuracy (95 % interval)",
    "splits": "Splits",
    "drifts": "Drifts",
    "last": "Newest evaluation or event (UTC)",
    "state": "",
}


class ModelsPage:
    """The elements of the page in one browser."""

    def __init__(self, watching: Watching, person: Person) -> None:
        self._watching, self._person = watching, person
        self._first, self._shown = 0, list[dict[str, Any]]()
        with watch_frame("/models", person, watching):
            heading("Models")
            with ui.row().classes("items-end w-full"):
                self._search = ui.input("Search", on_change=self._anew).props("debounce=300 maxlength=200")
                self._order = ui.select(ORDERS, value="key", label="Order", on_change=self._anew)
                self._order.classes("grove-select")
            self._count = ui.label().props("role=status")
            self._table = table(COLUMNS, [], "key", "key")
            with ui.row():
                self._back = ui.button("Previous", on_click=lambda: self._turn(-ROWS)).props(
                    "no-caps outline"
                )
                self._on = ui.button("Next", on_click=lambda: self._turn(ROWS)).props("no-caps outline")
            with ui.row().classes("items-end"):
                first, second = ui.input("Compare"), ui.input("with")
                ui.button(
                    "Compare",
                    on_click=lambda: ui.navigate.to(_compare_link(str(first.value), str(second.value))),
                ).props("no-caps outline")
        ui.timer(LOOK_S, self.tick)
        ui.timer(0.0, self.tick, once=True)

    async def _anew(self) -> None:
        self._first = 0
        await self.tick()

    async def _turn(self, by: int) -> None:
        self._first = max(0, self._first + by)
        await self.tick()

    async def tick(self) -> None:
        """Show the current state of the listed models."""
        if not self._person.signed_in():
            ui.navigate.to("/sign-in")
            return
        order, search = str(self._order.value), str(self._search.value or "")
        models, total = await run.io_bound(
            self._watching.watched.models,
            search,
            order,
            descending=order in DESCENDING,
            first=self._first,
            count=ROWS,
        )
        shown = [_row(model) for model in models]
        last = self._first + len(shown)
        self._count.set_text(
            f"{self._first + 1:,}–{last:,} of {total:,}" if shown else "No model like that yet."
        )
        self._back.set_enabled(self._first > 0)
        self._on.set_enabled(last < total)
        if shown != self._shown:
            self._shown = shown
            self._table.rows = shown


def _row(model: ModelRow) -> dict[str, Any]:
    return {
        "key": model.key,
        "link": model_link(model.key),
        "learner": model.learner,
        "records": number(model.records),
        "labels": number(model.labels),
        "accuracy": accuracy_in_words(model),
        "splits": number(model.splits),
        "drifts": number(model.drifts),
        "last": moment(model.last_ms),
        "state": model.state,
    }


def _compare_link(first: str, second: str) -> str:
    from urllib.parse import urlencode

    return f"/compare?{urlencode({'first': first, 'second': second})}"
