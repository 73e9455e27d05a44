"""One partition without a broker: records in, through decode, task and encode, records out in lists."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from typing import Any, NamedTuple

import orjson

from streamapp.worker.outputs.encoder import Encoder
from streamapp.worker.outputs.outgoing import OutputRecords
from streamapp.worker.task.effects.effects import Effects, Notice
from streamapp.worker.task.error_isolation import process_isolated
from streamapp.worker.task.sources import SourceName
from streamapp.worker.task.task import Task, TaskRun
from streamapp.worker.task.task_config import TaskConfig
from topics.columns.records import Headers, RawRecords
from topics.definitions import TopicNames

NOW = 1_700_000_000_000
NAMES = TopicNames("t.")
PARTITION = 3

QUICK = {"name": "h-tree", "grace_period": 20, "delta": 0.1, "tau": 0.3}


class Record(NamedTuple):
    """A record that goes in."""

    source: SourceName
    key: bytes | None
    value: bytes | None
    at: int = 0  # ms after NOW
    headers: Headers = ()


class Sent(NamedTuple):
    """A record that came out."""

    key: bytes | None
    value: bytes | None
    timestamp: int
    headers: tuple[tuple[str, bytes | None], ...]

    @property
    def json(self) -> Any:
        assert self.value is not None
        return orjson.loads(self.value)

    def header(self, name: str) -> str:
        """Return the text of a header that is there."""
        value = dict(self.headers)[name]
        assert value is not None
        return value.decode()

    @property
    def reason(self) -> str:
        return self.header("grove-dlq-reason")

    @property
    def message(self) -> str:
        return self.header("__streams.errors.message")


def config(spec: dict[str, Any] | None = None, **settings: Any) -> TaskConfig:
    """Return a task's configuration; `spec`: parts beside a learner that splits early."""
    return TaskConfig(model_spec=json.dumps({"learner": QUICK} | (spec or {})), **settings)


ALWAYS: dict[str, Any] = {"query": "always", "budget": {"name": "count", "limit": 1.0}}
NEVER: dict[str, Any] = {"query": "never"}


class Partition:
    """A task with its codecs and a list as outbox."""

    def __init__(self, given: TaskConfig | None = None, *, encoder: Encoder | None = None) -> None:
        self.task = Task(PARTITION, given or config())
        self.encoder = encoder or Encoder(NAMES)
        self.sent: dict[str, list[Sent]] = defaultdict(list)
        self.notices: list[Notice] = []
        self.to_skip: set[tuple[SourceName, int]] = set()  # what an operator wants to be dead letters
        self._offsets: dict[SourceName, int] = defaultdict(int)

    def feed(self, *records: Record) -> Effects:
        """Process records of one source as one run."""
        source = records[0].source
        assert all(record.source == source for record in records)
        raw = self._raw(source, records)
        skipped = frozenset(offset for offset in raw.offsets if (source, offset) in self.to_skip)
        run = TaskRun(source, raw, position=self._offsets[source], skipped=skipped)
        effects, sent = self.process(run)
        for sent_record in sent:
            headers: Sequence[Headers] = (
                [()] * len(sent_record) if sent_record.headers is None else sent_record.headers
            )
            self.sent[sent_record.topic.removeprefix("t.")] += [
                Sent(key, value, timestamp, tuple(given))
                for key, value, timestamp, given in zip(
                    sent_record.keys, sent_record.values, sent_record.timestamps, headers, strict=True
                )
            ]
        self.notices += effects.notices
        return effects

    def process(self, run: TaskRun) -> tuple[Effects, list[OutputRecords]]:
        """Process a run and encode its effects; raise the exception that stops the partition."""
        (outcome,) = process_isolated([(self.task, run)], self.encoder.encode_runs)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    def _raw(self, source: SourceName, records: Sequence[Record]) -> RawRecords:
        start = self._offsets[source]
        self._offsets[source] += len(records)
        return RawRecords(
            f"t.{source}",
            PARTITION,
            list(range(start, start + len(records))),
            [NOW + record.at for record in records],
            [record.key for record in records],
            [record.value for record in records],
            [record.headers for record in records],
        )

    def instances(self, *documents: dict[str, Any], key: str = "m", at: int = 0) -> Effects:
        """Process instances of one model as one run."""
        return self.feed(*(instance(document, key=key, at=at) for document in documents))

    def labels(self, *documents: dict[str, Any], key: str = "m", at: int = 0) -> Effects:
        """Process labels for one model as one run."""
        return self.feed(*(label(document, key=key, at=at) for document in documents))

    def control(self, command: str, *, key: str = "m", at: int = 0, **body: Any) -> Effects:
        """Process one command."""
        return self.feed(Record("controls", key.encode(), orjson.dumps({"command": command} | body), at))

    @property
    def counts(self) -> dict[str, int]:
        return {name: n for name, n in self.task.counters.items() if n}

    def model(self, key: str = "m") -> Any:
        return self.task.models.cache.model(self.task.models.keys.slot(key))

    @property
    def predictions(self) -> list[Any]:
        return [sent.json for sent in self.sent["predictions"]]

    @property
    def requests(self) -> list[Any]:
        return [sent.json for sent in self.sent["label-requests"]]

    @property
    def feature_requests(self) -> list[Any]:
        return [sent.json for sent in self.sent["feature-requests"]]

    @property
    def dead_letters(self) -> list[Sent]:
        return self.sent["dead-letters"]


def instance(document: dict[str, Any], *, key: str = "m", at: int = 0) -> Record:
    return Record("instances", key.encode(), orjson.dumps(document), at)


def label(document: dict[str, Any], *, key: str = "m", at: int = 0) -> Record:
    return Record("labels", key.encode(), orjson.dumps(document), at)
