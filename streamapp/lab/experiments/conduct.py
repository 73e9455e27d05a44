"""Experiment runner: runs the cells, several at a time, and writes the results.

    FOLDER/NAME-SIZE/cells/….json    parameters and results of a cell, written when it is done (kept.py)
    FOLDER/NAME-SIZE/TABLE.csv       the tables of the report
    FOLDER/NAME-SIZE/CHART.svg       its charts, if matplotlib is installed
    FOLDER/NAME-SIZE/results.json    all of it in one file
    FOLDER/NAME-SIZE/results.md      the tables once more, for documents

A cell that has its file is not run again, so that an interrupted experiment continues where it stopped. If
other code has made the file, the cell is run again, and ``outdated`` reports it.
"""

from __future__ import annotations

import csv
import json
import multiprocessing
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

from core.model.file import write_whole
from streamapp.lab.experiments.base import Report, Row, Size, experiment
from streamapp.lab.experiments.chart import can_draw
from streamapp.lab.experiments.kept import ResultCache, code_version
from streamapp.settings.tables import table

Advance = Callable[[int, int], None]


def conduct(
    name: str,
    size: Size,
    folder: Path,
    *,
    data: Path | None = None,
    jobs: int = 1,
    fresh: bool = False,
    advance: Advance = lambda n_run, total: None,
    outdated: Callable[[int], None] = lambda cells: None,
) -> Report:
    """Run an experiment and return its report, which is also written below `folder`.

    data: folder of the real data sets; jobs: processes; fresh: run all cells again; advance: gets the
    number of finished cells, and of all cells; outdated: gets the number of cells that are run again
    because other code had run them.
    """
    plan = experiment(name)
    kept = ResultCache(folder / f"{name}-{size}" / "cells", code_version())
    first = plan.cells(size, data)
    rows = _stage(name, first, kept, jobs, fresh, len(first), advance, outdated)
    if (more := getattr(plan, "then", None)) is not None:
        second = more(size, data, rows)
        rows += _stage(name, second, kept, jobs, fresh, len(first) + len(second), advance, outdated)
    report = plan.report(rows)
    _write_report(kept.folder.parent, name, size, rows, report)
    return report


def hours_of(name: str, size: Size) -> float | None:
    """Return the hours of one core that an experiment takes, None if there are few."""
    hours: dict[Size, float] = getattr(experiment(name), "HOURS", {})
    return hours.get(size)


def _stage(
    name: str,
    cells: Sequence[dict[str, Any]],
    kept: ResultCache,
    jobs: int,
    fresh: bool,
    total: int,
    advance: Advance,
    outdated: Callable[[int], None],
) -> list[Row]:
    """Run cells that do not depend on each other; return parameters and results of each."""
    before = kept.outdated
    finished = (
        {} if fresh else {i: row for i, cell in enumerate(cells) if (row := kept.find(cell)) is not None}
    )
    if kept.outdated > before:
        outdated(kept.outdated - before)
    advance(len(finished), total)
    rest = [(i, cell) for i, cell in enumerate(cells) if i not in finished]
    for i, results in _run(name, rest, jobs):
        finished[i] = kept.keep(cells[i], results)
        advance(1, total)
    return [finished[i] for i in range(len(cells))]


def run_cell(name: str, cell: dict[str, Any]) -> dict[str, Any]:
    """Run one cell, in this or in another process."""
    return experiment(name).run(cell)


def _run(
    name: str, cells: Sequence[tuple[int, dict[str, Any]]], jobs: int
) -> Iterator[tuple[int, dict[str, Any]]]:
    if jobs == 1 or len(cells) < 2:
        for i, cell in cells:
            yield i, run_cell(name, cell)
        return
    # Not forked: a fork would share the threads and the half-compiled kernels of this process.
    context = multiprocessing.get_context("spawn")
    others = multiprocessing.active_children()
    with ProcessPoolExecutor(min(jobs, len(cells)), mp_context=context, initializer=_end_quietly) as pool:
        running = {pool.submit(run_cell, name, cell): i for i, cell in cells}
        try:
            for future in as_completed(running):
                yield running[future], future.result()
        except BaseException:
            # Cells that have not begun are cancelled; those that run may take hours and are not waited for.
            pool.shutdown(wait=False, cancel_futures=True)
            for child in multiprocessing.active_children():
                if child not in others:
                    child.terminate()
            raise


def _end_quietly() -> None:
    """Let an interrupt end a process of the pool at once, without a message: the main process reports it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def _write_report(place: Path, name: str, size: Size, rows: Sequence[Row], report: Report) -> None:
    body = {
        "experiment": name,
        "size": size,
        "title": experiment(name).TITLE,
        "cells": list(rows),
        "tables": report.tables,
    }
    tables = "\n".join(_markdown(title, lines) for title, lines in report.tables.items())
    write_whole(place / "results.json", f"{json.dumps(body, indent=1)}\n".encode())
    write_whole(place / "results.md", tables.encode())
    for title, lines in report.tables.items():
        with (place / f"{title}.csv").open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, list(lines[0]) if lines else [])
            writer.writeheader()
            writer.writerows(lines)
    for chart, drawing in report.charts.items() if can_draw() else ():
        write_whole(place / f"{chart}.svg", drawing.to_svg().encode())


def _markdown(name: str, lines: Sequence[Row]) -> str:
    if not lines:
        return f"## {name}\n\nnothing\n"
    return f"## {name}\n\n{table(list(lines[0]), (line.values() for line in lines))}"
