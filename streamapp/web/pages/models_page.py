"""Models page: the list of all models, in pages, sorted by any column, with a filter of the names."""

from __future__ import annotations

import asyncio
from typing import Final
from urllib.parse import urlencode

from nicegui import ui

from streamapp.web.clock import now_ms
from streamapp.web.layout.data_table import Column, DataTable, Row
from streamapp.web.page_frame import Person
from streamapp.web.watch.model_columns import ACCURACY, COURSE, DRIFTS, KEY, LABELS, LAST, model_cells
from streamapp.web.watch.watching import LOOK_S, Watching, heading, watch_frame

ROWS: Final = 25
COLUMNS: Final = {
    "key": KEY,
    "accuracy": ACCURACY,
    "course": COURSE,
    "labels": LABELS,
    "drifts": DRIFTS,
    "last_ms": LAST,
    "records": Column("Records", numeric=True),
    "splits": Column("Splits", numeric=True, explained="split"),
    "learner": Column("Learner", sortable=False),
    "state": Column("State", sortable=False),
}
EMPTY: Final = (
    "No model is known yet. A model begins with the first record of its key: send records with "
    "'grove replay', or try 'grove demo --web'."
)


class ModelsPage:
    """The elements of the page in one browser."""

    def __init__(self, watching: Watching, person: Person) -> None:
        self._watching, self._person = watching, person
        with watch_frame("/models", person, watching):
            heading("Models", explained="model")
            self._count = ui.label().props("role=status").classes("grove-muted")
            self.table = DataTable(
                "Models",
                COLUMNS,
                key="key",
                empty=EMPTY,
                filtered="Part of a model's name",
                sort_by="key",
                turned=self.tick,
                per_page=ROWS,
            )
            heading("Compare two models", 2)
            with ui.row().classes("items-end"):
                first = ui.input("First model").props("dense outlined maxlength=1024")
                second = ui.input("Second model").props("dense outlined maxlength=1024")
                ui.button(
                    "Compare",
                    on_click=lambda: ui.navigate.to(_compare_link(str(first.value), str(second.value))),
                ).props("no-caps outline")
        ui.timer(LOOK_S, self.tick)
        ui.timer(0.0, self.tick, once=True)

    async def tick(self) -> None:
        """Show the current state of the listed models."""
        if not self._person.signed_in():
            ui.navigate.to("/sign-in")
            return
        first = self.table.first
        rows, total = await asyncio.to_thread(self._rows, first)
        self.table.show(rows, total)
        self._count.set_text(f"{first + 1:,}–{first + len(rows):,} of {total:,}" if rows else "")

    def _rows(self, first: int) -> tuple[list[Row], int]:
        models, total = self._watching.watched.models(
            self.table.filter_text,
            self.table.sort_by,
            descending=self.table.descending,
            first=first,
            count=ROWS,
        )
        now = now_ms()
        return [model_cells(self._watching, model, now) for model in models], total


def _compare_link(first: str, second: str) -> str:
    return f"/compare?{urlencode({'first': first, 'second': second})}"
