"""CDT, Table 1: the real data sets, as they are read here."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from streamapp.lab.experiments.base import Report, Row, Size
from streamapp.lab.experiments.cdt.cdt_data import PUBLISHED, found, load

TITLE = "CDT (Confidence Decision Trees), Table 1: the real data sets"


def cells(size: Size, data: Path | None) -> list[dict[str, Any]]:
    """Return one cell for each set in the folder; each size counts the whole set."""
    return [{"set": name, "folder": str(data)} for name in found(data)]


def run(cell: dict[str, Any]) -> dict[str, Any]:
    """Read a set and count."""
    records = load(cell["set"], Path(cell["folder"]))
    shares = np.bincount(records.y, minlength=2)
    return {
        "attributes": records.x.shape[1],
        "records": len(records.y),
        "counts": dict(zip(records.schema.classes, shares.tolist(), strict=False)),
    }


def report(rows: Sequence[Row]) -> Report:
    """Return the counts beside the published counts, the smaller class beside the smaller class."""
    lines = []
    for row in rows:
        published = PUBLISHED[row["set"]]
        lines.append(
            {
                "set": row["set"],
                "attributes": row["attributes"],
                "attributes published": published.attributes,
                "records": row["records"],
                "records published": published.records,
                "rarer": min(row["counts"].values()),
                "rarer published": min(published.positive, published.negative),
                "same": (row["attributes"], row["records"], sorted(row["counts"].values()))
                == (
                    published.attributes,
                    published.records,
                    sorted((published.positive, published.negative)),
                ),
            }
        )
    return Report(tables={"table1": list(lines)})
