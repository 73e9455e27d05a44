"""VFS, IMAC embedded in EFDT, for which the paper gives no figures: attempts and accuracy of two variants."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from streamapp.lab.experiments.base import Report, Row, Size
from streamapp.lab.experiments.trace import trace
from streamapp.lab.experiments.vfs.vfs_streams import STREAMS
from streamapp.lab.experiments.vfs.vfs_table2 import records_of

TITLE = "VFS (Speeding up VFDT with low computational cost): EFDT, and EFDT with IMAC"

SYSTEMS: dict[str, dict[str, Any]] = {
    "VFDT": {"name": "h-tree", "evidence": "observed"},  # as EFDT counts it
    "EFDT": {"name": "efdt"},
    "EFDT-IMAC": {"name": "efdt-imac"},
    "EFDT-IMAC both": {"name": "efdt-imac", "watched_nodes": "both"},
}
"""Ablation: no IMAC, IMAC at leaves only, IMAC at leaves and inner nodes."""
LEAF_MODEL = "nba"
"""The leaf model of published EFDT code, which ignores its option."""


def cells(size: Size, data: Path | None) -> list[dict[str, Any]]:
    return [
        {"stream": stream, "system": system, "records": records_of(stream, size)}
        for stream in STREAMS
        for system in SYSTEMS
    ]


def run(cell: dict[str, Any]) -> dict[str, Any]:
    stream, records = STREAMS[cell["stream"]], cell["records"]
    generator = stream.open(records)
    spec = {"learner": SYSTEMS[cell["system"]] | {"leaf_model": LEAF_MODEL}, "evaluation": {"every": 0}}
    traced = trace(spec, generator.schema, generator.batches(records), sample=stream.sample)
    return {
        "attempts": traced.summary.attempts,
        "splits": traced.summary.splits,
        "leaves": traced.summary.leaves,
        "accuracy": round(100.0 * traced.accuracy, 2),
        "window accuracy": round(100.0 * traced.window_accuracy, 2),
        "seconds": round(traced.seconds, 3),
    }


def report(rows: Sequence[Row]) -> Report:
    return Report(tables={"efdt": list(rows)})
