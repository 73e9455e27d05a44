"""Instances: answered, requested and learned in one call; some wait for their label.

    resolve models ─> place features ─> labels to codes ─> kernel ─> answers, requests, pendings, events
                      └── again, from the first row whose new features depend on earlier rows ────────┘

A whole run goes through one kernel call. Features that are new to their model, and that the model would add
to its schema, are added together for many rows. This is possible as long as no earlier row can split the
model, because a model that has split adds no features: so a row after the first label that may cause a split
waits for it. The new features of all rows of a block are added together, at the first row that has one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from heapq import heapify, heappop, heapreplace
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from core.errors import RowError
from core.model_table import ANSWER_ONLY, LABELLED, unit_weight_rule
from core.schema.schema import Schema
from streamapp.worker.task import counters
from streamapp.worker.task.effects.effects import DeadLetter, Effects
from streamapp.worker.task.effects.model_events import ModelEvents
from streamapp.worker.task.effects.model_happenings import happened
from streamapp.worker.task.effects.record_error import RecordError
from streamapp.worker.task.effects.refusals import Refusals
from streamapp.worker.task.effects.replies import Replies
from streamapp.worker.task.effects.unused_features import note_ignored, note_values
from streamapp.worker.task.instances.rows import InstanceRows
from streamapp.worker.task.model_creation import RefusedModelError, make_model
from streamapp.worker.task.models.model_keys import NO_MODEL
from streamapp.worker.task.models.schemas.class_codes import ClassCodes, RefusedClassError
from streamapp.worker.task.models.schemas.feature_placement import NewAttribute, Part, Placed
from streamapp.worker.task.partition_state import PartitionState
from streamapp.worker.task.pending.early_labels import HeldLabel
from streamapp.worker.task.pending.event_time import RunTime
from streamapp.worker.task.pending_policy import keep_and_request
from topics.columns.records import MAX_WEIGHT, Floats, Instances, Ints32, Ints64, RawRecords, weight_rule
from topics.errors import Reason

Mask = npt.NDArray[np.bool_]

LOOK_AHEAD: Final = 32
"""Lists of features that are handled together: rows that have new features are first handled this many at a
time.
"""

_CLASS_BITS = 16  # a schema has at most 32,767 classes


class InstancesRun(InstanceRows):
    """One run of instances of any kind; n rows."""

    def __init__(
        self, state: PartitionState, raw: RawRecords, batch: Instances, time: RunTime, effects: Effects
    ) -> None:
        super().__init__(state, raw, batch, time, effects)
        n = len(batch)
        self.slots: Ints64 = np.zeros(0, dtype=np.int64)  # slot of each key
        self.model: Ints64 = np.full(n, NO_MODEL, dtype=np.int64)  # slot of each row
        self.classes = ClassCodes(state.store.traits, state.store.growth, list(batch.label_values))
        self.weight: Floats = batch.weight
        self.labelled: Mask = np.zeros(n, dtype=np.bool_)  # learned at once
        self.frozen: Mask = np.zeros(n, dtype=np.bool_)
        self.width: Ints32 = np.zeros(n, dtype=np.int32)  # attributes of the model when it answered the row
        self._lacks: Ints32 = np.zeros(n, dtype=np.int32)  # attributes that later rows have added to it
        self._x: list[tuple[Ints64, Floats]] = []  # rows of a call (int64[m]) and their features
        self.refusals = Refusals(raw, batch)
        self.replies = Replies(n)
        self.model_events = ModelEvents(state.store, raw, batch.record, batch.ids)
        self.held_dead_letters: list[DeadLetter] = []  # held labels that cannot be learned
        self._first_schemas: list[Schema | None] = []  # of refused models: kept for the next records of a key

    def process(self) -> None:
        """Answer every row that can be answered."""
        if len(self.batch):
            self._resolve()
            self._answer()
            if self.challenged:
                self.challenged.compare(self.model, self.replies, self.clocks, self.model_events)
            self._keep_and_request()
            self.effects.answers += self.replies.groups(self.batch, self.model, self.store.traits)
            self.model_events.write(self.effects)
        self._write_counts()
        self.effects.dead_letters += self.refusals.dead_letters(self.held_dead_letters)

    @property
    def label_values(self) -> Sequence[str]:
        """Class names: of labels that came with the rows, and of labels that were held back for them."""
        return self.classes.names

    def features_of(self, rows: Ints64) -> Floats:
        """Return float64[m, D]: the features that answered rows (int64[m]) had in their models' columns."""
        if len(self._x) == 1:
            called, placed = self._x[0]
            return placed[rows if len(called) == len(self.batch) else np.searchsorted(called, rows)]
        x = np.full((len(rows), max((x.shape[1] for _, x in self._x), default=0)), np.nan)
        for called, placed in self._x:
            mine = np.isin(rows, called)
            x[mine, : placed.shape[1]] = placed[np.searchsorted(called, rows[mine])]
        return x

    # -- models ---------------------------------------------------------------------------------------------

    def _resolve(self) -> None:
        """Find the model of each row; make those that do not exist, in the order of their first rows.

        A row whose features cannot make the model is refused, with the rows of its record and key. The next
        record of the key makes the model if it can.
        """
        batch, slots = self.batch, self.store.keys.slots(self.batch.keys)
        self.slots, self.model = slots, slots[batch.key]
        if slots.min() >= 0:
            return
        # The keys include those of malformed records, which make no model.
        missing = np.flatnonzero(self.model < 0)
        order = missing[np.argsort(batch.key[missing], kind="stable")]
        keys, first = np.unique(batch.key[order], return_index=True)
        of_key = dict(zip(keys.tolist(), np.split(order, first[1:]), strict=True))
        heads = [(int(rows[0]), key) for key, rows in of_key.items()]
        heapify(heads)
        while heads:
            _, key = heads[0]
            rest = self._create(key, of_key[key])
            if len(rest):
                of_key[key] = rest
                heapreplace(heads, (int(rest[0]), key))
            else:
                heappop(heads)

    def _create(self, key: int, rows: Ints64) -> Ints64:
        """Make the model of a key from the first of its `rows` (int64[m]); return the rows to try it next."""
        row = int(rows[0])
        record, name = int(self.batch.record[row]), self.batch.keys[key]
        groups, offset = self.batch.features, self.raw.offsets[record]
        try:
            slot = make_model(self.state, name, groups, row, offset, self.effects)
        except RefusedModelError as error:
            alike = len(rows)
            if error.reason != Reason.UNKNOWN_MODEL:  # which does not depend on the record
                alike = int(np.searchsorted(self.batch.record[rows], record, side="right"))
            self._first_schemas.append(error.schema)
            for refused in rows[:alike].tolist():
                self.refusals.add(refused, error.reason, error.detail)
            return rows[alike:]
        self.slots[key] = self.model[rows] = slot
        happening = happened("created", self.store, slot, self.raw, record, instance_id=self.batch.ids[row])
        self.effects.happened.append(happening)
        return rows[:0]

    # -- rows whose models have all the features they may add ---------------------------------------------

    def _answer(self) -> None:
        """Answer all rows that have a model, one stretch of rows after another.

        New features of the rows of a stretch are added together. A long stretch needs fewer steps; a short
        one wastes less work if a model may split within it.
        """
        rest = (self.model >= 0).nonzero()[0]
        few = len(self.batch.features) <= LOOK_AHEAD
        look_ahead = len(rest) if few else LOOK_AHEAD
        while len(rest):
            stretch = rest[: self._end_of_record(rest, look_ahead)]
            unanswered = self._answer_ready_rows(stretch)
            look_ahead = 2 * (len(stretch) - len(unanswered))
            rest = (
                np.concatenate((unanswered, rest[len(stretch) :]))
                if len(unanswered)
                else rest[len(stretch) :]
            )

    def _end_of_record(self, rest: Ints64, n: int) -> int:
        """Return the number of rows up to the end of the n-th row's record."""
        if n >= len(rest):
            return len(rest)
        record = self.batch.record
        return int(np.searchsorted(record[rest], record[rest[n - 1]], side="right"))

    def _answer_ready_rows(self, stretch: Ints64) -> Ints64:
        """Answer rows of a stretch (int64[m]) until a model that still lacks features may split.

        Return the rows that are left.
        """
        parts, wrong, new = self._parts_of(stretch)
        if new and self._add_attributes(stretch, new):
            parts, wrong, new = self._parts_of(stretch)
        if not new:
            self._answer_rows(stretch, parts, wrong)
            return stretch[:0]
        until = np.full(len(self.store.traits.open), len(self.batch))
        until[list(new)] = [attributes[0].row for attributes in new.values()]
        is_ready = stretch < until[self.model[stretch]]
        keep = np.zeros(len(self.batch), dtype=np.bool_)
        keep[stretch[is_ready]] = True
        ready_parts = [part for part in (whole_part.within(keep) for whole_part in parts) if part is not None]
        self._answer_rows(
            stretch[is_ready], ready_parts, {row: flaw for row, flaw in wrong.items() if keep[row]}
        )
        return stretch[~is_ready]

    def _parts_of(
        self, stretch: Ints64
    ) -> tuple[list[Part], dict[int, tuple[Reason, str]], dict[int, list[NewAttribute]]]:
        """Return the parts of a stretch's rows (int64[m]), rows that fit no model, and new features."""
        placement, model, groups = self.state.placement, self.model, self.batch.features
        if len(stretch) < len(model):
            model = np.full(len(model), NO_MODEL, dtype=np.int64)
            model[stretch] = self.model[stretch]
            if len(groups) > LOOK_AHEAD:
                groups = [groups[number] for number in np.unique(self._group[stretch]).tolist()]
        parts, wrong = placement.parts(groups, model)
        return parts, wrong, placement.new_attributes(parts, self.batch.record)

    @cached_property
    def _is_by_position(self) -> Mask:
        """bool[n]: whether a row's features are an array in the order of the schema."""
        is_array = np.zeros(len(self.batch), dtype=np.bool_)
        for group in self.batch.features:
            if group.names is None:
                is_array[group.rows] = True
        return is_array

    @cached_property
    def _group(self) -> Ints32:
        """int32[n]: the number of the group that holds each row's features."""
        number = np.zeros(len(self.batch), dtype=np.int32)
        for at, group in enumerate(self.batch.features):
            number[group.rows] = at
        return number

    def _add_attributes(self, stretch: Ints64, new: Mapping[int, Sequence[NewAttribute]]) -> bool:
        """Add the new features of rows before which their model cannot split; return whether any were added.

        A row's features are added before it is answered, together with later rows' features. This changes
        nothing before their values come, unless a split is decided in between.
        """
        has_grown = False
        for slot, (rows, last) in self._last_sure_rows(stretch, [*new]).items():
            admitted = [new_attribute for new_attribute in new[slot] if new_attribute.row <= last]
            if not admitted:
                continue
            has_grown = True
            attributes = [new_attribute.attribute for new_attribute in admitted]
            self.store.growth.grow(slot, self.store.traits.schema(slot).with_attributes(attributes))
            came = np.searchsorted([new_attribute.row for new_attribute in admitted], rows, side="right")
            self._lacks[rows] = len(admitted) - came
        return has_grown

    def _last_sure_rows(self, stretch: Ints64, slots: Sequence[int]) -> dict[int, tuple[Ints64, int]]:
        """Return for each model its rows in a stretch, and the last row before which it cannot have split.

        A tree learns nothing from rows without labels, and splits at no label before the first that is due.
        An array must have as many values as its model has attributes at that row: no feature of a later row
        may be added before it.
        """
        models = self.model[stretch]
        order = np.argsort(models, kind="stable")
        begins = np.searchsorted(models[order], slots)
        ends = np.searchsorted(models[order], slots, side="right")
        may_release = len(self.state.early) > 0 and not self.state.early.knows_none_of(self.names)
        last_rows: dict[int, tuple[Ints64, int]] = {}
        for slot, begin, end in zip(slots, begins.tolist(), ends.tolist(), strict=True):
            rows = stretch[order[begin:end]]
            sure = self.store.cache.peek(slot).undecided_weight
            learned = (self.label[rows] >= 0) | may_release | (sure < 0.0)
            last = len(self.batch)
            if np.count_nonzero(learned):
                weight = np.cumsum(np.where(learned, self.weight[rows], 0.0))
                due = learned & (may_release | (weight >= sure))
                if np.count_nonzero(due):
                    last = int(rows[np.argmax(due)])
            by_position = self._is_by_position[rows]
            if np.count_nonzero(by_position):
                last = min(last, int(rows[np.argmax(by_position)]))
            last_rows[slot] = rows, last
        return last_rows

    def _answer_rows(self, rows: Ints64, parts: Sequence[Part], wrong: dict[int, tuple[Reason, str]]) -> None:
        """Answer `rows` (int64[m], ascending); their features are in `parts`, rows with flaws in `wrong`."""
        placement, n = self.state.placement, len(self.batch)
        placed = placement.place(parts, n, int(self.store.traits.width[self._of(rows, self.model)].max()))
        placed.flaws |= wrong
        for row, (reason, detail) in placed.flaws.items():
            self.refusals.add(row, reason, detail)
        self._refuse_weights(rows)
        rows = self._accepted(rows)
        frozen = self.store.traits.frozen[self._of(rows, self.model)]
        held_labels = self._release_early(rows, frozen)
        code = self._class_codes(rows, frozen, held_labels)
        if len(self.refusals):
            accepted = self._accepted(rows)
            stays = np.isin(rows, accepted)
            rows, frozen, code = accepted, frozen[stays], code[stays]
        for row in self.refusals.rows():
            placed.flaws.setdefault(row, (Reason.WRONG_SCHEMA, ""))
        grown = placement.grow_values(placed, self.model)
        note_values(grown, self.model, self.store.keys, self.raw, self.batch.record, self.effects)
        note_ignored(placement, parts, self.store, self.raw, self.batch.record, self.effects)
        n_frozen = int(np.count_nonzero(frozen))
        changing = self._of(rows[~frozen] if n_frozen else rows, self.model)
        if self.store.growth.grown:
            changing = np.append(changing, [*self.store.growth.grown])
        self.state.will_change(changing)
        self.store.growth.adopt()
        self.width[rows] = self.store.traits.width[self._of(rows, self.model)] - self._lacks[rows]
        # `rows` may be few of many, for example of a block in which row after row adds features.
        self._x.append((rows, self._of(rows, placed.x)))
        if n_frozen:
            self.frozen[rows[frozen]] = True
            self._call(rows[frozen], placed, np.full(n_frozen, -1, dtype=np.int32), ANSWER_ONLY)
            rows, code = rows[~frozen], code[~frozen]
        if len(rows):
            self._call(rows, placed, code, LABELLED)

    def _refuse_weights(self, rows: Ints64) -> None:
        """Refuse rows (int64[m]) with weights whose models count records."""
        if not np.count_nonzero(self.store.traits.counts_records):
            return
        bad = self.store.traits.counts_records[self._of(rows, self.model)] & (
            self._of(rows, self.weight) != 1.0
        )
        refused = self.refusals.rows()
        for row in rows[bad].tolist():
            if row not in refused:
                rule = unit_weight_rule(
                    self.weight[row], self.store.cache.plan(int(self.model[row])).spec.learner
                )
                self.refusals.add(row, Reason.BAD_WEIGHT, rule)

    def _of(self, rows: Ints64, column: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return a column for rows (int64[m], ascending): the column itself, if these are all rows."""
        return column if len(rows) == len(self.batch) else column[rows]

    def _accepted(self, rows: Ints64) -> Ints64:
        refused = self.refusals.rows()
        return rows[~np.isin(rows, refused)] if refused else rows

    def _call(self, rows: Ints64, placed: Placed, code: Ints32, mode: int) -> None:
        """Let the kernels answer `rows` (int64[m]), and learn where code (int32[m]) is a class."""
        store = self.store
        model, x, weight = (self._of(rows, column) for column in (self.model, placed.x, self.weight))
        n_known = self._known_classes(model, code)
        store.cache.use(model)
        try:
            answers = store.table.answer(model, x, code, weight, mode)
            if mode == LABELLED:
                self.challenged.answer(rows, model, x, code, weight)
        except RowError as error:
            raise RecordError(int(self.batch.record[rows[error.row]])) from error.__cause__
        learned = code >= 0
        if np.count_nonzero(learned):
            self.labelled[rows[learned]] = True
            learned &= code >= n_known
            store.traits.learn_classes(model[learned], code[learned])
        self.replies.add(rows, answers, n_known)

        def records(at: int) -> int:
            behind = int(np.count_nonzero(model[at + 1 :] == model[at]))
            return store.cache.peek(int(model[at])).scale().records - behind

        self.model_events.add(answers.events, rows, answers.version.item, records)

    def _known_classes(self, model: Ints64, code: Ints32) -> Ints32:
        """Return int32[m]: how many classes each row's model has learned when it answers.

        A class counts once a label of it was learned, even if its code was given out before the run.
        """
        n_known: Ints32 = self.store.traits.known_classes[model]
        growing = n_known < self.store.traits.n_classes[model]
        if np.count_nonzero(growing):
            at = growing.nonzero()[0]
            n_known[at] = _known_before(model[at], n_known[at], code[at])
        return n_known

    # -- labels that come with their instance, or came before it --------------------------------------------

    def _class_codes(self, rows: Ints64, frozen: Mask, held_labels: dict[int, HeldLabel]) -> Ints32:
        """Return int32[m]: the code of each row's class; -1 without a label, or if the model is frozen."""
        label = self._of(rows, self.label)
        code = self.classes.known(self.slots, self._of(rows, self.batch.key), label)
        if np.count_nonzero(frozen):
            self.effects.count(counters.INSTANCES_FROZEN, int(np.count_nonzero(label[frozen] >= 0)))
            code[frozen] = -1
        new = ((label >= 0) & (code < 0) & ~frozen).nonzero()[0]
        if len(new):
            self._admit(rows, code, new, held_labels)
        return code

    def _admit(self, rows: Ints64, code: Ints32, new: Ints64, held_labels: dict[int, HeldLabel]) -> None:
        """Put the codes of classes new to their models into `code` (int32[m], of `rows`) at `new`.

        The result for the first row of a class applies to all its rows: a refused class stays refused.
        """
        names = self.classes.names
        pair = self.model[rows[new]] * len(names) + self.label[rows[new]]
        _, first, number = np.unique(pair, return_index=True, return_inverse=True)
        for which in np.argsort(first).tolist():
            alike = new[number == which]
            row = int(rows[alike[0]])
            try:
                code[alike] = self.classes.admit(int(self.model[row]), names[self.label[row]])
            except RefusedClassError as error:
                self._refuse_class(rows[alike], held_labels, error)

    def _refuse_class(
        self, rows: Ints64, held_labels: dict[int, HeldLabel], error: RefusedClassError
    ) -> None:
        for row in rows.tolist():
            if row in held_labels:
                self._refuse_held(row, held_labels[row], error)
            else:
                self.refusals.add(row, error.reason, error.detail)

    def _release_early(self, rows: Ints64, frozen: Mask) -> dict[int, HeldLabel]:
        """Give rows the labels that were held back for them; return row → label."""
        early, held_labels = self.state.early, dict[int, HeldLabel]()
        if not len(early) or early.knows_none_of(self.names):
            return held_labels
        names, clocks = [*self.names], self.clocks
        for at, row in enumerate(rows.tolist()):
            name = names[row]
            if not early.knows(name):
                continue
            held_label = early.find(name, clocks.item(row))
            if held_label is None or held_label.released:
                continue
            early.release(name)
            if frozen[at]:
                self.effects.count(counters.LABELS_FROZEN)
            elif self.label[row] >= 0:
                self.effects.count(counters.DUPLICATE)
            elif held_label.weight > MAX_WEIGHT:  # a release without this bound held it back
                self._dead_letter_held(row, held_label, Reason.BAD_WEIGHT, weight_rule(held_label.weight))
            elif self.store.traits.refuses_weight(int(self.model[row]), held_label.weight):
                rule = unit_weight_rule(
                    held_label.weight, self.store.cache.plan(int(self.model[row])).spec.learner
                )
                self._dead_letter_held(row, held_label, Reason.BAD_WEIGHT, rule)
            else:
                held_labels[row] = held_label
        if held_labels:
            self._apply_held_labels(held_labels)
        return held_labels

    def _apply_held_labels(self, held_labels: dict[int, HeldLabel]) -> None:
        self.label, self.weight = self.label.copy(), self.weight.copy()
        names = self.classes.names
        code = {name: code for code, name in enumerate(names)}
        for row, label in held_labels.items():
            if label.label not in code:
                code[label.label] = len(names)
                names.append(label.label)
            self.label[row], self.weight[row] = code[label.label], label.weight
        self.effects.count(counters.LEARNED, len(held_labels))
        self.effects.count(counters.EARLY_LEARNED, len(held_labels))

    def _refuse_held(self, row: int, held_label: HeldLabel, error: RefusedClassError) -> None:
        """Make a dead letter of a held label that was applied; its instance is answered without a label."""
        self._dead_letter_held(row, held_label, error.reason, error.detail)
        for name in (counters.LEARNED, counters.EARLY_LEARNED):
            self.effects.counts[name] -= 1

    def _dead_letter_held(self, row: int, held_label: HeldLabel, reason: Reason, detail: str) -> None:
        rows = () if held_label.block_row is None else ((held_label.block_row, reason),)
        record = int(self.batch.record[row])
        self.held_dead_letters.append(DeadLetter(held_label.origin, reason, detail, rows, record=record))
        self.effects.count(counters.LABELS_DEAD)

    # -- afterwards -----------------------------------------------------------------------------------------

    def _keep_and_request(self) -> None:
        keep_and_request(self)

    def _write_counts(self) -> None:
        malformed = sum(len(malformed.rows) or 1 for malformed in self.batch.malformed)
        self.effects.count(counters.ANSWERED, int(np.count_nonzero(self.replies.answered)))
        self.effects.count(counters.LABELLED, int(np.count_nonzero(self.labelled)))
        self.effects.count(counters.INSTANCES_DEAD, malformed + len(self.refusals))


def _known_before(model: Ints64, n_known: Ints32, code: Ints32) -> Ints64:
    """Return int64[m]: how many classes each row's model has learned before that row.

    model: int64[m]; known: int32[m], classes that the model had learned before all rows; code: int32[m]
    learned, -1 none.
    """
    order = np.argsort(model, kind="stable")
    begins = np.diff(model[order], prepend=-1) != 0
    # Numbers that increase from model to model: one running maximum serves all models.
    floor = np.cumsum(begins) << _CLASS_BITS
    after = np.maximum.accumulate(floor + np.maximum(n_known, code + 1)[order])
    before = np.where(begins, floor + n_known[order], np.roll(after, 1)) - floor
    known_before = np.empty(len(model), dtype=np.int64)
    known_before[order] = before
    return known_before
