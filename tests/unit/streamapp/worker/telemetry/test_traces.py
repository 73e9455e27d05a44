"""Spans of runs without a worker: groups, commits and aborts, links, samplers, bounds."""

from __future__ import annotations

import itertools
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, Sampler

from streamapp.worker.task.effects.effects import Effects, PredictionGroup, Requests
from streamapp.worker.telemetry import instance_spans
from streamapp.worker.telemetry import traces as module
from streamapp.worker.telemetry.fetch_times import FetchTimes
from streamapp.worker.telemetry.span_links import TraceHeaders, sampled_of
from streamapp.worker.telemetry.traces import Traces
from streamapp.worker.transport.runs import FetchedColumns, Run
from tests.log_lines import lines_of
from topics.columns.records import LabelRequests, Labels, Predictions, RawRecords
from topics.columns.spans import RecordSpans
from topics.errors import AbortedError

TOPIC, LABELS = "grove.instances", "grove.labels"


class Recorder:
    """Traces whose spans end up in a list."""

    def __init__(self, sampler: Sampler | None = None, *, keep_all: bool = False, max_links: int = 8) -> None:
        self._exporter = InMemorySpanExporter()
        provider = TracerProvider(sampler, shutdown_on_exit=False)
        provider.add_span_processor(SimpleSpanProcessor(self._exporter))
        tracer = provider.get_tracer("test")
        self.traces = Traces(tracer, group="app", instance="w", keep_all=keep_all, max_links=max_links)

    @property
    def spans(self) -> list[ReadableSpan]:
        return list(self._exporter.get_finished_spans())

    def named(self, name: str) -> list[ReadableSpan]:
        return [span for span in self.spans if span.name == name]

    def process(self, *runs: Run, outcomes: Any = None, batches: Sequence[Any] | None = None) -> None:
        group = self.traces.begin(runs)
        assert group is not None
        group.mark_decoded(time.time_ns(), is_used=False)  # together
        group.mark_decoded(time.time_ns())
        group.take_batches(runs, batches or [None] * len(runs))
        group.mark_encoded(time.time_ns())
        group.mark_encoded(time.time_ns())
        self.traces.processed(group, outcomes or [(run, Effects()) for run in runs])


def parent(number: int, flags: str = "01") -> bytes:
    return f"00-{number:032x}-{number:016x}-{flags}".encode()


def run(
    first: int, n: int, partition: int = 0, topic: str = TOPIC, headers: Sequence[Any] | None = None
) -> Run:
    own = [[("traceparent", value)] for value in headers] if headers else [()] * n
    columns = (range(first, first + n), [0] * n, [b"key"] * n, [b"{}"] * n, own)
    raw = RawRecords.over(topic, partition, RecordSpans.of(*columns))
    return Run(topic, raw, first + n)


def answers_of(*ids: str) -> list[PredictionGroup]:
    n = len(ids)
    predictions = Predictions(("a",), ids, np.zeros(n, np.int32), np.ones((n, 1)), np.zeros(n, np.int64))
    return [PredictionGroup(np.arange(n, dtype=np.int32), predictions)]


def labels(*ids: str) -> Labels:
    n = len(ids)
    zeros, record = np.zeros(n, np.int32), np.arange(n, dtype=np.int32)
    return Labels(record, zeros, ["key"], zeros, ids, ["a"], zeros, np.ones(n), [None] * n, [], [])


def requested(*ids: str, answers: list[PredictionGroup]) -> Effects:
    n = len(ids)
    requests = LabelRequests(ids, ids, [], [None] * n, ["random"] * n, np.zeros(n), np.zeros(n, np.int64) - 1)
    return Effects(answers=answers, requests=[Requests(np.arange(n, dtype=np.int32), requests)])


def ids_of(links: Any) -> list[int]:
    return [link.context.span_id for link in links]


def test_a_run_alone_is_the_parent_of_its_stages_and_ends_with_its_commit() -> None:
    recorder = Recorder()
    recorder.process(run(10, 3))
    assert {span.name for span in recorder.spans} == {"decode", "task", "encode"}
    recorder.traces.cut({(TOPIC, 0): 13})
    assert not recorder.named(f"process {TOPIC}"), "the transaction is open"
    recorder.traces.committed()
    (root,), (commit,) = recorder.named(f"process {TOPIC}"), recorder.named("commit")
    assert root.parent is None
    for name in ("decode", "task", "encode", "commit"):
        stages = recorder.named(name)
        assert stages
        assert all(stage.parent == root.context for stage in stages)
    assert (commit.attributes or {})["messaging.operation.type"] == "settle"
    assert dict(root.attributes or {}) == {
        "messaging.system": "kafka",
        "messaging.operation.name": "process",
        "messaging.operation.type": "process",
        "messaging.consumer.group.name": "app",
        "messaging.client.id": "w",
        "messaging.destination.name": TOPIC,
        "messaging.destination.partition.id": "0",
        "messaging.batch.message_count": 3,
        "streamgrove.offset.first": 10,
        "streamgrove.offset.last": 12,
    }
    assert root.status.is_unset


def test_runs_that_are_computed_together_have_spans_below_the_span_with_the_stages() -> None:
    recorder = Recorder()
    recorder.process(run(0, 1, 0), run(5, 2, 1), run(0, 1, 0, LABELS))
    recorder.traces.cut({(TOPIC, 0): 1, (TOPIC, 1): 7, (LABELS, 0): 1})
    recorder.traces.committed()
    (root,) = recorder.named("process")
    of_runs = [*recorder.named(f"process {TOPIC}"), *recorder.named(f"process {LABELS}")]
    assert [span.parent for span in of_runs] == [root.context] * 3
    own = attributes(of_runs)
    assert [one["messaging.destination.partition.id"] for one in own] == ["0", "1", "0"]
    assert [one["messaging.batch.message_count"] for one in own] == [1, 2, 1]
    assert [one.get("messaging.kafka.offset") for one in own] == [0, None, 0]
    assert (root.attributes or {})["messaging.batch.message_count"] == 4
    assert "messaging.destination.name" not in (root.attributes or {}), "there are two"
    stages = [span for name in ("decode", "task", "encode", "commit") for span in recorder.named(name)]
    assert [span.parent for span in stages] == [root.context] * 5


def attributes(spans: Sequence[ReadableSpan]) -> list[dict[str, Any]]:
    return [dict(span.attributes or {}) for span in spans]


def test_what_an_aborted_transaction_takes_back_has_failed() -> None:
    recorder = Recorder()
    recorder.process(run(0, 1))
    recorder.traces.cut({(TOPIC, 0): 1})
    recorder.process(run(1, 1))
    recorder.traces.aborted(AbortedError("fenced"))
    spans = [*recorder.named(f"process {TOPIC}"), *recorder.named("commit")]
    assert [span.status.description for span in spans] == ["fenced"] * 3
    recorder.traces.cut({(TOPIC, 0): 2})
    recorder.traces.committed()
    assert len(recorder.named("commit")) == 1


def test_a_run_of_a_partition_that_has_left_has_no_commit() -> None:
    recorder = Recorder()
    recorder.process(run(0, 1))
    recorder.traces.cut({(TOPIC, 1): 9})
    recorder.traces.committed()
    assert len(recorder.named(f"process {TOPIC}")) == 1
    assert not recorder.named("commit")


def test_a_run_that_stops_its_partition_names_the_error_and_the_others_go_on() -> None:
    recorder = Recorder()
    bad, good = run(0, 1, 0, headers=[parent(7)]), run(0, 1, 1)
    recorder.process(bad, good, outcomes=[ValueError("no"), (good, Effects())])
    recorder.traces.cut({(TOPIC, 1): 1})
    recorder.traces.committed()
    of_bad = next(span for span in recorder.spans if span.links)
    assert (of_bad.status.description, (of_bad.attributes or {})["error.type"]) == ("no", "ValueError")
    assert ids_of(of_bad.links) == [7]
    assert len(recorder.named("commit")) == 1


def test_a_group_that_fails_and_one_that_was_taken_away_end_at_once() -> None:
    recorder = Recorder()
    recorder.process(run(0, 1), outcomes=[None])
    group = recorder.traces.begin([run(0, 1), run(0, 1, 1)])
    assert group is not None
    recorder.traces.failed(group, ValueError("swap file"))
    spans = [*recorder.named(f"process {TOPIC}"), *recorder.named("process")]
    assert sorted(str(span.status.description) for span in spans) == ["None", *["swap file"] * 3]
    recorder.traces.cut({(TOPIC, 0): 1})
    recorder.traces.committed()
    assert not recorder.named("commit")


def test_a_run_that_is_cut_has_the_records_that_were_processed() -> None:
    recorder = Recorder()
    whole = run(0, 4, headers=[parent(n) for n in range(1, 5)])
    first, _rest = whole.cut(2)
    recorder.process(whole, outcomes=[(first, Effects())])
    recorder.traces.cut({(TOPIC, 0): 2})
    recorder.traces.committed()
    (span,) = recorder.named(f"process {TOPIC}")
    assert attributes([span])[0]["messaging.batch.message_count"] == 2
    assert ids_of(span.links) == [1, 2]


def test_links_lead_to_sampled_records_once_each_and_evenly_if_there_are_too_many() -> None:
    headers = [parent(1), parent(2, "00"), b"nonsense", parent(1), *[parent(n) for n in range(10, 30)]]
    recorder = Recorder(max_links=7)
    recorder.process(run(100, len(headers), headers=headers))
    recorder.traces.close()
    (span,) = recorder.named(f"process {TOPIC}")
    assert ids_of(span.links) == [1, 12, 15, 18, 21, 24, 27]
    assert [(link.attributes or {})["messaging.kafka.offset"] for link in span.links][:2] == [100, 106]
    assert attributes([span])[0]["streamgrove.links.left_out"] == 14


def test_a_label_links_to_where_its_instance_was_answered_and_to_its_trace() -> None:
    recorder = Recorder()
    answered = run(0, 3, headers=[parent(1), parent(2, "00"), parent(3, "00")])
    effects = requested("i0", "i1", answers=answers_of("i0", "i1", "i2"))
    recorder.process(answered, outcomes=[(answered, effects)])
    learned = run(0, 4, topic=LABELS, headers=[parent(9), *[parent(8, "00")] * 3])
    recorder.process(learned, batches=[labels("i0", "i1", "i2", "unknown")])
    recorder.traces.close()
    (of_instances,), (of_labels,) = recorder.named(f"process {TOPIC}"), recorder.named(f"process {LABELS}")
    assert of_instances.context is not None
    assert ids_of(of_labels.links) == [of_instances.context.span_id, 1, 9]


@pytest.mark.parametrize(("keep_all", "found"), [(True, ["i0", "i1", "i2"]), (False, ["i0", "i2"])])
def test_instances_that_may_get_a_label_are_remembered(keep_all: bool, found: list[str]) -> None:
    """Those that wait for one by pending.keep, and those that their producer samples."""
    recorder = Recorder(keep_all=keep_all)
    ids = ["i0", "i1", "i2"]
    for at, one in enumerate(ids):
        answered = run(at, 1, headers=[parent(1, "01" if at == 2 else "00")])
        answers = answers_of(one)
        effects = requested(one, answers=answers) if at == 0 else Effects(answers=answers)
        recorder.process(answered, outcomes=[(answered, effects)])
    for at, one in enumerate(ids):
        recorder.process(run(at, 1, topic=LABELS), batches=[labels(one)])
    recorder.traces.close()
    spans = recorder.named(f"process {LABELS}")
    assert [one for one, span in zip(ids, spans, strict=True) if span.links] == found


def test_the_oldest_instances_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    spans = instance_spans.InstanceSpans(keep_all=True, most=2)
    context: Any = object()
    for at in range(4):
        spans.remember(context, run(at, 1).raw, Effects(answers=answers_of(f"i{at}")), {})
    assert len(spans) == 2
    assert len(list(spans.of_rows(run(0, 4, topic=LABELS).raw, labels("i0", "i1", "i2", "i3")))) == 2


def test_open_spans_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_OPEN", 3)
    recorder = Recorder()
    for at in range(5):
        recorder.process(run(at, 1))
    assert len(recorder.named(f"process {TOPIC}")) == 2
    recorder.traces.cut({(TOPIC, 0): 5})
    recorder.traces.committed()
    assert (len(recorder.named(f"process {TOPIC}")), len(recorder.named("commit"))) == (5, 3)


def test_an_error_in_here_costs_a_span_and_nothing_else(caplog: pytest.LogCaptureFixture) -> None:
    recorder = Recorder()
    wrong: Any = object()
    group = recorder.traces.begin([run(0, 1)])
    assert group is not None
    recorder.traces.processed(group, wrong)
    assert recorder.traces.begin(wrong) is None
    recorder.traces.fetched(wrong, 0.0)
    recorder.traces.cut(wrong)
    assert caplog.text.count("a span is incomplete or missing") == 3
    recorder.process(run(1, 1))
    recorder.traces.cut({(TOPIC, 0): 2})
    recorder.traces.committed()
    assert len(recorder.named("commit")) == 1


def test_what_the_sampler_leaves_out_makes_no_span() -> None:
    recorder = Recorder(ALWAYS_OFF)
    assert recorder.traces.begin([run(0, 1), run(0, 1, 1)]) is None
    recorder.traces.cut({})
    recorder.traces.committed()
    assert recorder.spans == []


@pytest.mark.parametrize(
    "value",
    [
        b"",
        b"00",
        b"00-%032x-%016x-00" % (1, 1),
        b"00-%032x-%016x-01" % (0, 1),
        b"00-%032x-%016x-01" % (1, 0),
        b"00-%032x-%016x-01-more" % (1, 1),
        b"00-%032X-%016x-01" % (0xABC, 1),
        b"ff-%032x-%016x-01" % (1, 1),
        b"\xff" * 55,
    ],
)
def test_a_traceparent_that_is_not_well_formed_or_not_sampled_has_no_link(value: bytes) -> None:
    recorder = Recorder()
    recorder.process(run(0, 1, headers=[value]))
    recorder.traces.close()
    (span,) = recorder.named(f"process {TOPIC}")
    assert span.links == ()


def test_a_later_version_of_traceparent_is_read_and_tracestate_goes_with_it() -> None:
    value = b"01-%032x-%016x-01-more" % (1, 2)
    headers = [[("TraceParent", value), ("tracestate", b"vendor=1")]]
    sampled = sampled_of(headers)
    assert sampled.by_record == {0: TraceHeaders(value, b"vendor=1")}
    context = sampled.by_record[0].context
    assert context is not None
    assert (context.trace_id, context.span_id, context.trace_state.to_header()) == (1, 2, "vendor=1")


@pytest.mark.parametrize(
    "state",
    [b"A=1", b"a=b" * 50, b"a=1\nINFO all is well", b",".join(b"k%d=v" % n for n in range(40)), b"x" * 10**6],
)
def test_a_tracestate_that_is_not_well_formed_has_no_effect_and_no_line_in_the_log(
    state: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    sampled = sampled_of([[("traceparent", parent(1)), ("tracestate", state)]])
    context = sampled.by_record[0].context
    assert context is not None
    assert not context.trace_state
    assert lines_of(caplog) == []
    assert sum(len(part or b"") for part in sampled.by_record[0]) < 1000


def test_a_very_long_traceparent_is_not_kept() -> None:
    assert not sampled_of([[("traceparent", b"01" + parent(1)[2:] + b"-" + b"x" * 10**6)]]).by_record


def test_a_run_has_the_fetch_of_its_first_record_again_after_a_seek() -> None:
    times = FetchTimes()
    place = (TOPIC, 0)

    def fetch(position: int) -> None:
        times.note({place: FetchedColumns(RecordSpans.none(), position, None)}, time.monotonic())

    fetch(10)
    fetch(20)
    before = [times.of(run(at, 1)) for at in (0, 9, 10, 20)]
    assert before[0] == before[1] != before[2]
    assert None not in before[:3]
    assert before[3] is None, "it is not fetched"
    fetch(30)
    fetch(15)  # sought back
    assert times.of(run(11, 1)) not in (None, *before)
    assert times.of(run(15, 1)) is None
    assert times.of(run(0, 1, partition=1)) is None
    for position in itertools.count(100, 10):
        fetch(position)
        if position > 10_000:
            break
    assert times.of(run(9_999, 1)) is not None
