"""Runs the cells of an experiment, several at a time, and writes what comes of them.

    FOLDER/NAME-SIZE/cells/….json    parameters and results of a cell, written when it is done
    FOLDER/NAME-SIZE/TABLE.csv       the tables of the report
    FOLDER/NAME-SIZE/CHART.svg       its charts
    FOLDER/NAME-SIZE/results.json    all of it in one file
    FOLDER/NAME-SIZE/results.md      the tables once more, for documents

A cell that has its file is not run again: an experiment that was interrupted goes on where it stopped.
"""

from __future__ import annotations

import csv
import hashlib
import json
import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

from streamapp.errors import UsageError
from streamapp.experiments.base import Report, Row, Size, experiment

Advance = Callable[[int, int], None]


def conduct(
    name: str,
    size: Size,
    folder: Path,
    *,
    data: Path | None = None,
    jobs: int = 1,
    fresh: bool = False,
    advance: Advance = lambda done, total: None,
) -> Report:
    """Run an experiment and return its report, which is written below `folder` too.

    data: folder of the real data sets; jobs: processes; fresh: run again what has been run; advance:
    is told of cells that are done, and of how many there are.
    """
    plan = experiment(name)
    kept = folder / f"{name}-{size}" / "cells"
    try:
        kept.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        message = f"--output {folder} must be a folder that can be written: {error.strerror}"
        raise UsageError(message) from error
    first = plan.cells(size, data)
    rows = _stage(name, first, kept, jobs, fresh, len(first), advance)
    if (more := getattr(plan, "then", None)) is not None:
        second = more(size, data, rows)
        rows += _stage(name, second, kept, jobs, fresh, len(first) + len(second), advance)
    place = kept.parent
    report = plan.report(rows)
    _write_report(place, name, size, rows, report)
    return report


def _stage(
    name: str,
    cells: Sequence[dict[str, Any]],
    kept: Path,
    jobs: int,
    fresh: bool,
    total: int,
    advance: Advance,
) -> list[Row]:
    """Run cells that do not wait for each other; return parameters and results of each."""
    done = {} if fresh else {i: row for i, cell in enumerate(cells) if (row := _kept(kept, cell)) is not None}
    advance(len(done), total)
    rest = [(i, cell) for i, cell in enumerate(cells) if i not in done]
    for i, results in _run(name, rest, jobs):
        _write(_file(kept, cells[i]), json.dumps({"cell": cells[i], "results": results}, indent=1) + "\n")
        done[i] = {**cells[i], **results}
        advance(1, total)
    return [done[i] for i in range(len(cells))]


def run_cell(name: str, cell: dict[str, Any]) -> dict[str, Any]:
    """Run one cell, in this or in another process."""
    return experiment(name).run(cell)


def _run(
    name: str, cells: Sequence[tuple[int, dict[str, Any]]], jobs: int
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the results of cells as they are done."""
    if jobs == 1 or len(cells) < 2:
        for i, cell in cells:
            yield i, run_cell(name, cell)
        return
    # Not forked: a fork would share the threads and the half-compiled kernels of this process.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(min(jobs, len(cells)), mp_context=context) as pool:
        running = {pool.submit(run_cell, name, cell): i for i, cell in cells}
        for future in as_completed(running):
            yield running[future], future.result()


def _file(kept: Path, cell: dict[str, Any]) -> Path:
    text = json.dumps(cell, sort_keys=True)
    return kept / f"{hashlib.sha256(text.encode()).hexdigest()[:16]}.json"


def _kept(kept: Path, cell: dict[str, Any]) -> Row | None:
    """Return parameters and results of a cell that was run before; UsageError if its file holds no such."""
    path = _file(kept, cell)
    if not path.exists():
        return None
    try:
        return {**cell, **json.loads(path.read_text(encoding="utf-8"))["results"]}
    except (ValueError, KeyError, TypeError) as error:
        message = f"{path} must hold the results of a cell; delete it, or run all again with --fresh"
        raise UsageError(message) from error


def _write(path: Path, text: str) -> None:
    """Write a file that is whole or not there."""
    partial = path.with_name(path.name + ".partial")
    partial.write_text(text, encoding="utf-8")
    partial.replace(path)


def _write_report(place: Path, name: str, size: Size, rows: Sequence[Row], report: Report) -> None:
    body = {
        "experiment": name,
        "size": size,
        "title": experiment(name).TITLE,
        "cells": list(rows),
        "tables": report.tables,
    }
    _write(place / "results.json", json.dumps(body, indent=1) + "\n")
    _write(place / "results.md", "\n".join(_markdown(table, lines) for table, lines in report.tables.items()))
    for table, lines in report.tables.items():
        with (place / f"{table}.csv").open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, list(lines[0]) if lines else [])
            writer.writeheader()
            writer.writerows(lines)
    for chart, drawing in report.charts.items():
        _write(place / f"{chart}.svg", drawing.to_svg())


def _markdown(name: str, lines: Sequence[Row]) -> str:
    """Return a table of a Markdown document."""
    if not lines:
        return f"## {name}\n\nnothing\n"
    head = list(lines[0])
    body = ["| " + " | ".join(str(line[key]) for key in head) + " |" for line in lines]
    return "\n".join([f"## {name}", "", f"| {' | '.join(head)} |", "|---" * len(head) + "|", *body]) + "\n"
