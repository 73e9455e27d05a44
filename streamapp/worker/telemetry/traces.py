"""Traces: a span for each run of records, from its fetch to its commit.

    process grove.instances    ├───────────────────────────────────────────────┤   links: sampled records
      fetch                    ├──┤
      decode                             ├─┤
      task                                 ├─────┤
      encode                                     ├─┤
      commit                                               ├───────────────────┤

Small runs of several partitions take each stage together (`processing/run_groups.py`). Their group has the
span with the stages, and each run a span below it.

Everything here is called in the event loop, apart from the marks of a large run, which a thread computes
while nothing else is processed. The spans of stages are made when their ends are known, so a run that is not
sampled costs one decision of the sampler. An error in this code costs spans, and no answer: it is logged.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import wraps
from itertools import chain
from typing import Any, Final, NamedTuple, ParamSpec, TypeVar

from opentelemetry.context import Context
from opentelemetry.trace import (
    Link,
    Span,
    SpanKind,
    Status,
    StatusCode,
    Tracer,
    set_span_in_context,
)

from streamapp.worker.task.effects.effects import Effects
from streamapp.worker.telemetry.fetch_times import FetchTimes
from streamapp.worker.telemetry.instance_spans import InstanceSpans
from streamapp.worker.telemetry.span_links import (
    DESTINATION,
    OFFSET,
    PARTITION,
    Sampled,
    link_to,
    links_of,
    sampled_of,
)
from streamapp.worker.transport.runs import FetchedColumns, Run
from topics.columns.records import FeatureValues, Labels, RawRecords

logger = logging.getLogger(__name__)

MAX_OPEN: Final = 4096
"""Groups of runs that may wait for their commit; the spans of older groups end without run_span."""

COUNT: Final = "messaging.batch.message_count"
FIRST_OFFSET: Final = "streamgrove.offset.first"
LAST_OFFSET: Final = "streamgrove.offset.last"
LINKS_LEFT_OUT: Final = "streamgrove.links.left_out"

TopicPartition = tuple[str, int]


P = ParamSpec("P")
T = TypeVar("T")


def contained(call: Callable[P, T]) -> Callable[P, T | None]:
    """Return the call, which logs an exception instead of raising it."""

    @wraps(call)
    def logged(*args: P.args, **options: P.kwargs) -> T | None:
        try:
            return call(*args, **options)
        except Exception:
            logger.exception("a span is incomplete or missing")
            return None

    return logged


class Mark(NamedTuple):
    """The time of a stage, in ns since the epoch."""

    name: str
    began: int
    ended: int
    leads_to_task: bool = False


@dataclass(slots=True, eq=False)
class RunSpan:
    """The span of one run."""

    span: Span
    run: Run
    batch: Any = None  # decoded rows of the run; None: not decoded in one go
    error: bool = False


@dataclass(slots=True, eq=False)
class GroupSpan:
    """The span of the runs that are computed in one go."""

    span: Span
    context: Context  # parent of the stages
    runs: list[RunSpan]
    marks: list[Mark] = field(default_factory=list)

    @contained
    def mark_decoded(self, began: int, *, is_used: bool = True) -> None:
        """Note a call of the decoder that is over; `is_used`: the task goes on with its result."""
        self.marks.append(Mark("decode", began, time.time_ns(), is_used))

    @contained
    def take_batches(self, runs: Sequence[Run], batches: Sequence[Any]) -> None:
        """Take the decoded rows of runs."""
        decoded = {id(run): batch for run, batch in zip(runs, batches, strict=True)}
        for run_span in self.runs:
            run_span.batch = decoded.get(id(run_span.run), run_span.batch)

    @contained
    def mark_encoded(self, began: int) -> None:
        """Note a call of the encoder; a run that fails is encoded again, record by record."""
        if self.marks and self.marks[-1].name == "encode":
            began = self.marks.pop().began
        self.marks.append(Mark("encode", began, time.time_ns()))

    def stages(self, now: int) -> Iterator[Mark]:
        """Yield the stages: those that were noted, and the task between decoding and encoding."""
        nexts = [*(mark.began for mark in self.marks[1:]), now]
        for mark, next_began in zip(self.marks, nexts, strict=True):
            yield mark
            if mark.leads_to_task:
                yield Mark("task", mark.ended, next_began)


class Traces:
    """The spans of a worker."""

    def __init__(self, tracer: Tracer, *, group: str, instance: str, keep_all: bool, max_links: int) -> None:
        """`group`: consumer group; `instance`: name of the worker; `max_links`: of a span.

        `keep_all`: all instances wait for labels, as the setting `pending.keep` has it.
        """
        self._tracer = tracer
        self._attributes = {
            "messaging.system": "kafka",
            "messaging.operation.name": "process",
            "messaging.operation.type": "process",
            "messaging.consumer.group.name": group,
            "messaging.client.id": instance,
        }
        self._max_links = max_links
        self._fetches = FetchTimes()
        self._instances = InstanceSpans(keep_all=keep_all)
        self._open: list[GroupSpan] = []  # processed, not committed
        self._committing: list[GroupSpan] = []
        self._commit_began = 0

    @contained
    def fetched(self, columns: Mapping[Any, FetchedColumns], began: float) -> None:
        """Note a fetch that is over; `began`: on the clock of `time.monotonic`."""
        self._fetches.note(columns, began)

    # -- a group of runs ------------------------------------------------------------------------------------

    @contained
    def begin(self, runs: Sequence[Run]) -> GroupSpan | None:
        """Begin the span of runs that are computed in one go; None: the sampler leaves it out."""
        fetches = {fetch for run in runs if (fetch := self._fetches.of(run)) is not None}
        name = f"process {runs[0].topic}" if len(runs) == 1 else "process"
        span = self._tracer.start_span(
            name,
            Context(),  # no parent: a run has the records of many traces
            SpanKind.CONSUMER,
            self._attributes | _place(runs),
            start_time=min((fetch.began for fetch in fetches), default=None),
        )
        if not span.is_recording():
            return None
        context = set_span_in_context(span, Context())
        if len(runs) == 1:
            spans = [RunSpan(span, runs[0])]
        else:
            spans = [RunSpan(self._begin_run(run, context), run) for run in runs]
        group = GroupSpan(span, context, spans)
        group.marks += [Mark("fetch", *fetch) for fetch in sorted(fetches)]
        return group

    def _begin_run(self, run: Run, context: Context) -> Span:
        attributes = self._attributes | _place([run])
        return self._tracer.start_span(f"process {run.topic}", context, SpanKind.CONSUMER, attributes)

    @contained
    def processed(self, group: GroupSpan, outcomes: Sequence[tuple[Run, Effects] | Exception | None]) -> None:
        """End the stages of a group; its span waits for the commit.

        An outcome is the part of a run that was processed, or the exception that stops its partition; None:
        the partition was taken away.
        """
        now = time.time_ns()
        for stage in group.stages(now):
            self._tracer.start_span(stage.name, group.context, start_time=stage.began).end(stage.ended)
        for run_span, outcome in zip(group.runs, outcomes, strict=True):
            if isinstance(outcome, tuple):
                run_span.run, effects = outcome
                self._describe(run_span, effects)
            else:
                self._describe(run_span, None)
                run_span.error = True
                if outcome is not None:
                    _fail(run_span.span, outcome)
            if run_span.span is not group.span:
                run_span.span.end(now)
        if all(run_span.error for run_span in group.runs):
            group.span.end(now)
            return
        group.span.set_attribute(COUNT, sum(len(run_span.run.raw) for run_span in group.runs))
        self._open.append(group)
        if len(self._open) > MAX_OPEN:
            self._open.pop(0).span.end()

    @contained
    def failed(self, group: GroupSpan, error: BaseException) -> None:
        """End the spans of a group after an exception that concerns all of its runs."""
        for span in {*(run_span.span for run_span in group.runs), group.span}:
            _fail(span, error)
            span.end()

    def _describe(self, run_span: RunSpan, effects: Effects | None) -> None:
        """Give the span of a run its records and links; remember which instances it answered."""
        raw = run_span.run.raw
        run_span.span.set_attributes(_records(raw))
        sampled = sampled_of(raw.headers)
        links = self._links_of_rows(raw, run_span.batch)
        chosen = sampled.spread(max(0, self._max_links - len(links)))
        for link in (*links, *links_of(raw, sampled, chosen)):
            run_span.span.add_link(link.context, link.attributes)
        if len(chosen) < len(sampled.first):
            run_span.span.set_attribute(LINKS_LEFT_OUT, len(sampled.first) - len(chosen))
        if effects is not None:
            self._remember(run_span, effects, sampled)

    def _links_of_rows(self, raw: RawRecords, batch: Any) -> list[Link]:
        """Return links to the spans in which labelled instances were answered, and to their traces."""
        if not isinstance(batch, Labels | FeatureValues):
            return []
        links: dict[tuple[int, int], Link] = {}
        for answered in self._instances.of_rows(raw, batch):
            for context in (answered.context, answered.headers and answered.headers.context):
                if context is not None:
                    link = link_to(context, answered.topic, answered.offset)
                    links.setdefault((context.trace_id, context.span_id), link)
            if len(links) >= self._max_links:
                break
        return list(links.values())[: self._max_links]

    def _remember(self, run_span: RunSpan, effects: Effects, sampled: Sampled) -> None:
        context = run_span.span.get_span_context()
        self._instances.remember(context, run_span.run.raw, effects, sampled.by_record)

    # -- commits --------------------------------------------------------------------------------------------

    @contained
    def cut(self, offsets: Mapping[Any, int]) -> None:
        """Begin a commit of everything processed up to here; `offsets`: of the transaction."""
        self._commit_began = time.time_ns()
        for group in self._open:
            is_committed = any(
                offsets.get((run_span.run.topic, run_span.run.raw.partition), -1) >= run_span.run.position
                for run_span in group.runs
                if not run_span.error
            )
            if is_committed:
                self._committing.append(group)
            else:  # its partition has left, and is processed again elsewhere
                group.span.end()
        self._open = []

    @contained
    def committed(self) -> None:
        """End the spans of the runs that are committed."""
        self._end_commit(None)

    @contained
    def aborted(self, reason: BaseException) -> None:
        """End all open spans: their transaction was aborted, or will never be committed."""
        self._end_commit(reason)
        for group in self._open:
            _fail(group.span, reason)
            group.span.end()
        self._open = []

    def _end_commit(self, reason: BaseException | None) -> None:
        ended, settle = time.time_ns(), {"messaging.system": "kafka", "messaging.operation.name": "commit"}
        for group in self._committing:
            span = self._tracer.start_span(
                "commit",
                group.context,
                attributes=settle | {"messaging.operation.type": "settle"},
                start_time=self._commit_began,
            )
            if reason is not None:
                _fail(span, reason)
                _fail(group.span, reason)
            span.end(ended)
            group.span.end(ended)
        self._committing = []

    def close(self) -> None:
        """End the spans that are open when the worker ends."""
        for group in chain(self._committing, self._open):
            group.span.end()
        self._open, self._committing = [], []


def _place(runs: Sequence[Run]) -> dict[str, Any]:
    """Return the topic and the partition of runs, as far as they are the same."""
    topics, partitions = {run.topic for run in runs}, {run.raw.partition for run in runs}
    place: dict[str, Any] = {COUNT: sum(len(run.raw) for run in runs)}
    if len(topics) == 1:
        place[DESTINATION] = next(iter(topics))
        if len(partitions) == 1:
            place[PARTITION] = str(next(iter(partitions)))
    return place


def _records(raw: RawRecords) -> dict[str, Any]:
    """Return the number and the offsets of a run's records."""
    records: dict[str, Any] = {COUNT: len(raw), FIRST_OFFSET: raw.offsets[0], LAST_OFFSET: raw.offsets[-1]}
    return records | ({OFFSET: raw.offsets[0]} if len(raw) == 1 else {})


def _fail(span: Span, error: BaseException) -> None:
    span.set_attribute("error.type", type(error).__qualname__)
    span.set_status(Status(StatusCode.ERROR, str(error)))
