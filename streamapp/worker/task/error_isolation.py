"""Error isolation: an unexpected exception names its record, and perhaps costs that record only.

runs ──> process each ──> effects ──> encode ──> records
          │ exception in either: this run goes back to before it, then record by record
          ├─ dead-letter:     the culprit becomes a dead letter, the rest is processed
          └─ stop-partition:  ProcessingError with topic, partition, offset and model key

A record that an operator has skipped (`grove dlq skip`) becomes a dead letter without being read: the run is
cut around it. The run is also cut around a record that stands for an unread batch, and around a record whose
schema the registry does not have. These dead letters leave no trace in the state: a replay leaves them out.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Final, Literal, TypeVar

from streamapp.errors import StreamappError
from streamapp.worker.task.effects.effects import DeadLetter, Effects, Notice, Origin, join
from streamapp.worker.task.effects.record_error import RecordError
from streamapp.worker.task.models.eviction.swap_file import SwapFileError
from streamapp.worker.task.parts import parts
from streamapp.worker.task.task import Task, TaskRun
from topics.columns.records import RawRecords
from topics.errors import Reason
from topics.fetching.refused import RefusedBatch

T = TypeVar("T")
Encode = Callable[[Sequence[tuple[RawRecords, Effects]]], Sequence[Sequence[T] | Exception]]
"""A function that makes records of the effects of each of several runs; it may add to the effects.

An exception in place of the records concerns this run only.
"""


NOTHING_DONE: Final[Mapping[int, Effects | Exception]] = MappingProxyType({})


class ProcessingError(StreamappError):
    """Our own code (or a plug-in) failed on a record; its partition must not go on."""

    def __init__(self, run: TaskRun, record: int, cause: BaseException, hint: str = "") -> None:
        """`record`: index of the culprit in the run."""
        raw, key = run.raw, run.raw.keys[record]
        self.topic, self.partition, self.offset = raw.topic, raw.partition, raw.offsets[record]
        self.model_key = None if key is None else key.decode("utf-8", "replace")
        place = f"{self.partition}:{self.offset}"
        if run.source != "instances":
            place += f" --source {run.source}"
        super().__init__(
            f"topic={self.topic} partition={self.partition} offset={self.offset} model={self.model_key!r}: "
            f"{type(cause).__name__}: {cause}{hint}; "
            f"'grove dlq skip {place}' makes this record a dead letter, "
            "processing.exception.handler=dead-letter every such record"
        )


def process_isolated(
    work: Sequence[tuple[Task, TaskRun]],
    encode: Encode[T],
    ended: Mapping[int, Effects | Exception] = NOTHING_DONE,
) -> list[tuple[Effects, list[T]] | Exception]:
    """Process runs of different tasks, and encode their effects in one call.

    `ended`: by their index in `work`, effects or exceptions of runs that were processed in a round.

    Return for each run its effects and records, or the exception that stops its partition: a ProcessingError,
    or a SwapFileError, which no record has caused. A run that fails has no influence on the other runs.

    The setting `processing.exception.handler` determines how an unexpected exception is handled. After a
    ProcessingError the task must be dropped: its models may have learned a part of the run. With
    `dead-letter` every model is copied before it changes, and a record that failed leaves no trace.
    """
    processed = [
        ended[number] if number in ended else _processed(task, run) for number, (task, run) in enumerate(work)
    ]
    pending = [
        (run.raw, effects)
        for (_, run), effects in zip(work, processed, strict=True)
        if isinstance(effects, Effects)
    ]
    encoded = iter(_encoded_each(pending, encode))
    outcomes: list[tuple[Effects, list[T]] | Exception] = []
    for (task, run), effects in zip(work, processed, strict=True):
        failure: Exception | None
        if isinstance(effects, Effects):
            records = next(encoded)
            if not isinstance(records, Exception):
                outcomes.append((effects, list(records)))
                continue
            failure = records
        else:
            failure = effects
        try:
            outcomes.append(_finished(task, run, failure, encode))
        except Exception as error:  # noqa: BLE001 - of one run: the other runs have their results
            outcomes.append(error)
    return outcomes


def _encoded_each(
    pending: Sequence[tuple[RawRecords, Effects]], encode: Encode[T]
) -> Sequence[Sequence[T] | Exception]:
    """Return the records of each run, or its exception; if the call fails for several, each has its own."""
    if not pending:
        return ()
    try:
        return encode(pending)
    except Exception as error:  # noqa: BLE001 - of one of the runs: the other runs have their records
        if len(pending) == 1:
            return [error]
        return [outcome for pair in pending for outcome in _encoded_each([pair], encode)]


def _processed(task: Task, run: TaskRun) -> Effects | Exception | None:
    """Return the effects of a run, or the exception that it leads to; None: `_around` processes the run."""
    if run.skipped or run.refused or run.unknown:
        return None
    try:
        return task.process(run)
    except Exception as error:  # noqa: BLE001 - whatever a record does is reported
        return error


def _finished(
    task: Task, run: TaskRun, error: Exception | None, encode: Encode[T]
) -> tuple[Effects, list[T]]:
    """Return the result of a run that led to an exception, or (None) that has records to be put aside.

    A run that failed is processed again record by record, or an exception with the culprit is raised.
    """
    if error is None:
        return _around(task, run, encode)
    if isinstance(error, SwapFileError):
        raise error
    task.rollback()
    if task.config.processing_exception_handler == "dead-letter":
        return _one_by_one(task, run, encode)
    raise _named(task, run, error, encode) from _cause(error)


def _around(task: Task, run: TaskRun, encode: Encode[T]) -> tuple[Effects, list[T]]:
    """Process the records around those that are put aside, which become dead letters."""
    aside = run.skipped | run.refused.keys() | run.unknown.keys()
    at = [record for record, offset in enumerate(run.raw.offsets) if offset in aside]
    starts = sorted({0, *at, *(record + 1 for record in at)} - {len(run.raw)})
    done: list[tuple[int, Effects]] = []
    records: list[T] = []
    for start, raw in parts(run.raw, starts):
        part = TaskRun(run.source, raw)
        if raw.offsets[0] in aside:
            batch = run.refused.get(raw.offsets[0])
            reason = run.unknown.get(raw.offsets[0])
            if batch is not None:
                effects = _refused(task, part, batch)
            elif raw.offsets[0] in run.skipped or reason is None:
                effects = _skipped(task, part)
            else:
                effects = _without_schema(task, part, reason)
            records += _encoded(encode, raw, effects)
        else:
            (outcome,) = process_isolated([(task, part)], encode)
            if isinstance(outcome, Exception):
                raise outcome
            effects, encoded = outcome
            records += encoded
        done.append((start, effects))
    if run.position is not None:
        task.next[run.source] = run.position
    return join(done), records


def _skipped(task: Task, single: TaskRun) -> Effects:
    """Return the dead letter of a record that was skipped unread, and continue after it."""
    detail = "an operator skipped it (grove dlq skip)"
    letter = DeadLetter(Origin.of(single.raw, 0), Reason.SKIPPED, detail, exception="SkippedRecord")
    return _instead(task, single, letter, "warning")


def _without_schema(task: Task, single: TaskRun, reason: str) -> Effects:
    """Return the dead letter of a record whose schema cannot be had, and continue after it."""
    letter = DeadLetter(Origin.of(single.raw, 0), Reason.UNKNOWN_SCHEMA, reason, exception="UnknownSchema")
    return _instead(task, single, letter, "warning")


def _refused(task: Task, single: TaskRun, batch: RefusedBatch) -> Effects:
    """Return the dead letter of an unread batch, and continue after it."""
    origin = Origin.of(single.raw, 0)._replace(value=batch.head)
    letter = DeadLetter(origin, batch.reason, batch.detail, exception="RefusedBatch", last_offset=batch.last)
    return _instead(task, single, letter, "error")


def _one_by_one(task: Task, run: TaskRun, encode: Encode[T]) -> tuple[Effects, list[T]]:
    """Process the records of a run one by one; records that fail become dead letters."""
    done: list[tuple[int, Effects]] = []
    records: list[T] = []
    for record, single in enumerate(_singles(run)):
        try:
            effects = task.process(single)
            encoded = _encoded(encode, single.raw, effects)
        except SwapFileError:
            raise
        except Exception as error:  # noqa: BLE001 - whatever a record does is reported
            task.rollback()
            effects = _dead_lettered(task, single, error)
            encoded = _encoded(encode, single.raw, effects)
        done.append((record, effects))
        records += encoded
    if run.position is not None:
        task.next[run.source] = run.position
    return join(done), records


def _dead_lettered(task: Task, single: TaskRun, error: Exception) -> Effects:
    """Return the dead letter of a record that cannot be processed, and continue after it."""
    cause = _cause(error)
    trace = "".join(traceback.format_exception(error)) if task.config.dead_letter_stacktrace else None
    letter = DeadLetter(
        Origin.of(single.raw, 0),
        Reason.PROCESSING_ERROR,
        f"{type(cause).__name__}: {cause}",
        exception=f"{type(cause).__module__}.{type(cause).__qualname__}",
        stacktrace=trace,
        attempts=2,
    )
    return _instead(task, single, letter, "error")


def _instead(task: Task, single: TaskRun, letter: DeadLetter, level: Literal["warning", "error"]) -> Effects:
    """Return the effects of a dead letter in place of its record, and continue after it."""
    task.skip(single)
    origin = letter.origin
    key = None if origin.key is None else origin.key.decode("utf-8", "replace")
    put_aside = "record" if letter.last_offset is None else "batch"
    text = f"{origin.topic} partition {origin.partition}: {letter.detail}; the {put_aside} is a dead letter"
    effects = Effects(dead_letters=[letter], notices=[Notice(level, text, key, origin.offset)])
    effects.count(f"{single.source}.dead-letter")
    task.counters.update(effects.counts)
    return effects


def _named(task: Task, run: TaskRun, error: Exception, encode: Encode[T]) -> ProcessingError:
    """Return the error with the record that caused it: the record it names, or the first that fails alone.

    The models may not be as they were before the run. That does not hide a record that cannot be processed.
    If no single record fails, the error names the first record of the run.
    """
    if isinstance(error, RecordError):
        return ProcessingError(run, error.record, _cause(error))
    for record, single in enumerate(_singles(run)):
        try:
            _encoded(encode, single.raw, task.process(single))
        except SwapFileError:
            raise
        except Exception as again:  # noqa: BLE001 - reported
            return ProcessingError(run, record, _cause(again))
    hint = f" (no record of the run up to offset {run.raw.offsets[-1]} fails alone)"
    return ProcessingError(run, 0, error, hint)


def _encoded(encode: Encode[T], raw: RawRecords, effects: Effects) -> Sequence[T]:
    """Return the records of one run; raise if its effects cannot be encoded."""
    (records,) = encode([(raw, effects)])
    if isinstance(records, Exception):
        raise records
    return records


def _cause(error: BaseException) -> BaseException:
    """Return the original error without its RecordError, which only adds the record."""
    return error.__cause__ if isinstance(error, RecordError) and error.__cause__ else error


def _singles(run: TaskRun) -> list[TaskRun]:
    """Return a run for each record; each decodes to the same rows again."""
    return [TaskRun(run.source, part) for _, part in parts(run.raw, range(len(run.raw)))]
