"""Labels: each is matched with its instance, and has one outcome.

    own features, or the pending instance's ──> one learn call, in the order of the labels
    no instance yet ──> held back (early)      instance given up ──> late      had its label ──> duplicate

A late label is learned with the tree as it is when the label arrives; evaluation and drift detector use the
prediction that was given when the instance was answered [D58].
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from core.active.label_account import ANSWERED, DECLINED, NOT_SAMPLED
from core.errors import RowError
from core.model_table import unit_weight_rule
from streamapp.worker.task import counters
from streamapp.worker.task.challenges.challenged_labels import LearnedLabels
from streamapp.worker.task.effects.effects import Effects, Origin
from streamapp.worker.task.effects.label_requests import FOR_COMPARISON
from streamapp.worker.task.effects.model_events import ModelEvents
from streamapp.worker.task.effects.record_error import RecordError
from streamapp.worker.task.effects.refusals import Refusals
from streamapp.worker.task.effects.replies import NO_CLASS
from streamapp.worker.task.instances.own_features import OwnFeatures
from streamapp.worker.task.model_creation import comes_into_being
from streamapp.worker.task.models.model_keys import NO_MODEL
from streamapp.worker.task.models.schemas.class_codes import ClassCodes, RefusedClassError
from streamapp.worker.task.partition_state import PartitionState
from streamapp.worker.task.pending.early_labels import HeldLabel
from streamapp.worker.task.pending.entries import Kept
from streamapp.worker.task.pending.event_time import RunTime
from streamapp.worker.task.pending.name_columns import Name, Names
from streamapp.worker.task.pending.pending import State
from streamapp.worker.task.training_batch import TrainingBatch, TrainingColumns, TrainingRow
from topics.columns.distinct import distinct
from topics.columns.records import MAX_WEIGHT, Floats, Ints32, Ints64, Labels, RawRecords
from topics.errors import Reason

PLAIN: Final = 0  # sorts of labels
REPEATED: Final = 1
LATE: Final = 2
EARLY: Final = 3
SPECIAL: Final = 4
NOT_KEPT: Final = -1  # serial if an instance is not pending
FEW: Final = 8  # fewer labels than this are faster to handle one by one


class Sorts(NamedTuple):
    """The sort of each of n labels, which determines its handling."""

    sort: npt.NDArray[np.int8]  # int8[n]
    code: Ints32  # int32[n]: class in the model, -1: not known


class LabelsRun:
    """One run of labels on its way through the task."""

    def __init__(
        self, state: PartitionState, raw: RawRecords, batch: Labels, time: RunTime, effects: Effects
    ) -> None:
        self.state, self.store = state, state.store
        self.raw, self.batch, self.effects = raw, batch, effects
        self.classes = ClassCodes(state.store.traits, state.store.growth, batch.label_values)
        self._clocks: Ints64 = time.clocks()[batch.record]
        self.clocks: list[int] = self._clocks.tolist()
        self.refusals = Refusals(raw, batch)
        self.model_events = ModelEvents(state.store, raw, batch.record, batch.ids)
        self.own = OwnFeatures(state, batch)
        self.training = TrainingBatch()
        self.names = Names(batch.keys, batch.key, batch.ids)
        self._serials: Ints64 = state.pending.serials(self.names)  # valid as long as no name leads elsewhere
        self._found_at = state.pending.names_changed
        self._learned_now: dict[Name, int] = {}  # rows learned without a pending instance, to be remembered

    def process(self) -> None:
        """Give every label its outcome, and learn those that can be learned."""
        batch = self.batch
        self.own.resolve(self.raw, self.effects)
        if len(batch):
            self._give_outcomes()
        self._remember_learned()
        training = self.training.columns()
        if len(training.row):
            self._learn(training)
        self.model_events.write(self.effects)
        self.effects.count(
            counters.LABELS_DEAD, sum(len(malformed.rows) or 1 for malformed in batch.malformed)
        )
        self.effects.dead_letters += self.refusals.dead_letters()

    def _give_outcomes(self) -> None:
        """Handle every label in order: labels of one sort together, up to each special label."""
        pending, names, label = self.state.pending, self.names, self.batch.label.tolist()
        sorts = self._sorts()
        oldest, at = pending.first, 0
        for special in [*np.flatnonzero(sorts.sort == SPECIAL).tolist(), len(names)]:
            # A label keeps its sort, unless an earlier label made the store forget the instance.
            if special - at >= FEW and pending.first == oldest:
                self._give_many(sorts, at, special)
                at = special
            for row in range(at, min(special + 1, len(names))):
                name = names[row]
                outcome = self._decline(row, name) if label[row] < 0 else self._label(row, name)
                self.effects.count(outcome)
            at = special + 1

    # -- labels with nothing special about them -------------------------------------------------------------

    def _sorts(self) -> Sorts:
        """Return the sort of each label, which does not depend on the handling of earlier labels.

        PLAIN: the first label of its instance here, which waits for it, of a class that its model has
        learned. REPEATED: changes nothing, because its instance had its label before, or has a plain label
        here. LATE: the instance was given up before the first label here. EARLY: the first label here of a
        name that is unknown. All labels with features, or with anything unusual about the model or the
        instance, are SPECIAL.
        """
        store, batch = self.store, self.batch
        slots, n = store.keys.slots(batch.keys), len(self.names)
        model = slots[batch.key]
        is_open, is_settled, is_remembered = self.state.pending.states_of(self._serials, self._clocks)
        at, which = distinct(self._serials)
        first, number = at[which], np.arange(n)
        free = self._unencumbered(slots, model)
        code = np.full(n, -1, dtype=np.int32)
        if slots.max() != NO_MODEL:
            code = self.classes.known(slots, batch.key, batch.label)
        plain = free & is_open & (first == number) & (code >= 0) & (model != NO_MODEL)
        plain &= ~store.traits.counts_records[model] | (batch.weight == 1.0)
        repeated = is_settled | (is_remembered & plain[first] & (first != number))
        repeated &= model != NO_MODEL
        repeated[[*self.own.rows]] = False
        expired = is_remembered & ~is_open & ~is_settled
        late = free & expired & expired[first] & (batch.label >= 0) & (model != NO_MODEL)
        if self.own.rows:
            late &= ~np.isin(self._serials, self._serials[[*self.own.rows]])
        early = free & ~is_remembered & (batch.label >= 0)
        if np.count_nonzero(early):
            early &= self._is_first_of_name()
        sort = np.full(n, SPECIAL, dtype=np.int8)
        for code_of_sort, rows in ((EARLY, early), (LATE, late), (REPEATED, repeated), (PLAIN, plain)):
            sort[rows] = code_of_sort
        return Sorts(sort, code)

    def _unencumbered(self, slots: Ints64, model: Ints64) -> npt.NDArray[np.bool_]:
        """Return bool[n]: labels whose handling has no special conditions.

        They have no features; their model exists (or would be created) and learns; no label of their instance
        is held, and no feature is being bought; slots: int64[k], model: int64[n].
        """
        state, store, names = self.state, self.store, self.names
        free: npt.NDArray[np.bool_] = (model == NO_MODEL) | ~store.traits.frozen[model]
        free[[*self.own.rows]] = False
        unknown = [
            code
            for code in np.flatnonzero(slots == NO_MODEL).tolist()
            if not comes_into_being(state, self.batch.keys[code])
        ]
        if unknown:
            free &= ~np.isin(self.batch.key, unknown)
        if len(state.episodes):
            free[[name in state.episodes for name in names]] = False
        if not state.early.knows_none_of(names):
            free[[state.early.knows(name) for name in names]] = False
        return free

    def _is_first_of_name(self) -> npt.NDArray[np.bool_]:
        """Return bool[n]: labels that are the first of their names here."""
        highest = np.maximum.accumulate(self.names.codes)
        is_first: npt.NDArray[np.bool_] = np.diff(highest, prepend=-1) > 0
        return is_first

    def _give_many(self, sorts: Sorts, start: int, stop: int) -> None:
        """Handle the labels from `start` to before `stop`, none of which is special."""
        sort = sorts.sort[start:stop]
        plain = start + np.flatnonzero(sort == PLAIN)
        self._accept_plain(plain, self._serials[plain], sorts.code[plain])
        early = start + np.flatnonzero(sort == EARLY)
        if len(early):
            self._hold_all(early)
            self.effects.count(counters.EARLY, len(early))
        self.effects.count(counters.DUPLICATE, int(np.count_nonzero(sort == REPEATED)))
        self.effects.count(counters.LATE, int(np.count_nonzero(sort == LATE)))

    def _accept_plain(self, row: Ints64, serial: Ints64, code: Ints32) -> None:
        """Learn plain labels; row, serial: int64[m], code: int32[m]."""
        if not len(row):
            return
        pending, batch = self.state.pending, self.batch
        slot = self.store.keys.slots(batch.keys)[batch.key[row]]
        self.training.add_all(TrainingColumns(row, slot, serial, code, *pending.answers(serial)))
        pending.settle_open(serial)
        self.effects.count(counters.LEARNED, len(row))

    # -- one label ------------------------------------------------------------------------------------------

    def _decline(self, row: int, name: Name) -> str:
        serial, state = self._find(row)
        if state == "settled" or self._learned_before(row, name):
            return counters.DUPLICATE
        if state == "open":
            if self.state.pending.answered(serial)[1]:
                # In its place among the rows: an evaluation that becomes due counts the labels before it.
                slot = self.store.keys.slot(name[0])
                self.training.add(TrainingRow(row, slot, NOT_KEPT, DECLINED, -1, False, NOT_SAMPLED, 0.0))
            self.state.pending.settle(serial)
        return counters.DECLINED

    def _label(self, row: int, name: Name) -> str:
        """Decide the outcome of a label."""
        slot, own = self.store.keys.slot(name[0]), row in self.own.rows
        if row in self.own.flaws:
            return self._refuse(row, *self.own.flaws[row])
        if slot == NO_MODEL and not comes_into_being(self.state, name[0]):
            return self._refuse(
                row, Reason.UNKNOWN_MODEL, f"model {name[0]!r} is unknown; create it by a control"
            )
        clock = self.clocks[row]
        serial, state = self._find(row)
        early = self.state.early.find(name, clock) is not None
        if state == "settled" or early or self._learned_before(row, name):
            return counters.DUPLICATE
        if slot != NO_MODEL and self.store.traits.frozen[slot]:
            return counters.LABELS_FROZEN
        if name in self.state.episodes:  # the episode never sees the label
            return self._hold(row)
        if state == "open" or own:
            return self._accept(row, name, slot, serial, state == "expired")
        return counters.LATE if state == "expired" else self._hold(row)

    def _find(self, row: int) -> tuple[int, State]:
        """Return the result of `Pending.find`."""
        pending = self.state.pending
        if pending.names_changed == self._found_at:
            serial = int(self._serials[row])
        else:
            serial = int(pending.serials(self.names[row : row + 1])[0])
        return pending.state_of(serial, self.clocks[row])

    def _learned_before(self, row: int, name: Name) -> bool:
        """Return whether an earlier label of this run had features, and is still remembered."""
        earlier = self._learned_now.get(name)
        return earlier is not None and self.clocks[row] - self.clocks[earlier] <= self.state.pending.memory_ms

    def _accept(self, row: int, name: Name, slot: int, serial: int, late: bool) -> str:
        """Learn a label, if its class is admitted."""
        pending = self.state.pending
        weight = float(self.batch.weight[row])
        if slot != NO_MODEL and self.store.traits.refuses_weight(slot, weight):
            return self._refuse(
                row, Reason.BAD_WEIGHT, unit_weight_rule(weight, self.store.cache.plan(slot).spec.learner)
            )
        try:
            code = self.classes.admit(slot, self.classes.names[self.batch.label[row]])
        except RefusedClassError as error:
            return self._refuse(row, error.reason, error.detail)
        answer = pending.answered(serial) if serial >= 0 else (NO_CLASS, False, NOT_SAMPLED, 0.0)
        if slot != NO_MODEL and serial < self.store.traits.since[slot]:  # another model answered
            answer = (NO_CLASS, *answer[1:])
        # A late instance that is still remembered has given up its features.
        features = NOT_KEPT if late else serial
        self.training.add(TrainingRow(row, slot, features, code, *answer))
        if late:
            pending.expire(self.clocks[row])
        if serial >= 0:
            pending.settle(serial)
        else:
            if name in self._learned_now:  # so long ago that the instance was forgotten
                self._remember_learned()
            self._learned_now[name] = row
            if not pending.has_room(len(self._learned_now)):
                self._remember_learned()
        return counters.LATE_LEARNED if late else counters.LEARNED

    def _hold(self, row: int) -> str:
        self._hold_all(np.array([row]))
        return counters.EARLY

    def _hold_all(self, rows: Ints64) -> None:
        """Hold labels back (int64[m]), in their order."""
        batch, hold = self.batch, self.state.early.hold
        record = batch.record[rows]
        at, which = distinct(record)
        origins = Origin.of_all(self.raw, record[at])
        share = np.searchsorted(batch.record, record, "right") - np.searchsorted(batch.record, record)
        bad = [malformed.record for malformed in batch.malformed]
        of_block = (share > 1) | np.isin(record, bad)  # bad rows count
        names, classes = self.names.where(rows), self.classes.names
        columns = (batch.label[rows], batch.weight[rows], batch.row[rows], share, which, self._clocks[rows])
        for name, label, weight, row, n, origin, clock, is_row in zip(
            names, *(column.tolist() for column in columns), of_block.tolist(), strict=True
        ):
            source_record = origins[origin]
            size = len(source_record.value or b"") // n
            hold(name, HeldLabel(classes[label], weight, clock, source_record, row if is_row else None, size))

    def _refuse(self, row: int, reason: Reason, detail: str) -> str:
        self.refusals.add(row, reason, detail)
        return counters.LABELS_DEAD

    # -- all labels -----------------------------------------------------------------------------------------

    def _remember_learned(self) -> None:
        """Remember the instances that came with their labels, so that a second label is a duplicate."""
        rows = list(self._learned_now.values())
        if not rows:
            return
        n, names = len(rows), list(self._learned_now)
        slots = np.array([self.store.keys.slot(key) for key, _ in names], dtype=np.int32)
        width, predicted = np.zeros(n, dtype=np.int32), np.full(n, NO_CLASS, dtype=np.int32)
        born = np.array([self.clocks[row] for row in rows], dtype=np.int64)
        requested, sampled = np.zeros(n, dtype=np.bool_), np.zeros(n, dtype=np.int8)
        kept = Kept(names, slots, np.zeros((n, 0)), width, predicted, requested, sampled, np.zeros(n), born)
        self.state.pending.keep(kept, settled=True)
        self._learned_now.clear()

    def _learn(self, training: TrainingColumns) -> None:
        """Learn the training rows in one call."""
        store = self.store
        row, model, serial, code, predicted, requested, sampled, importance = training
        own = (serial == NOT_KEPT) & (code >= 0)
        self.own.grow_values(set(row[own].tolist()), self.raw, self.effects)
        self.state.will_change(np.append(model, [*store.growth.grown]).astype(np.int64))
        store.growth.adopt()
        x = self._features(row, serial, own, int(store.traits.width[model].max()))
        weight = np.where(code >= 0, self.batch.weight[row], 1.0)
        kept = (serial != NOT_KEPT) & (code >= 0)
        weight[kept] = np.minimum(weight[kept] * self.state.pending.column("scale", serial[kept]), MAX_WEIGHT)
        shares, report = np.zeros((len(row), 0)), np.zeros((len(row), 0))
        if kept.any():
            known, reported = self.state.pending.shares(serial[kept])
            shares = np.zeros((len(row), known.shape[1]))
            report = np.full((len(row), reported.shape[1]), np.nan)
            shares[kept], report[kept] = known, reported
        answered = predicted
        predicted = self._own_answers(model, serial, kept, predicted, sampled, shares)
        evaluated = np.where(sampled == FOR_COMPARISON, NOT_SAMPLED, sampled).astype(np.int8)
        columns = (model, x, code, weight, predicted, requested, evaluated, importance, shares, report)
        start = 0
        # A label that is learned with its episode begins a call: the model gets the episode before it.
        for stop in [*self._with_episodes(serial, kept), len(row)]:
            if stop > start:
                self._learn_rows(row[start:stop], *(column[start:stop] for column in columns))
            if stop < len(row):
                self._hand_in(int(model[stop]), int(serial[stop]))
            start = stop
        store.traits.learn_classes(model, code)
        if store.keys.has_challengers:
            self._learn_challenged(training, x, weight, answered)
        self._count_ends(training)

    def _own_answers(
        self,
        model: Ints64,
        serial: Ints64,
        kept: npt.NDArray[np.bool_],
        predicted: Ints32,
        sampled: npt.NDArray[np.int8],
        shares: Floats,
    ) -> Ints32:
        """Return the answers that count for the evaluations of models (int32[m]); clear shares of the others.

        Answers of a model that a challenger has replaced do not count, and answers to disagreements.
        """
        not_own = sampled == FOR_COMPARISON
        not_own |= kept & (serial < self.store.traits.since[model])
        if not np.count_nonzero(not_own):
            return predicted
        shares[not_own] = 0.0
        return np.where(not_own, NO_CLASS, predicted).astype(np.int32)

    def _learn_challenged(
        self, training: TrainingColumns, x: Floats, weight: Floats, answered: Ints32
    ) -> None:
        """Let challengers learn the rows, and compare them; answered: int32[m], the champions' answers."""
        row, model, serial, code = training.row, training.slot, training.serial, training.code
        challenged = LearnedLabels(self.state, row, model, serial, code)
        try:
            challenged.learn(x, weight, training.sampled)
        except RowError as error:
            raise RecordError(int(self.batch.record[row[error.row]])) from error.__cause__
        challenged.compare(answered, self._clocks[row], self.model_events)

    def _with_episodes(self, serial: Ints64, kept: npt.NDArray[np.bool_]) -> list[int]:
        """Return the rows to learn with the words of an episode; kept: bool[m], rows that were pending."""
        rows = np.flatnonzero(kept)
        with_words: list[int] = rows[self.state.pending.column("episode", serial[rows]) > 0].tolist()
        return with_words

    def _hand_in(self, slot: int, serial: int) -> None:
        """Give a model the episode whose label comes next, unless it was configured again."""
        acquirer = self.store.cache.plan(slot).spec.acquirer
        if acquirer is not None and acquirer.writes:
            acquirer.hand_in(self.store.cache.model(slot), self.state.pending.episode(serial), answered=True)

    def _learn_rows(self, row: Ints64, *columns: Any) -> None:
        """Learn rows in one call; columns: models, features, classes, weights, and the answers given."""
        store, model, code = self.store, columns[0], columns[2]
        try:
            events = store.table.learn(*columns)
        except RowError as error:
            raise RecordError(int(self.batch.record[row[error.row]])) from error.__cause__

        def version(at: int) -> int:
            labels = store.cache.model(int(model[at])).summary().labels
            return labels - int(np.count_nonzero((model[at:] == model[at]) & (code[at:] >= 0)))

        def records(at: int) -> int:
            return store.cache.peek(int(model[at])).scale().records

        self.model_events.add(events, row, version, records)

    def _count_ends(self, training: TrainingColumns) -> None:
        """Count the requests that these rows close, and how long labels took to come."""
        row, model, serial, code, _, requested, *_ = training
        for how, ended in ((ANSWERED, requested & (code >= 0)), (DECLINED, code == DECLINED)):
            slots, times = np.unique(model[ended], return_counts=True)
            for slot, n in zip(slots.tolist(), times.tolist(), strict=True):
                self.state.count_closed(slot, how, self.effects, n)
        waited = serial != NOT_KEPT
        if waited.any():
            came = self._clocks[row[waited]]
            self.effects.label_delays.append(came - self.state.pending.column("born", serial[waited]))

    def _features(self, row: Ints64, serials: Ints64, own: npt.NDArray[np.bool_], width: int) -> Floats:
        """Return float64[m, width]: the features of each row, NaN where it has none; own: bool[m]."""
        kept = serials != NOT_KEPT
        if kept.all():
            return self.state.pending.features(serials, width)
        x = np.full((len(row), width), np.nan)
        if kept.any():
            x[kept] = self.state.pending.features(serials[kept], width)
        if own.any():
            brought = self.own.x[row[own]]
            x[own, : brought.shape[1]] = brought[:, :width]
        return x
