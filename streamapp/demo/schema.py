"""Schema of the demo's data set, for models that have to know their features before any comes."""

from __future__ import annotations

from typing import Any

from topics.readers import Dataset


def schema_of(dataset: Dataset) -> dict[str, Any]:
    """Return the schema of a data set that was read, as a control says it."""
    columns = zip(dataset.names, dataset.kinds, dataset.values, dataset.open, strict=True)
    attributes: list[dict[str, Any]] = [
        {"name": name} if kind == "numeric" else {"name": name, "kind": kind, "values": values, "open": more}
        for name, kind, values, more in columns
    ]
    return {"attributes": attributes, "classes": dataset.classes}
