"""Experiment results: reads folders that `grove experiment` and `grove prequential --json` have written."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import orjson

BYTES_MAX: Final = 64 << 20
"""Files larger than this many bytes are not read."""
CHART_BYTES_MAX: Final = 4 << 20
ROWS_MAX: Final = 2000
POINTS_MAX: Final = 1000


@dataclass(frozen=True, slots=True)
class ExperimentResult:
    """One experiment: its tables, with the published figures beside the measured ones if there are any."""

    name: str
    size: str
    title: str
    tables: dict[str, list[dict[str, Any]]]
    charts: dict[str, bytes]  # SVG by name


@dataclass(frozen=True, slots=True)
class PrequentialResult:
    """One run of `grove prequential`: its figures, and the curve if a file of its events lies beside it."""

    name: str
    figures: dict[str, Any]
    curve: list[dict[str, Any]]


def experiments_in(folder: Path) -> list[str]:
    """Return the names of the experiments that have results in a folder."""
    return sorted(place.parent.name for place in folder.glob("*/results.json"))


def runs_in(folder: Path) -> list[str]:
    """Return the names of the JSON files of the folder that are prequential runs."""
    return sorted(place.stem for place in folder.glob("*.json") if read_run(folder, place.stem) is not None)


def read_experiment(folder: Path, name: str) -> ExperimentResult | None:
    """Return the results of an experiment; None if they are missing or have another format."""
    if name not in experiments_in(folder):
        return None
    body = _read(folder / name / "results.json")
    if not isinstance(body, dict) or not isinstance(body.get("tables"), dict):
        return None
    tables = {
        str(title): [row for row in rows[:ROWS_MAX] if isinstance(row, dict)]
        for title, rows in body["tables"].items()
        if isinstance(rows, list)
    }
    charts = {
        place.stem: place.read_bytes()
        for place in sorted((folder / name).glob("*.svg"))
        if place.stat().st_size <= CHART_BYTES_MAX
    }
    return ExperimentResult(
        str(body.get("experiment", name)),
        str(body.get("size", "")),
        str(body.get("title", "")),
        tables,
        charts,
    )


def read_run(folder: Path, name: str) -> PrequentialResult | None:
    """Return a prequential run; None if the file is missing or has another format."""
    place = folder / f"{name}.json"
    if place.parent != folder or not place.is_file():
        return None
    figures = _read(place)
    if not isinstance(figures, dict) or not {"accuracy", "records_per_second"} <= figures.keys():
        return None
    return PrequentialResult(name, figures, _curve(folder / f"{name}.jsonl"))


def _read(place: Path) -> Any:
    try:
        return orjson.loads(place.read_bytes()) if place.stat().st_size <= BYTES_MAX else None
    except (OSError, orjson.JSONDecodeError):
        return None


def _curve(place: Path) -> list[dict[str, Any]]:
    """Return the evaluations among the event lines of a run."""
    try:
        if place.stat().st_size > BYTES_MAX:
            return []
        lines = place.read_bytes().splitlines()
    except OSError:
        return []
    points = []
    for line in lines:
        try:
            point = orjson.loads(line)
        except orjson.JSONDecodeError:
            continue
        if isinstance(point, dict) and isinstance(point.get("labels"), int) and "accuracy_windowed" in point:
            points.append(point)
    step = -(-len(points) // POINTS_MAX) or 1
    return points[::step]
