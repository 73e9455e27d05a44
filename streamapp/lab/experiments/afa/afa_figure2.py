"""AFA, Figures 2, 3 and 9: test utility, purchased features and training utility on sets of bits."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from streamapp.lab.experiments.afa import afa_data, afa_reports
from streamapp.lab.experiments.base import Report, Row, Size

TITLE = "AFA (Active Feature Acquisition), Figures 2, 3 and 9: utility and features bought on sets of bits"

SYSTEMS = ("EC2", "IG", "US", "Random", "VFDT", "EFDT")
run = afa_reports.run


def cells(size: Size, data: Path | None) -> list[dict[str, Any]]:
    """Return a run for each set, system and seed; US and random order only where the figures have them."""
    every = afa_reports.cells_of(afa_data.BITS, SYSTEMS, size, data)
    few = ("Compas", "Fico")
    return [cell for cell in every if cell["set"] not in few or cell["system"] not in ("US", "Random")]


def report(rows: Sequence[Row]) -> Report:
    """Return utilities and costs, and whether costs are in the paper's order."""
    result = afa_reports.report(rows, "figure2", afa_data.BITS)
    result.tables["order"] = afa_reports.order_table(rows)
    return result
