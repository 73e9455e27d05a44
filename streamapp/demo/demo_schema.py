"""Schema of the demo's data set, for models that need to have a schema before the first record."""

from __future__ import annotations

from typing import Any

from topics.readers import Dataset


def schema_of(dataset: Dataset) -> dict[str, Any]:
    """Return the schema of a data set, in the form of a control."""
    columns = zip(dataset.names, dataset.kinds, dataset.values, dataset.open, strict=True)
    attributes: list[dict[str, Any]] = [
        {"name": name} if kind == "numeric" else {"name": name, "kind": kind, "values": values, "open": more}
        for name, kind, values, more in columns
    ]
    return {"attributes": attributes, "classes": dataset.classes}
