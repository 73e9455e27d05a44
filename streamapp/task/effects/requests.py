"""Label requests for the rows whose label a query strategy asks for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from streamapp.task.effects.effects import Requests
from streamapp.task.effects.replies import Replies
from streamapp.task.models.store import ModelStore
from topics.records import Features, Instances, Ints64, LabelRequests, RawRecords


def label_requests(
    raw: RawRecords,
    batch: Instances,
    rows: Ints64,
    model: Ints64,
    store: ModelStore,
    replies: Replies,
    expires: Ints64,
    places: Sequence[str] | None = None,
) -> Requests:
    """Return the requests for `rows` (int64[m], ascending).

    model: int64[n] slots; expires: int64[m] event time after which the label comes too late. A request is
    known by the place of its instance in the log, `<partition>-<offset>`, in blocks `-<row>` after it:
    unique on its topic and the same in a replay; `places`: of each row, if it is not that of its record. Its
    utility is the uncertainty of the answer, 1 minus the largest probability.
    """
    slots = model[rows].tolist()
    code = replies.prediction[rows].tolist()
    probability = replies.probability[rows]
    certain = probability.max(axis=1) if probability.shape[1] else np.zeros(len(rows))
    block = set(batch.blocks[:, 0].tolist())
    strategy = {slot: store.spec(slot).query.name for slot in set(slots)}
    requests = LabelRequests(
        request_ids=[*places] if places else [_place(raw, batch, row, block) for row in rows.tolist()],
        instance_ids=[batch.ids[row] for row in rows.tolist()],
        features=list(_features(batch, rows, model, store)),
        predictions=[
            store.schema(slot).classes[c] if c >= 0 else None for slot, c in zip(slots, code, strict=True)
        ],
        strategies=[strategy[slot] for slot in slots],
        utility=1.0 - certain,
        expires_ms=expires,
    )
    return Requests(batch.record[rows], requests)


def place_of(raw: RawRecords, batch: Instances, row: int) -> str:
    """Return the place of an instance in the log, as requests name it."""
    return _place(raw, batch, row, set(batch.blocks[:, 0].tolist()))


def _place(raw: RawRecords, batch: Instances, row: int, block: set[int]) -> str:
    record = int(batch.record[row])
    place = f"{raw.partition}-{raw.offsets[record]}"
    return f"{place}-{batch.row[row]}" if record in block else place


def _features(batch: Instances, rows: Ints64, model: Ints64, store: ModelStore) -> Iterator[Features]:
    """Yield the features as they came; those given by position get the names of the model's schema."""
    place = np.full(len(batch), -1, dtype=np.int64)
    place[rows] = np.arange(len(rows))
    for group in batch.features:
        chosen = np.flatnonzero(place[group.rows] >= 0)
        if len(chosen) and group.names is not None:
            yield _part(group, chosen, group.names, place)
        elif len(chosen):
            uids = store.schema_uid[model[group.rows[chosen]]]
            for uid in np.unique(uids).tolist():
                alike = chosen[uids == uid]
                names = store.schema(int(model[group.rows[alike[0]]])).names
                yield _part(group, alike, names[: group.values.shape[1]], place)


def _part(group: Features, chosen: Ints64, names: tuple[str, ...], place: Ints64) -> Features:
    strings = {feature: [cells[row] for row in chosen.tolist()] for feature, cells in group.strings.items()}
    return Features(names, place[group.rows[chosen]], group.values[chosen], strings)
