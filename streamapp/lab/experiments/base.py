"""Experiment: cells that run independently of each other, and a report on all of them.

An experiment is a module of this package with the names of the protocol `Experiment`. A cell is the
smallest piece of work: one system on one stream, for example. Its result is JSON, so that it can be stored
instead of being computed again.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol, cast

from streamapp.errors import UsageError
from streamapp.lab.experiments.chart import Chart

Size = Literal["quick", "medium", "full"]
SIZES: tuple[Size, ...] = ("quick", "medium", "full")

PAPERS = (
    "afa_answers",
    "afa_figure",
    "afa_stagger",
    "bci_figure",
    "calibration",
    "cdt_figure",
    "cdt_table",
    "drift_detectors",
    "drift_inputs",
    "lft_balance",
    "lft_electricity",
    "lft_learning_curves",
    "lft_noise",
    "lft_order",
    "lft_sea",
    "vfs_figure",
    "vfs_table",
    "vfs_efdt",
)
"""Prefixes of the names of the experiments' modules."""

Row = Mapping[str, Any]
"""Parameters and results of a cell, or a line of a table."""


@dataclass(frozen=True)
class Report:
    """The results of an experiment: tables by name (lines with the same members) and charts by name."""

    tables: dict[str, list[Row]] = field(default_factory=dict)
    charts: dict[str, Chart] = field(default_factory=dict)


class Experiment(Protocol):
    """The names of an experiment's module."""

    TITLE: str
    """The subject of the experiment, and its publication."""

    def cells(self, size: Size, data: Path | None) -> list[dict[str, Any]]:
        """Return the parameters of each cell (JSON); data: folder of the real data sets, if there is one."""

    # Optional names: then(size, data, rows) -> cells that need the results of the first cells; HOURS, by
    # size: hours of one core that the experiment takes, if there are many.

    def run(self, cell: dict[str, Any]) -> dict[str, Any]:
        """Return the results of a cell (JSON)."""

    def report(self, rows: Sequence[Row]) -> Report:
        """Return the tables and charts of all cells; rows: parameters and results of each."""


def _modules() -> dict[str, str]:
    """Return the module of each experiment by name: `lft-sea` for `lft/lft_sea.py`."""
    package = importlib.import_module("streamapp.lab.experiments")
    modules = (module.name for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."))
    files = {module.rpartition(".")[2]: module for module in modules}
    return {file.replace("_", "-"): module for file, module in files.items() if file.startswith(PAPERS)}


def names() -> tuple[str, ...]:
    """Return the names of all experiments, sorted."""
    return tuple(sorted(_modules()))


def experiment(name: str) -> Experiment:
    """Return the module of an experiment; UsageError with all names if there is none."""
    modules = _modules()
    if name not in modules:
        message = f"unknown experiment {name!r}; known: {', '.join(sorted(modules))}"
        raise UsageError(message)
    return cast(Experiment, importlib.import_module(modules[name]))
