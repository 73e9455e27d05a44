"""AFA, Figures 4 and 6: cost and test utility on sets of numbers: thresholds learned or searched, OFS."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from streamapp.lab.experiments.afa import afa_data, afa_reports
from streamapp.lab.experiments.base import Report, Row, Size

TITLE = "AFA (Active Feature Acquisition), Figures 4 and 6: cost and utility on sets of numbers"

SYSTEMS = ("EC2", "EC2-Exp3", "EC2-OFS", "IG", "IG-Exp3", "IG-OFS", "VFDT", "EFDT")
"""Exp3 learns a threshold, the rest try all nine; with OFS a perceptron selects half of the features."""
run = afa_reports.run


def cells(size: Size, data: Path | None) -> list[dict[str, Any]]:
    """Return a run for each set, system and seed."""
    return afa_reports.cells_of(afa_data.NUMBERS, SYSTEMS, size, data)


def report(rows: Sequence[Row]) -> Report:
    """Return utilities and costs."""
    return afa_reports.report(rows, "figure4", afa_data.NUMBERS)
