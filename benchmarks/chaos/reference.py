"""The undisturbed worker: the models that result from the journal and the logs, in one pass and one process.

Workers trim the journal up to their snapshots. So it is recorded from the beginning while they work
(`tape.py`). The final models result from a replay without snapshots that keeps every model in memory, with
any `models.max.bytes` of the workers.

The records are read in Kafka's own protocol (`source_tape.py`), the journal is decoded by docs/journal.md,
and the headers of records by docs/records.md: only the task is taken from the application.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

import msgpack

from benchmarks.chaos.checker import ENTRY
from benchmarks.chaos.fleet import ChaosError, Wait
from benchmarks.chaos.source_tape import SourceTape
from benchmarks.chaos.wire import Record
from streamapp.worker.task.models.eviction.model_memory import ModelMemory
from streamapp.worker.task.sources import SourceName
from streamapp.worker.task.task import Task, TaskRun
from streamapp.worker.task.task_config import TaskConfig
from topics.columns.records import RawRecords
from topics.definitions import TopicNames

CHALLENGES: Final = ("challenged", "promoted", "dropped", "undecided")
NOT_UTF8: Final = [("\N{REPLACEMENT CHARACTER}", None)]


class Reference:
    """Replays the whole journal in one pass, and holds the resulting models."""

    def __init__(
        self,
        names: TopicNames,
        journal: Mapping[int, Sequence[bytes]],
        logs: Mapping[SourceName, SourceTape],
    ) -> None:
        """`journal` holds the values of each partition's records, from the first one on; `logs` holds all
        sources but controls.
        """
        self._names = names
        self._journal = journal
        self._logs = logs
        self.challenges: Counter[str] = Counter()
        """Events of challenges, by name."""

    def models(self) -> dict[str, bytes]:
        """Return the snapshot of every model by key; raise ChaosError if logs and journal differ."""
        snapshots: dict[str, bytes] = {}
        wait = Wait()
        for number, values in self._journal.items():
            task = Task(number, TaskConfig(), memory=ModelMemory(limit=0))
            for at, value in enumerate(values):
                wait.tell(partial(_progress, number, at, len(values)))
                _, kind, *body = msgpack.unpackb(value, use_list=False)
                if kind == ENTRY:
                    self._go_through(task, number, body)
            snapshots |= {
                key: task.models.cache.model(slot).snapshot() for key, slot in task.models.keys.names()
            }
        return snapshots

    def _go_through(self, task: Task, number: int, body: Sequence[Any]) -> None:
        _, _, _, before, _, steps, config = body
        if config is not None:
            task.configure(TaskConfig.from_json(config))
        at = dict(before)
        for source, to, *more in steps:
            filled: list[Any] = [*more, *((), (), None)[len(more) :]]
            skipped, refused, count, *controls = filled
            if refused:
                message = f"{source}[{number}] up to {to}: no model is to be refused"
                raise ChaosError(message)
            if source == "controls":
                if controls:  # the journal contains controls; `count` is then their topic
                    self._process(task, TaskRun(source, RawRecords(count, number, *map(list, controls))))
                task.advance(source, to)
                at[source] = to
                continue
            start = at.get(source, 0)
            whole = skipped == ((start, to),)  # none of it was processed
            records = [] if whole else list(self._logs[source].between(number, start, to))
            if count is not None and not whole and len(records) != count:
                message = f"{source}[{number}] up to {to}: {len(records)} records, the journal holds {count}"
                raise ChaosError(message)
            records = [r for r in records if not any(first <= r.offset < end for first, end in skipped)]
            if records:
                self._process(task, TaskRun(source, self._columns(source, number, records)))
            task.advance(source, to)
            at[source] = to

    def _process(self, task: Task, run: TaskRun) -> None:
        events = (happening.event.event for happening in task.process(run).happened)
        self.challenges.update(event for event in events if event in CHALLENGES)

    def _columns(self, source: SourceName, number: int, records: Sequence[Record]) -> RawRecords:
        return RawRecords(
            getattr(self._names, source),
            number,
            [record.offset for record in records],
            [record.time_ms for record in records],
            [record.key for record in records],
            [record.value for record in records],
            [_headers(record) for record in records],
        )


def _progress(partition: int, at: int, records: int) -> str:
    return f"the replay of partition {partition}, at record {at} of {records} of its journal"


def _headers(record: Record) -> list[tuple[str, bytes | None]]:
    """Return headers as tasks get them: a name ends at its first NUL, and all names are UTF-8."""
    try:
        return [(str(name.split(b"\0")[0], "utf-8"), value) for name, value in record.headers]
    except UnicodeDecodeError:
        return list(NOT_UTF8)
