"""Feature values that a model's schema has no place for."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from streamapp.task import counters
from streamapp.task.effects import Effects, Notice
from streamapp.task.model_store import ModelStore
from streamapp.task.placement import Part, Placement
from topics.records import Ints32, RawRecords


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
