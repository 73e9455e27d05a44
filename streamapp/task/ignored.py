"""Feature values that a model's schema has no place for."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from core.features import MAX_VALUES
from streamapp.task import counters
from streamapp.task.effects import Effects, Notice
from streamapp.task.model_store import ModelStore
from streamapp.task.placement import Grown, Part, Placement
from topics.records import Ints32, Ints64, RawRecords


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
    for feature, rows, slots in placement.ignored(parts):
        effects.count(counters.FEATURES_IGNORED, len(rows))
        for slot in set(np.unique(slots).tolist()) - store.warned:
            row = int(rows[slots == slot][0])
            first[slot] = min(first.get(slot, (row, feature)), (row, feature))
    for slot, (row, feature) in sorted(first.items(), key=lambda each: each[1]):
        store.warn(slot)
        text = f"feature {feature!r} is not in the model's schema; it and later unknown ones are ignored"
        effects.notices.append(Notice("warning", text, store.keys[slot], raw.offsets[record[row]]))


def note_values(
    grown: Grown, model: Ints64, store: ModelStore, raw: RawRecords, record: Ints32, effects: Effects
) -> None:
    """Count the values that got no code, and warn when an attribute has taken in its last one.

    model: int64[n] slot, record: int32[n] of each row.
    """
    effects.count(counters.VALUES_IGNORED, grown.ignored)
    for row, name in grown.full:
        text = (
            f"nominal attribute {name!r} has {MAX_VALUES:,} values and takes in no more: later ones count as "
            "missing; declare its values in the model's schema"
        )
        effects.notices.append(Notice("warning", text, store.keys[int(model[row])], raw.offsets[record[row]]))
