"""Label requests for the rows that a query strategy selects."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np

from streamapp.worker.task.effects.effects import Requests
from streamapp.worker.task.effects.replies import Replies, ids_of
from streamapp.worker.task.models.model_store import ModelStore
from topics.codecs.offset_ids import OffsetIds
from topics.columns.dictionary import Dictionary
from topics.columns.distinct import distinct
from topics.columns.records import Features, Instances, Ints32, Ints64, LabelRequests, RawRecords, Seen

_CODE_BITS: Final = 16  # a schema has at most 32,767 classes

SHARE_DECIMALS: Final = 4  # of a probability, as in predictions

FOR_COMPARISON: Final = 3
"""Source of a sample, in the place of those of core/active/label_account.py: the request is of a challenge.

Neither the evaluation nor the detector of a model uses such a label: at a disagreement one model is wrong.
"""
DISAGREEMENT: Final = "disagreement"
"""Reason of such a request."""

RANGES_BYTES: Final = 48 * 1024
"""Bytes of a request for ranges: the room that its topic has beyond the largest instance, minus a reserve."""
RANGE_BYTES: Final = 80
"""Bytes of one range in addition to the name of its feature: two numbers, a count, and JSON around them."""


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

    model: int64[n] slots; expires: int64[m] event time after which the label comes too late. The id of a
    request is the place of its instance in the log, `<partition>-<offset>`, in blocks followed by `-<row>`:
    unique on its topic and the same in a replay; `places`: of each row, if it differs from its record's
    place. The utility is the uncertainty of the answer, 1 minus the largest probability.
    """
    probability = replies.probability[rows]
    certain = probability.max(axis=1) if probability.shape[1] else np.zeros(len(rows))
    paths, shares = _explained(rows, model[rows].tolist(), store, replies)
    requests = LabelRequests(
        request_ids=places or _places(raw, batch, rows),
        instance_ids=ids_of(batch, rows),
        features=list(_features(batch, rows, model, store)),
        predictions=_named(store, model[rows], replies.prediction[rows]),
        strategies=_strategies(store, model[rows]),
        utility=1.0 - certain,
        expires_ms=expires,
        explanations=paths,
        probabilities=shares,
        ranges=_ranges(rows, model[rows].tolist(), store, replies),
        **_challenged(rows, replies),
    )
    return Requests(batch.record[rows], requests)


def _challenged(rows: Ints64, replies: Replies) -> dict[str, Any]:
    """Return the columns of requests of challenged keys; none if no row has a challenger."""
    if replies.challenged is None or not replies.challenged[rows].any():
        return {}
    reasons = [
        DISAGREEMENT if source == FOR_COMPARISON else None for source in replies.sampled[rows].tolist()
    ]
    answered = replies.challenger or []
    return {"reasons": reasons, "challengers": [answered[row] for row in rows.tolist()]}


def _named(store: ModelStore, slots: Ints64, code: Ints32) -> Dictionary[str | None]:
    """Return the class of each code (int32[m], -1: none) in its model's schema; slots: int64[m]."""
    first, number = distinct((store.traits.schema_uid[slots] << _CODE_BITS) + code)
    classes = [
        store.traits.schema(slot).classes[c] if c >= 0 else None
        for slot, c in zip(slots[first].tolist(), code[first].tolist(), strict=True)
    ]
    return Dictionary(classes, number)


def _strategies(store: ModelStore, slots: Ints64) -> Dictionary[str]:
    """Return the query strategy of each model (int64[m])."""
    first, number = distinct(slots)
    of_models = Dictionary.of([store.cache.plan(slot).spec.query.name for slot in slots[first].tolist()])
    return Dictionary(of_models.values, of_models.codes[number])


def _places(raw: RawRecords, batch: Instances, rows: Ints64) -> Sequence[str]:
    if not len(batch.blocks):
        return OffsetIds(f"{raw.partition}-", raw.spans.offsets.array[batch.record[rows]])
    block = set(batch.blocks[:, 0].tolist())
    return [_place(raw, batch, row, block) for row in rows.tolist()]


def _explained(
    rows: Ints64, slots: Sequence[int], store: ModelStore, replies: Replies
) -> tuple[list[str | None] | None, list[dict[str, float] | None] | None]:
    """Return the paths of some rows and the probabilities at their ends; None if no model explains itself.

    They show annotators how the model weighs the classes (`explain` of a spec).
    """
    if replies.explanation is None:
        return None, None
    paths = [replies.explanation[row] for row in rows.tolist()]
    shares: list[dict[str, float] | None] = []
    for row, slot, path in zip(rows.tolist(), slots, paths, strict=True):
        classes = store.traits.schema(slot).classes[: int(replies.known[row])]
        probabilities = replies.probability[row, : len(classes)].round(SHARE_DECIMALS).tolist()
        shares.append(None if path is None else dict(zip(classes, probabilities, strict=True)))
    return paths, shares


def _ranges(
    rows: Ints64, slots: Sequence[int], store: ModelStore, replies: Replies
) -> list[dict[str, Seen]] | None:
    """Return the ranges of feature values that models had seen at their requests; None: no model has them.

    Ranges of features with long names may be left out: a request must fit its topic.
    """
    if not replies.seen:
        return None
    ranges_of_rows = []
    for row, slot in zip(rows.tolist(), slots, strict=True):
        names, room, ranges = store.traits.schema(slot).names, RANGES_BYTES, dict[str, Seen]()
        for column, seen in replies.seen.get(row, {}).items():
            room -= len(names[column].encode()) + RANGE_BYTES
            if room < 0:
                break
            ranges[names[column]] = Seen(*seen)
        ranges_of_rows.append(ranges)
    return ranges_of_rows


def place_of(raw: RawRecords, batch: Instances, row: int) -> str:
    """Return the place of an instance in the log, as requests use it."""
    return _place(raw, batch, row, set(batch.blocks[:, 0].tolist()))


def _place(raw: RawRecords, batch: Instances, row: int, block: set[int]) -> str:
    record = int(batch.record[row])
    place = f"{raw.partition}-{raw.offsets[record]}"
    return f"{place}-{batch.row[row]}" if record in block else place


def _features(batch: Instances, rows: Ints64, model: Ints64, store: ModelStore) -> Iterator[Features]:
    """Yield the features as they came; features given by position get the names in the model's schema."""
    place = np.full(len(batch), -1, dtype=np.int64)
    place[rows] = np.arange(len(rows))
    for group in batch.features:
        chosen = np.flatnonzero(place[group.rows] >= 0)
        if len(chosen) and group.names is not None:
            yield _part(group, chosen, group.names, place)
        elif len(chosen):
            for names, alike in _by_names(chosen, model[group.rows[chosen]], store, group.values.shape[1]):
                yield _part(group, alike, names, place)


def _by_names(
    rows: Ints64, model: Ints64, store: ModelStore, n_columns: int
) -> Iterator[tuple[tuple[str, ...], Ints64]]:
    """Yield the rows (int64[m]) whose models' schemas name the first columns alike, and these names.

    Schemas differ in the order of their classes, too: the models of a stream have several schemas.
    """
    first, number = distinct(store.traits.schema_uid[model])
    names = Dictionary.of([store.traits.schema(slot).names[:n_columns] for slot in model[first].tolist()])
    which = names.codes[number]
    for code, mine in enumerate(names.values):
        yield mine, rows[which == code]


def _part(group: Features, chosen: Ints64, names: tuple[str, ...], place: Ints64) -> Features:
    strings = {feature: [cells[row] for row in chosen.tolist()] for feature, cells in group.strings.items()}
    return Features(names, place[group.rows[chosen]], group.values[chosen], strings)
