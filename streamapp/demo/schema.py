"""Schema of the demo's data set, for models that have to know their features before any comes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import orjson

from core.errors import SchemaError
from core.schema.schema import Schema
from core.spec import Spec
from topics.readers import Dataset

Floats = npt.NDArray[np.float64]


def schema_of(dataset: Dataset, extent: tuple[Floats, Floats] | None = None) -> dict[str, Any]:
    """Return the schema of a data set that was read, as a control says it.

    extent: of each column the least and the greatest value, float64[d] each, for the ranges of numeric
    attributes; one that is constant, or has no value, gets a range of 1.
    """
    columns = zip(dataset.names, dataset.kinds, dataset.values, dataset.open, strict=True)
    attributes: list[dict[str, Any]] = [
        {"name": name} if kind == "numeric" else {"name": name, "kind": kind, "values": values, "open": more}
        for name, kind, values, more in columns
    ]
    if extent is not None:
        for attribute, low, high in zip(attributes, *(each.tolist() for each in extent), strict=True):
            if "kind" not in attribute:
                start = low if np.isfinite(low) else 0.0
                attribute["range"] = [start, high if high > start else start + 1.0]
    return {"attributes": attributes, "classes": dataset.classes}


def extent_of(extent: tuple[Floats, Floats] | None, x: Floats) -> tuple[Floats, Floats]:
    """Return the least and greatest value of each column, float64[d] each, of what was seen and x too.

    x: float64[n, d], NaN where there is no value; a column without any has inf and -inf.
    """
    low = np.fmin.reduce(x, axis=0, initial=np.inf)
    high = np.fmax.reduce(x, axis=0, initial=-np.inf)
    return (low, high) if extent is None else (np.fmin(extent[0], low), np.fmax(extent[1], high))


def schema_for(
    spec: Mapping[str, Any], schema: Mapping[str, Any], ranged: Mapping[str, Any]
) -> Mapping[str, Any]:
    """Return the schema for a model: the one with ranges only if its learner does not do without."""
    learner = Spec.parse(dict(spec)).learner
    try:
        learner.check_schema(Schema.from_json(orjson.dumps(dict(schema))))
    except SchemaError:
        return ranged
    return schema
