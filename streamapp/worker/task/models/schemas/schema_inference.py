"""Inference: the schema of a model from its first record, and the attribute for a new value."""

from __future__ import annotations

from typing import Final
from weakref import WeakValueDictionary

import numpy as np

from core.schema.schema import Attribute, Schema
from topics.columns.records import Features

_inferred: Final[WeakValueDictionary[tuple[object, ...], Schema]] = WeakValueDictionary()
"""Schemas of first records, by their features, the number of classes, and which features have a value or a
text.
"""


def attribute_of(features: Features, feature: int, row: int) -> Attribute:
    """Return the attribute for a value: a numeric one for a number, an open nominal one for a string.

    row: of the group.
    """
    name = f"f{feature}" if features.names is None else features.names[feature]
    cells = features.strings.get(feature)
    if cells is not None and cells[row] is not None:
        return Attribute(name, "nominal", open=True)
    return Attribute(name)


def given_width(features: Features, row: int) -> int:
    """Return how many attributes the schema of a first record (`row` of the group) would have."""
    width: int = features.values.shape[1]
    if features.names is None:
        return width
    texts = len([cells for cells in features.strings.values() if cells[row] is not None])
    numbers = int(np.count_nonzero(~np.isnan(features.values[row])))
    return (numbers + texts) or width


def infer_schema(features: Features, row: int, max_classes: int) -> Schema:
    """Return the schema of a model's first record (`row` of the group).

    A feature without a value has no kind yet: it joins the schema with its first value, if that comes before
    the first split. In arrays the position has to be kept: such a feature is numeric. A schema that another
    model has already is found by the given names and kinds, without a look at each feature.
    """
    is_text = np.zeros(features.values.shape[1], dtype=np.bool_)
    is_text[[feature for feature, cells in features.strings.items() if cells[row] is not None]] = True
    has_value = ~np.isnan(features.values[row]) | is_text
    if features.names is None or not np.count_nonzero(has_value):
        has_value[:] = True
    shape = len(is_text) if features.names is None else features.names
    key = (shape, max_classes, has_value.tobytes(), is_text.tobytes())
    schema = _inferred.get(key)
    if schema is None:
        attributes = [attribute_of(features, feature, row) for feature in np.flatnonzero(has_value).tolist()]
        schema = Schema.of(attributes, max_classes=max_classes, open_attributes=True)
        _inferred[key] = schema
    return schema
