"""Task: one partition's processing and state. Runs in, effects out.

Pure: no Faust, no Kafka, no clock. The results of a task are a function of its records and their order, never
of their division into runs; time is the records' time. It runs in one thread.

    task = Task(3, TaskConfig.from_settings(settings))
    [(effects, records)] = process_isolated([(task, TaskRun("instances", raw))], encoder.encode_runs)
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from core.model_table import Answers
from streamapp.worker.task import counters
from streamapp.worker.task.acquisition.episode_course import Course
from streamapp.worker.task.challenges.outcomes import settle
from streamapp.worker.task.effects.effects import Effects, join
from streamapp.worker.task.effects.record_error import RecordError
from streamapp.worker.task.instances.family_run import FamilyRun
from streamapp.worker.task.instances.leading_records import STEP, leading_records
from streamapp.worker.task.instances.single import SingleInstances
from streamapp.worker.task.label_review import LabelReview
from streamapp.worker.task.models.awaited_specs import AwaitedSpecs
from streamapp.worker.task.models.eviction.model_memory import ModelMemory
from streamapp.worker.task.models.eviction.swap_file import SwapFileError
from streamapp.worker.task.models.families import Surveyed
from streamapp.worker.task.models.model_store import ModelStore
from streamapp.worker.task.models.quota import ModelQuota
from streamapp.worker.task.partition_state import PartitionState
from streamapp.worker.task.parts import in_time, ticks, where_purchases_change
from streamapp.worker.task.pending.event_time import RunTime
from streamapp.worker.task.pending.pending import Pending
from streamapp.worker.task.sources import SOURCES, Code, SourceName, refused_controls
from streamapp.worker.task.state.assembly import Assembly
from streamapp.worker.task.state.cut import Cut
from streamapp.worker.task.state.digest import digest
from streamapp.worker.task.state.written import WrittenUnits
from streamapp.worker.task.task_config import TaskConfig
from streamapp.worker.task.unit import Unit
from topics.columns.records import Controls, Features, FeatureValues, Instances, Ints64, Labels, RawRecords
from topics.fetching.refused import NO_REFUSED, RefusedBatch

logger = logging.getLogger(__name__)

CODE: Final = {name: source.load() for name, source in SOURCES.items()}
GROWING: Final = ("instances", "labels")  # sources whose records may add to models
MANY_PARTS: Final = 8  # parts of a run of instances from which it is worth decoding the run as a whole


@dataclass(frozen=True, slots=True, eq=False)
class TaskRun:
    """Consecutive records of one input topic of a partition."""

    source: SourceName
    raw: RawRecords
    batch: Instances | FeatureValues | Labels | Controls | None = None  # None: the task decodes `raw` itself
    position: int | None = None  # after the last record; None: directly after it
    # `error_isolation.py` keeps these records from the task, and makes dead letters of them.
    skipped: frozenset[int] = frozenset()  # offsets of records that an operator skipped
    refused: Mapping[int, RefusedBatch] = field(
        default_factory=lambda: NO_REFUSED
    )  # by the offset of the record that stands for the batch
    unknown: Mapping[int, str] = field(default_factory=dict)
    """By offset, why a schema cannot be had."""
    dead: bool = False  # controls of a journal that became dead letters: they are refused again


class Task:
    """The models of one partition and all state that belongs to them."""

    def __init__(
        self,
        partition: int,
        config: TaskConfig,
        quota: ModelQuota | None = None,
        memory: ModelMemory | None = None,
    ) -> None:
        """`quota`: the number of models of the worker, shared by its tasks; None: this task alone may hold
        them all.

        `memory`: of the worker's models, shared too; None: without limit. It does not change the task's
        results.
        """
        self.partition = partition
        self.config = config
        self.next: dict[SourceName, int] = {}  # position after the processed records, per input
        self.counters: Counter[str] = Counter()  # since this task began, replays included
        self._state = PartitionState(config, quota or ModelQuota(config.models_max_count), memory)
        self.models: ModelStore = self._state.store
        """The models, by key."""
        self._next_before, self._counters_before = dict(self.next), dict(self.counters)
        self._has_changed = True  # since `checkpoint`, more than clock, positions, counts and models
        self._may_join: bool | None = None  # None: not looked at since it may have changed
        self._time: RunTime | tuple[RawRecords, int, int] | None = None
        """Event time of a run that is answered with others: records, clock before it, first timestamp."""
        self._plain = self._plain_before = (0, 0)
        """Answers and labels of the runs since `checkpoint` that led to nothing but answers: with the current
        run, and without it.
        """
        self._written = WrittenUnits()
        self._cut: Cut | None = None

    @staticmethod
    def from_units(
        partition: int,
        config: TaskConfig,
        quota: ModelQuota | None,
        units: Iterable[Unit],
        memory: ModelMemory | None = None,
    ) -> Task:
        """Return the task in the units of its cuts, the latest unit of each name; DamagedStateError.

        It continues as if it had never stopped, and counts the units as written. Its models take their places
        of the quota, even beyond its limit.
        """
        task = Task(partition, config, quota, memory)
        assembly = Assembly(partition, task._state)
        try:
            assembly.take(units)
            task.next = assembly.finish(task._written)
        except BaseException:
            task.close()
            raise
        task.checkpoint()
        return task

    @property
    def awaited(self) -> AwaitedSpecs:
        """The specs of keys whose model will be made by their first instance."""
        return self._state.awaited

    @property
    def pending(self) -> Pending:
        """The instances that wait for their labels."""
        return self._state.pending

    @property
    def early_labels(self) -> int:
        """How many labels wait for their instance."""
        return self._state.early.waiting

    @property
    def open_episodes(self) -> int:
        """How many instances wait for features."""
        return len(self._state.episodes)

    @property
    def unfinished_imports(self) -> int:
        """How many imports wait for further parts."""
        return len(self._state.imports)

    @property
    def state_version(self) -> int:
        """The oldest state version whose releases can go on with this task."""
        return self._state.state_version

    @property
    def clock(self) -> int | None:
        """Event time of the partition, ms since the epoch; None before the first record."""
        return self._state.time.clock

    def leading(self, run: TaskRun, most: int = STEP) -> TaskRun:
        """Return a run, decoded, or its first records, if all of them would add too much to models at once.

        `most`: work of the additions (instances/leading_records.py). The rest is a later run: cuts change
        nothing.
        """
        raw, batch = run.raw, run.batch
        if len(raw) < 2 or run.source not in GROWING:
            return run
        if batch is None:
            try:
                (batch,) = CODE[run.source].decode([raw], self.config.limits)
            except Exception:  # noqa: BLE001 - the same happens in `process`, where the record is found
                return run
        assert isinstance(batch, Instances | Labels)
        try:
            n = leading_records(self._state, batch, len(raw), most)
        except SwapFileError:
            raise
        except Exception:
            # Where a run is cut changes nothing: an error here must not stop what `process` can do.
            logger.exception(
                "topic=%s partition=%d: the additions of a run cannot be counted", run.source, raw.partition
            )
            return run
        if n == len(raw):
            return run if run.batch is batch else replace(run, batch=batch)
        return replace(run, raw=raw.part(0, n), batch=None, position=raw.offsets[n])

    def process(self, run: TaskRun) -> Effects:
        """Process a run and return its effects.

        An exception is a bug, here or in a plug-in: state may then be half changed until `rollback`.
        """
        self.checkpoint()
        self._has_changed, self._may_join = True, None
        raw = run.raw
        effects = self._process_records(run) if len(raw) else Effects()
        position = raw.offsets[-1] + 1 if len(raw) and run.position is None else run.position
        self._end(effects)
        if position is not None:
            self.next[run.source] = position
        return effects

    def _end(self, effects: Effects) -> None:
        """End a run: count what it led to, and put it in the order of the records."""
        if effects.happened:
            effects.happened.sort(key=lambda each: each.record)
        if effects.notices:
            effects.notices.sort(key=lambda notice: notice.offset)
        self._state.count_changes(effects)
        for name, n in effects.counts.items():
            self.counters[name] += n
        self._state.store.cache.evict_excess()

    # -- rounds: runs that are answered with those of other tasks (rounds/family_round.py) ------------------

    @property
    def may_join(self) -> bool:
        """Whether a run of instances may be answered together with other tasks' runs."""
        if self._may_join is None:
            self._may_join = self._joins()
        return self._may_join

    def _joins(self) -> bool:
        """Return whether nothing that such runs do not change stands against it."""
        state = self._state
        store = state.store
        return not (
            len(state.episodes)
            or len(state.early)
            or store.growth.is_due
            or store.keys.has_challengers
            or store.cache.n_evicted
            or store.cache.limited
            or state.acquires_any
        )

    @property
    def waits_for_labels(self) -> bool:
        """Whether answered instances concern the instances that wait for their labels."""
        state, pending = self._state, self._state.pending
        keeps_all = state.config.pending_keep == "all"
        return keeps_all or pending.next_serial != pending.first or state.review is not None

    def has_in_place(self, features: Features, slot: int) -> bool:
        """Return whether the values of features are in the columns of the model in a slot."""
        state = self._state
        return state.placement.is_in_place(features, state.store.traits.schema(slot).columns)

    def begin_joined(self, raw: RawRecords, first: int, highest: int) -> bool:
        """Begin a run that is answered together with others; False: it has to be processed alone.

        Event time must not turn back or pass a tick within the run. `first` is the first timestamp of its
        records, `highest` the highest.
        """
        state = self._state
        if self._has_changed or state.undoable:
            self.checkpoint()
        else:
            self._next_before, self._plain_before = dict(self.next), self._plain
            state.time.mark()
        clock, pending, before, is_steady = state.time, state.pending, state.time.clock, False
        try:
            if before is not None and clock.ascend(highest):
                self._time, is_steady = (raw, before, first), pending.tick_of(clock.now) == pending.tick
            elif (time := clock.follow(raw.timestamps)) is not None:
                is_steady = pending.tick_of(time.first) == pending.tick == pending.tick_of(time.last)
                self._time = time
        finally:
            if not is_steady:
                clock.rollback()
        return is_steady

    def will_change(self, slots: Ints64) -> None:
        """Note that models are about to learn; slots: int64[m]."""
        if self._state.undoable:
            self._state.will_change(slots)
        else:  # no model has a challenger, and all are in memory
            self._state.store.changes.touch(slots)

    def end_plain(self, answered: int, labelled: int, position: int) -> None:
        """End a run that was answered together with others and led to nothing but answers."""
        answers, labels = self._plain
        self._plain = answers + answered, labels + labelled
        self.counters[counters.ANSWERED] += answered
        if labelled:
            self.counters[counters.LABELLED] += labelled
        self.next["instances"] = position

    def end_answered(
        self, raw: RawRecords, batch: Instances, surveyed: Surveyed, answers: Answers, position: int
    ) -> Effects:
        """End a run that was answered together with others, and return its effects."""
        self._has_changed = True
        effects = Effects()
        time = self._time
        assert time is not None
        if not isinstance(time, RunTime):
            records, before, first = time
            time = RunTime(records.timestamps, before, self._state.time.now, None, first)
        FamilyRun(self._state, raw, batch, time, effects, surveyed).end(answers)
        self._state.forget_due(time.last)
        self._end(effects)
        self.next["instances"] = position
        return effects

    # -- parts of a run -------------------------------------------------------------------------------------

    def _process_records(self, run: TaskRun) -> Effects:
        """Process a run, cut at the ticks inside it (parts.py)."""
        clock, raw = self._state.time, run.raw
        code = refused_controls() if run.dead else CODE[run.source]
        before = clock.state()
        time = clock.advance(raw.timestamps)
        starts = ticks(self._state.pending, time, steps=self._state.store.keys.has_challengers)
        if run.source == "instances" and self._state.acquires_any:
            starts = sorted({*starts, *where_purchases_change(raw, self._state.acquires)})
        if len(starts) == 1 and not self._state.episodes.is_due(time.last):
            return self._process_part(code, raw, run.batch, time, 0)
        clocks = time.clocks()
        clock.restore(before)
        # If a run has few parts, each is decoded alone, even if the run was decoded: a tick is rare.
        single = self._singles(run) if run.source == "instances" and len(starts) >= MANY_PARTS else None
        return join(
            (start, self._process_part(code, part, batch, clock.advance(part.timestamps), start))
            for start, part in in_time(raw, starts, clocks, self._state.episodes)
            for batch in (single.of(start) if single is not None and len(part) == 1 else None,)
        )

    def _singles(self, run: TaskRun) -> SingleInstances:
        """Return the instances of a run in which many records are processed one by one."""
        batch = run.batch
        if batch is None:
            (batch,) = CODE["instances"].decode([run.raw], self.config.limits)
        assert isinstance(batch, Instances)
        return SingleInstances(batch)

    def _process_part(
        self,
        code: Code[Any],
        raw: RawRecords,
        batch: Instances | FeatureValues | Labels | Controls | None,
        time: RunTime,
        start: int,
    ) -> Effects:
        """Process a part of a run without a tick inside; it begins at record `start` of the run."""
        effects = Effects()
        if time.turned_back or time.begins:
            self._state.turn(time.first)
        self._state.report_closed_requests(time.first, effects)
        settle(self._state, time.first, raw, effects)
        if len(self._state.episodes):
            course = Course(self._state, raw, effects)
            course.finish_overdue(time.first)
            course.answers.give()
        try:
            if batch is None:
                (batch,) = code.decode([raw], self.config.limits)
            if self._state.review is not None and isinstance(batch, Labels):
                batch = self._state.review.arrived(batch)
            code.run(self._state, raw, batch, time, effects).process()
        except RecordError as error:
            raise RecordError(error.record + start) from error.__cause__
        self._state.forget_due(time.last)
        return effects

    def skip(self, run: TaskRun) -> None:
        """Note that a run was handled by other means (its record is a dead letter)."""
        position = run.raw.offsets[-1] + 1 if run.position is None else run.position
        self.next[run.source] = position
        self._has_changed = True  # its counts come next

    def advance(self, source: SourceName, position: int) -> None:
        """Note that no record of a source is left before a position: markers, holes, retention."""
        self.next[source] = position

    def cut(self) -> Cut:
        """Mark the current state between two runs, for a snapshot; earlier runs become final.

        One cut at a time: the previous cut must be done or abandoned.
        """
        if self._cut is not None and not self._cut.over:
            message = f"cut of partition {self.partition} must be done or abandoned before the next one"
            raise RuntimeError(message)
        self.checkpoint()
        self._cut = Cut(self.partition, self.next, self._state, self._written)
        return self._cut

    def digest(self) -> bytes:
        """Return the SHA-256 of the state: equal in tasks that will behave the same from here on."""
        return digest(self.next, self._state)

    def checkpoint(self) -> None:
        """Make everything so far final."""
        self._has_changed = False
        self._state.checkpoint()
        self._next_before, self._counters_before = dict(self.next), dict(self.counters)
        self._plain = self._plain_before = (0, 0)

    def rollback(self) -> None:
        """Go back to the beginning of the last run; models only if the exception handler is `dead-letter`."""
        self._has_changed, self._may_join = True, None
        self._state.rollback()
        self.next, self.counters = dict(self._next_before), Counter(self._counters_before)
        answers, labels = self._plain = self._plain_before
        if answers:
            self.counters.update({counters.ANSWERED: answers, counters.LABELLED: labels})

    def configure(self, config: TaskConfig) -> None:
        """Continue under another configuration, between two runs."""
        self.config = config
        self._may_join = None
        self._state.configure(config)

    def review(self, review: LabelReview) -> None:
        """Let an observer see the answers and labels of all runs from now on."""
        self._state.review = review
        self._may_join = None

    def join(self, quota: ModelQuota, memory: ModelMemory | None = None) -> None:
        """Count this task's models among the models of a worker."""
        self._may_join = None
        self.models.join(quota, memory)

    def close(self) -> None:
        """Return the memory and places of this task's models: the partition left this worker."""
        self.models.close()
