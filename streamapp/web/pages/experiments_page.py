"""Experiments page: results of experiments and prequential runs, with published figures beside them."""

from __future__ import annotations

import asyncio
import base64
from typing import Any, Final

from nicegui import ui

from streamapp.web.charts.accuracy_chart import accuracy_chart
from streamapp.web.charts.chart_view import ChartView
from streamapp.web.formatting import cut, number, share
from streamapp.web.layout.data_table import Cell, Column, DataTable, number_cell, text_cell
from streamapp.web.page_frame import Person
from streamapp.web.watch.experiment_results import (
    ExperimentResult,
    PrequentialResult,
    experiments_in,
    read_experiment,
    read_run,
    runs_in,
)
from streamapp.web.watch.watching import Watching, facts, heading, watch_frame

ROWS: Final = 50
SHARES: Final = ("accuracy", "accuracy_windowed", "accuracy_unbiased")


class ExperimentsPage:
    """The elements of the page in one browser."""

    def __init__(self, watching: Watching, person: Person) -> None:
        self._folder, self._person = watching.experiments, person
        with watch_frame("/experiments", person, watching):
            heading("Experiments", explained="experiment")
            self._said = ui.label(f"Reading {self._folder.name} …").props("role=status")
            self._choice = ui.select([], label="Result", on_change=self._show).classes("grove-select")
            self._place = ui.column().classes("w-full")
        ui.timer(0.0, self._begin, once=True)

    async def _begin(self) -> None:
        experiments = await asyncio.to_thread(experiments_in, self._folder)
        runs = await asyncio.to_thread(runs_in, self._folder)
        names = {f"experiment {name}": name for name in experiments} | {
            f"run {name}": f"run: {name}" for name in runs
        }
        if not names:
            self._said.set_text(
                f"There is no result in {self._folder.name}. 'grove experiment NAME --output FOLDER' and "
                "'grove prequential --json > FOLDER/NAME.json' write results, which "
                "'grove web --experiments FOLDER' shows here."
            )
            return
        self._said.set_text(f"{len(experiments):,} experiments and {len(runs):,} runs in {self._folder.name}")
        self._choice.set_options(names, value=next(iter(names)))

    async def _show(self) -> None:
        if not self._person.signed_in():
            ui.navigate.to("/sign-in")
            return
        kind, _, name = str(self._choice.value or "").partition(" ")
        read: Any = read_experiment if kind == "experiment" else read_run
        result = await asyncio.to_thread(read, self._folder, name)
        self._place.clear()
        with self._place:
            if isinstance(result, ExperimentResult):
                _draw_experiment(result)
            elif isinstance(result, PrequentialResult):
                _draw_run(result)
            else:
                ui.label("This result cannot be read: 'grove experiment' did not write it in this format.")


def _draw_experiment(result: ExperimentResult) -> None:
    heading(result.title or result.name, 2)
    ui.label(f"{result.name}, size {result.size}")
    for title, rows in result.tables.items():
        heading(title, 2)
        if not rows:
            ui.label("This table has no row.").classes("grove-muted")
            continue
        _draw_table(title, rows)
    for name, svg in result.charts.items():
        heading(name, 2)
        data = base64.b64encode(svg).decode()
        # As an image, because scripts in an image do not run.
        ui.image(f"data:image/svg+xml;base64,{data}").classes("grove-picture").props(f'alt="{_plain(name)}"')


def _draw_table(title: str, rows: list[dict[str, Any]]) -> None:
    """Draw one table of an experiment; a column with a number is a column of numbers."""
    names = list(rows[0])
    columns = {"at": Column("Row", numeric=True)} | {
        f"c{place}": Column(cut(str(name)), numeric=any(_is_number(row.get(name)) for row in rows))
        for place, name in enumerate(names)
    }
    drawn = DataTable(cut(title), columns, key="at", empty="No row.", per_page=ROWS)
    drawn.show(
        [
            {"at": number_cell(at)} | {f"c{place}": _cell(row.get(name)) for place, name in enumerate(names)}
            for at, row in enumerate(rows, 1)
        ]
    )


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _cell(value: Any) -> Cell:
    return number_cell(value) if _is_number(value) else text_cell(_said(value))


def _draw_run(result: PrequentialResult) -> None:
    heading(result.name, 2)
    if result.curve:
        ChartView("Accuracy against labels").show(accuracy_chart(result.curve))
    figures = {name: value for name, value in result.figures.items() if not isinstance(value, dict | list)}
    facts({name: share(value) if name in SHARES else _said(value) for name, value in figures.items()})


def _said(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return number(value) if isinstance(value, int | float) else "" if value is None else cut(str(value), 300)


def _plain(name: str) -> str:
    """Return a name without the characters that could end an HTML attribute."""
    return "".join(letter if letter.isalnum() or letter in " -_.," else "_" for letter in name)
