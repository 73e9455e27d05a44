"""Growth: how many leading records of a run one step of a worker may process, by what they would add.

A record with known keys, features, values and classes costs microseconds; one that adds to a model costs up
to milliseconds. The sizes of runs follow the costs of earlier runs (transport/run_size.py), so that the first
run of a burst may have thousands of records that all add something. This module counts what they would add,
before the run is processed. The counts are multiplied by the costs below, which are rough upper bounds: they
decide where a run is cut, and no result depends on that.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import repeat
from operator import itemgetter
from typing import Final

import numpy as np

from streamapp.worker.task.instances.family_run import survey
from streamapp.worker.task.models.model_keys import NO_MODEL
from streamapp.worker.task.models.schemas.class_codes import ClassCodes
from streamapp.worker.task.models.schemas.feature_placement import Mask, Part
from streamapp.worker.task.partition_state import PartitionState
from topics.columns.records import Features, Instances, Ints64, Labels

STEP: Final = 40_000
"""Work of a step in microseconds of an ordinary core, counted as below. Records that add nothing count 0."""

# Costs in microseconds of an ordinary core.
PART: Final = 20  # rows that have the same list of names, and models with the same attributes
NAME: Final = 4  # in a list of names that is new to these attributes
NEW_MODEL: Final = 100
NEW_SCHEMA: Final = 1500  # of a new model that begins like no other
LAYOUT: Final = 300  # a model is laid out again, for any number of additions
NEW_NAMES: Final = 150  # a record with features that its model takes in
ATTRIBUTE: Final = 10
LONE_LAYOUT: Final = 2500  # of one record whose features cannot be added together with later ones
CLASS: Final = 200
VALUE: Final = 15
EPISODE: Final = 1600  # a record of a model that buys features
WORDS: Final = 32
"""Words of a model that are made or copied in a microsecond."""

USUAL_WORDS: Final = 1 << 14
"""Words that are assumed of a new model if the partition has made none yet."""

LOOKED_AT: Final = 128
"""Rows in which values are looked up together."""

Addition = tuple[int, int]
"""Row that adds something, and its cost."""


def leading_records(state: PartitionState, batch: Instances | Labels, n: int, most: int = STEP) -> int:
    """Return how many of the n records of a run, at least one, add to models no more than `most` work."""
    if len(batch) < 2 or (isinstance(batch, Instances) and survey(state, batch) is not None):
        return n
    spent = 0
    for row, cost in sorted(_Additions(state, batch).all()):
        spent += cost
        if spent > most:
            return max(1, int(batch.record[row]))
    return n


class _Additions:
    """What the rows of a batch would add to models; each kind is followed until it alone fills a step."""

    def __init__(self, state: PartitionState, batch: Instances | Labels) -> None:
        self._state, self._store, self._placement = state, state.store, state.placement
        self._batch = batch
        self._slots = state.store.keys.slots(batch.keys)
        self._model: Ints64 = self._slots[batch.key]
        self._laid_out: set[int] = set()

    def all(self) -> list[Addition]:
        """Return the additions of all kinds, in any order."""
        additions = [*_up_to_a_step(self._layouts())]
        parts = self._parts(additions)
        if isinstance(self._batch, Instances):
            if self._state.acquires_any:
                additions += _up_to_a_step(self._episodes())
            additions += _up_to_a_step(self._attributes(parts))
        if self._slots.min() == NO_MODEL:
            additions += _up_to_a_step(self._models())
        additions += _up_to_a_step(self._values(parts))
        additions += _up_to_a_step(self._classes())
        return additions

    def _layouts(self) -> list[Addition]:
        """Return the first rows of parts, in the order of rows."""
        layouts: list[Addition] = []
        for group in self._batch.features:
            slots = self._model[group.rows]
            uids = np.where(slots == NO_MODEL, NO_MODEL, self._store.traits.columns_uid[slots])
            first = [0]
            if np.count_nonzero(uids == uids[0]) < len(uids):
                first = np.unique(uids, return_index=True)[1].tolist()
            for at in first:
                is_known = self._placement.has_layout(group, int(uids[at]))
                names = 0 if is_known else NAME * group.values.shape[1]
                layouts.append((int(group.rows[at]), PART + names))
        return sorted(layouts)

    def _parts(self, layouts: list[Addition]) -> list[Part]:
        """Return the parts up to the row at which their layouts alone fill a step."""
        groups, model = self._batch.features, self._model
        if sum(cost for _, cost in layouts) > STEP:
            end = layouts[-1][0]
            groups = [group for group in groups if group.rows[0] < end]
            model = np.where(np.arange(len(model)) < end, model, NO_MODEL)
        return self._placement.parts(groups, model)[0]

    def _episodes(self) -> Iterator[Addition]:
        acquires = np.array([self._state.acquires(key) for key in self._batch.keys], dtype=np.bool_)
        for row in np.flatnonzero(acquires[self._batch.key]).tolist():
            yield row, EPISODE

    def _models(self) -> Iterator[Addition]:
        """Yield the first rows of keys without model; some need a schema that no earlier one of them has."""
        batch = self._batch
        group_of = _groups(batch.features, len(batch))
        rows = np.flatnonzero((self._model == NO_MODEL) & (group_of >= 0))
        _, first = np.unique(batch.key[rows], return_index=True)
        words = (self._store.templates.latest_words or USUAL_WORDS) // WORDS
        schemas: set[tuple[int, bytes]] = set()
        for row in rows[np.sort(first)].tolist():
            number = int(group_of[row])
            group = batch.features[number]
            missing = np.isnan(group.values[np.searchsorted(group.rows, row)])
            schema = number, missing.tobytes()
            yield row, NEW_MODEL + words + (0 if schema in schemas else NEW_SCHEMA + NAME * len(missing))
            schemas.add(schema)

    def _attributes(self, parts: Iterable[Part]) -> Iterator[Addition]:
        """Yield the rows with features that their models lack but would take in."""
        store, most = self._store, self._placement.max_attributes
        lacking: list[tuple[int, int, int]] = []  # row, slot, new features
        for part in parts:
            if not part.layout.unknown or not part.columns.open:
                continue
            slots = part.slots
            takes_in = (
                store.traits.open[slots] & ~store.traits.frozen[slots] & (store.traits.width[slots] < most)
            )
            if np.count_nonzero(takes_in):
                new = (part.given(part.layout.unknown) & takes_in[:, np.newaxis]).sum(axis=1)
                at = np.flatnonzero(new)
                lacking += zip(part.rows[at].tolist(), slots[at].tolist(), new[at].tolist(), strict=True)
        sure: dict[int, float] = {}
        for row, slot, new in sorted(lacking):
            if slot not in sure:
                sure[slot] = store.cache.peek(slot).undecided_weight
            if sure[slot] < 0.0 or (sure[slot] == 0.0 and self._batch.label[row] >= 0):
                layout = LONE_LAYOUT + self._words_of(slot)
            else:
                layout = self._layout(slot)
            yield row, NEW_NAMES + ATTRIBUTE * new + layout

    def _values(self, parts: Iterable[Part]) -> Iterator[Addition]:
        """Yield the first rows of values that are new to their models, in the order of rows.

        Values are looked up in some rows first, and in all rows only if one of these has a new value.
        """
        nominal = [part for part in parts if part.layout.nominal]
        n = len(self._batch)
        if not nominal or (n > 2 * LOOKED_AT and not self._new_values(nominal, _spread(n))):
            return
        seen: set[tuple[int, int, str]] = set()
        start, size = 0, LOOKED_AT
        while start < n:
            rows = np.arange(n)
            for row, cell in self._new_values(nominal, (rows >= start) & (rows < start + size)):
                if cell not in seen:
                    seen.add(cell)
                    yield row, VALUE + self._layout(cell[0])
            start, size = start + size, 2 * size

    def _new_values(self, nominal: Iterable[Part], keep: Mask) -> list[tuple[int, tuple[int, int, str]]]:
        """Return the new values in the rows in keep (bool[n]), in the order of rows.

        Each has its row, and as its cell: slot, attribute and value.
        """
        parts = [part for part in (nominal_part.within(keep) for nominal_part in nominal) if part is not None]
        width = max((len(part.columns.attributes) for part in parts), default=0)
        new_values: list[tuple[int, tuple[int, int, str]]] = []
        for attribute, rows, values in self._placement.place(parts, len(keep), width).new_values:
            cells = zip(self._model[rows].tolist(), repeat(attribute), values, strict=False)
            new_values += zip(rows.tolist(), cells, strict=True)
        return sorted(new_values, key=itemgetter(0))

    def _classes(self) -> Iterator[Addition]:
        """Yield the first rows of classes that are new to their models."""
        batch = self._batch
        labelled = np.flatnonzero(batch.label >= 0)
        if not len(labelled):
            return
        code = np.full(len(batch), -1, dtype=np.int32)
        if self._slots.max() != NO_MODEL:
            names = ClassCodes(self._store.traits, self._store.growth, batch.label_values)
            code = np.where(self._model == NO_MODEL, code, names.known(self._slots, batch.key, batch.label))
        new = labelled[code[labelled] < 0]
        pair = batch.key[new].astype(np.int64) * len(batch.label_values) + batch.label[new]
        _, first = np.unique(pair, return_index=True)
        for row in new[np.sort(first)].tolist():
            yield row, CLASS + self._layout(int(self._model[row]))

    def _layout(self, slot: int) -> int:
        """Return the cost of laying a model out again, which its further additions share: 0."""
        if slot == NO_MODEL or slot in self._laid_out:
            return 0
        self._laid_out.add(slot)
        return LAYOUT + self._words_of(slot)

    def _words_of(self, slot: int) -> int:
        """Return the cost of copying a model once."""
        return len(self._store.cache.peek(slot).ints) // WORDS


def _groups(features: Iterable[Features], n: int) -> Ints64:
    """Return int64[n]: the number of the group that holds each row's features, -1: none does."""
    number = np.full(n, -1, dtype=np.int64)
    for at, group in enumerate(features):
        number[group.rows] = at
    return number


def _spread(n: int) -> Mask:
    """Return bool[n]: true for LOOKED_AT rows at equal distances."""
    chosen = np.zeros(n, dtype=np.bool_)
    chosen[np.linspace(0, n - 1, LOOKED_AT).astype(np.int64)] = True
    return chosen


def _up_to_a_step(additions: Iterable[Addition]) -> Iterator[Addition]:
    """Yield additions up to the one that exceeds the work of a step."""
    spent = 0
    for row, cost in additions:
        yield row, cost
        spent += cost
        if spent > STEP:
            return
