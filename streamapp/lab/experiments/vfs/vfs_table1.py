"""VFS, Table 1: the streams, as this project makes them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from streamapp.lab.experiments.base import Report, Row, Size
from streamapp.lab.experiments.vfs.vfs_streams import STREAMS

TITLE = "VFS (Speeding up VFDT with low computational cost), Table 1: the streams"

PUBLISHED = {"SEA": (3, 2), "LED": (24, 10), "AGR": (9, 2), "RBF": (200, 15), "RTG": (400, 25)}
"""Attributes and classes."""

LOOKED_AT = {"quick": 2_000, "medium": 20_000, "full": 100_000}


def cells(size: Size, data: Path | None) -> list[dict[str, Any]]:
    return [{"stream": name, "looked at": LOOKED_AT[size]} for name in STREAMS]


def run(cell: dict[str, Any]) -> dict[str, Any]:
    """Make the first records of a stream, and count attributes and classes."""
    generator = STREAMS[cell["stream"]].open(STREAMS[cell["stream"]].records)
    x, y = generator.take(cell["looked at"])
    return {
        "attributes": x.shape[1],
        "numeric": sum(attribute.kind == "numeric" for attribute in generator.schema.attributes),
        "classes": generator.schema.n_classes,
        "classes seen": len(np.unique(y)),
        "largest class": float(np.bincount(y).max() / len(y)),
    }


def report(rows: Sequence[Row]) -> Report:
    """Return the table, with the published figures beside ours."""
    lines: list[Row] = [
        {
            "stream": row["stream"],
            "records": STREAMS[row["stream"]].records,
            "attributes": row["attributes"],
            "attributes published": PUBLISHED[row["stream"]][0],
            "numeric": row["numeric"],
            "classes": row["classes"],
            "classes published": PUBLISHED[row["stream"]][1],
            "classes seen": row["classes seen"],
            "largest class": round(row["largest class"], 4),
            "concept changes": STREAMS[row["stream"]].drifts,
        }
        for row in rows
    ]
    return Report(tables={"table1": lines})
