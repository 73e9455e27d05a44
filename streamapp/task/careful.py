"""Processing a run so that an unexpected exception names its record, and perhaps costs that record only.

run ──> process ──> effects ──> encode ──> records
          │ exception in either: back to before the run, then record by record
          ├─ dead-letter:     the culprit becomes a dead letter, the others are processed
          └─ stop-partition:  ProcessingError with topic, partition, offset and model key
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Sequence
from typing import TypeVar

from streamapp.errors import StreamappError
from streamapp.task.effects import DeadLetter, Effects, Notice, Origin, join
from streamapp.task.parts import parts
from streamapp.task.record_error import RecordError
from streamapp.task.shelf import ShelfError
from streamapp.task.task import Run, Task
from topics.errors import Reason
from topics.records import RawRecords

T = TypeVar("T")
Encode = Callable[[RawRecords, Effects], Sequence[T]]
"""What makes records of the effects of a run; it may add to the effects."""


class ProcessingError(StreamappError):
    """Our own code (or a plug-in) failed on a record; its partition must not go on."""

    def __init__(self, raw: RawRecords, record: int, cause: BaseException, hint: str = "") -> None:
        """`record`: index of the culprit in `raw`."""
        key = raw.keys[record]
        self.topic, self.partition, self.offset = raw.topic, raw.partition, raw.offsets[record]
        self.model_key = None if key is None else key.decode("utf-8", "replace")
        super().__init__(
            f"topic={self.topic} partition={self.partition} offset={self.offset} model={self.model_key!r}: "
            f"{type(cause).__name__}: {cause}{hint}; "
            "processing.exception.handler=dead-letter would put such a record aside"
        )


def process_carefully(task: Task, run: Run, encode: Encode[T]) -> tuple[Effects, list[T]]:
    """Process a run and encode what it leads to; return both.

    An unexpected exception is dealt with as `processing.exception.handler` says. After a ProcessingError the
    task must be dropped: its models may have learned a part of the run. With `dead-letter` every model is
    copied before it changes, and a record that failed leaves nothing behind. A ShelfError is no record's
    fault and goes through: the task is lost.
    """
    try:
        effects = task.process(run)
        return effects, list(encode(run.raw, effects))
    except ShelfError:
        raise
    except Exception as error:
        task.rollback()
        if task.config.processing_exception_handler == "dead-letter":
            return _one_by_one(task, run, encode)
        raise _named(task, run, error, encode) from _cause(error)


def _one_by_one(task: Task, run: Run, encode: Encode[T]) -> tuple[Effects, list[T]]:
    """Process the records of a run each by itself; those that fail become dead letters."""
    parts: list[tuple[int, Effects]] = []
    records: list[T] = []
    for record, single in enumerate(_singles(run)):
        try:
            effects = task.process(single)
            encoded = encode(single.raw, effects)
        except ShelfError:
            raise
        except Exception as error:
            task.rollback()
            effects = _put_aside(task, single, error)
            encoded = encode(single.raw, effects)
        parts.append((record, effects))
        records += encoded
    if run.position is not None:
        task.next[run.source] = run.position
    return join(parts), records


def _put_aside(task: Task, single: Run, error: Exception) -> Effects:
    """Return the dead letter of a record that cannot be processed, and go on behind it."""
    task.skip(single)
    origin, cause = Origin.of(single.raw, 0), _cause(error)
    trace = "".join(traceback.format_exception(error)) if task.config.dead_letter_stacktrace else None
    letter = DeadLetter(
        origin,
        Reason.PROCESSING_ERROR,
        f"{type(cause).__name__}: {cause}",
        exception=f"{type(cause).__module__}.{type(cause).__qualname__}",
        stacktrace=trace,
        attempts=2,
    )
    key = None if origin.key is None else origin.key.decode("utf-8", "replace")
    text = f"{origin.topic} partition {origin.partition}: {letter.detail}; the record is a dead letter"
    effects = Effects(dead_letters=[letter], notices=[Notice("error", text, key, origin.offset)])
    effects.count(f"{single.source}.dead-letter")
    task.counters.update(effects.counts)
    return effects


def _named(task: Task, run: Run, error: Exception, encode: Encode[T]) -> ProcessingError:
    """Return the error with the record that caused it: the one it names, or the first that fails by itself.

    The models may not be as they were before the run. That does not hide a record that cannot be processed;
    should no single one fail, the whole run is named by its first record.
    """
    if isinstance(error, RecordError):
        return ProcessingError(run.raw, error.record, _cause(error))
    for record, single in enumerate(_singles(run)):
        try:
            encode(single.raw, task.process(single))
        except ShelfError:
            raise
        except Exception as again:
            return ProcessingError(run.raw, record, _cause(again))
    hint = f" (no record of the run up to offset {run.raw.offsets[-1]} fails by itself)"
    return ProcessingError(run.raw, 0, error, hint)


def _cause(error: BaseException) -> BaseException:
    """Return what failed, without what only says where."""
    return error.__cause__ if isinstance(error, RecordError) and error.__cause__ else error


def _singles(run: Run) -> list[Run]:
    """Return a run for each record; decoding again gives each the rows it had."""
    return [Run(run.source, part) for _, part in parts(run.raw, range(len(run.raw)))]
