"""The undisturbed worker: what the journal makes of the logs, in one go and in one process.

Workers cut the journal off behind their snapshots. So it is read along from the beginning while they work
(`tape.py`), and the models of the end are those of a replay that knows no snapshot and keeps every model in
memory, whatever `models.max.bytes` the workers had.

The records are read in Kafka's own protocol (`source_tape.py`), the journal as docs/journal.md has it, and
what the headers of a record are as docs/records.md has it: of the application only the task takes part.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgpack

from benchmarks.chaos.checker import ENTRY
from benchmarks.chaos.fleet import ChaosError
from benchmarks.chaos.source_tape import SourceTape
from benchmarks.chaos.wire import Record
from streamapp.worker.task.config import TaskConfig
from streamapp.worker.task.models.memory import ModelMemory
from streamapp.worker.task.sources import SourceName
from streamapp.worker.task.task import Task, TaskRun
from topics.columns.records import RawRecords
from topics.definitions import TopicNames

NOT_UTF8: Final = [("\N{REPLACEMENT CHARACTER}", None)]


class Reference:
    """The models that the whole journal makes, in one go."""

    def __init__(
        self,
        names: TopicNames,
        journal: Mapping[int, Sequence[bytes]],
        logs: Mapping[SourceName, SourceTape],
    ) -> None:
        """`journal`: the values of each partition's records, from the first one on; `logs`: but controls."""
        self._names = names
        self._journal = journal
        self._logs = logs

    def models(self) -> dict[str, bytes]:
        """Return the snapshot of every model by key; ChaosError if the logs are not what the journal says."""
        found: dict[str, bytes] = {}
        for number, values in self._journal.items():
            task = Task(number, TaskConfig(), memory=ModelMemory(limit=0))
            for value in values:
                _, kind, *body = msgpack.unpackb(value, use_list=False)
                if kind == ENTRY:
                    self._go_through(task, number, body)
            found |= {key: task.models.model(slot).snapshot() for slot, key in task.models.keys.items()}
        return found

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
                if controls:  # the journal has them themselves; then `count` is their topic
                    task.process(TaskRun(source, RawRecords(count, number, *map(list, controls))))
                task.advance(source, to)
                at[source] = to
                continue
            start = at.get(source, 0)
            whole = skipped == ((start, to),)  # nothing of it was processed
            records = [] if whole else list(self._logs[source].between(number, start, to))
            if count is not None and not whole and len(records) != count:
                message = f"{source}[{number}] up to {to}: {len(records)} records, the journal says {count}"
                raise ChaosError(message)
            records = [r for r in records if not any(first <= r.offset < end for first, end in skipped)]
            if records:
                task.process(TaskRun(source, self._columns(source, number, records)))
            task.advance(source, to)
            at[source] = to

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


def _headers(record: Record) -> list[tuple[str, bytes | None]]:
    """Return headers as the tasks know them: a name ends at its first NUL, and all of them are UTF-8."""
    try:
        return [(str(name.split(b"\0")[0], "utf-8"), value) for name, value in record.headers]
    except UnicodeDecodeError:
        return list(NOT_UTF8)
