"""Unused features: values that have no place in a model's schema."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from core.schema.schema import MAX_VALUES
from streamapp.worker.task import counters
from streamapp.worker.task.effects.effects import Effects, Notice
from streamapp.worker.task.models.model_keys import ModelKeys
from streamapp.worker.task.models.model_store import ModelStore
from streamapp.worker.task.models.schemas.feature_placement import Grown, Part, Placement
from topics.columns.records import Ints32, Ints64, RawRecords


def note_ignored(
    placement: Placement,
    parts: Sequence[Part],
    store: ModelStore,
    raw: RawRecords,
    record: Ints32,
    effects: Effects,
) -> None:
    """Count the values of unknown features, and warn of them once per model; record: int32[n] of each row."""
    first: dict[int, tuple[int, str]] = {}  # slot -> its first row with an unknown feature
    for part, has_value in placement.ignored(parts):
        effects.count(counters.FEATURES_IGNORED, int(np.count_nonzero(has_value)))
        rows = np.flatnonzero(has_value.any(axis=1))
        for slot, at in zip(*np.unique(part.slots[rows], return_index=True), strict=True):
            if int(slot) not in store.warned:
                row = int(part.rows[rows[at]])
                names = [
                    part.name(part.layout.unknown[place]) for place in np.flatnonzero(has_value[rows[at]])
                ]
                first[int(slot)] = min(first.get(int(slot), (row, min(names))), (row, min(names)))
    for slot, (row, feature) in sorted(first.items(), key=lambda item: item[1]):
        store.warn(slot)
        text = (
            f"feature {feature!r} is not in the model's schema; this and later unknown features are ignored"
        )
        effects.notices.append(Notice("warning", text, store.keys[slot], raw.offsets[record[row]]))


def note_values(
    grown: Grown, model: Ints64, keys: ModelKeys, raw: RawRecords, record: Ints32, effects: Effects
) -> None:
    """Count the values that got no code, and warn when an attribute has received its last value.

    model: int64[n] slot, record: int32[n] of each row.
    """
    effects.count(counters.VALUES_IGNORED, grown.ignored)
    for row, name in grown.full:
        text = (
            f"nominal attribute {name!r} has {MAX_VALUES:,} values and takes in no more: all later values "
            "count as missing; declare its values in the model's schema"
        )
        effects.notices.append(Notice("warning", text, keys[int(model[row])], raw.offsets[record[row]]))
