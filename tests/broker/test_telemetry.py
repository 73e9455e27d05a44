"""Spans and metrics of a real worker on a real broker, at a collector that receives them over HTTP."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.broker.workers import PATIENCE, UNHURRIED, Installation, WorkerProcess, wait_until
from tests.collector import Collector, Context, ReceivedSpan, Series
from tests.conftest import Broker
from topics.clients.partitioner import partition_of

pytestmark = pytest.mark.broker

SPEC = '{"learner": "h-tree", "query": "always", "budget": {"name": "count", "limit": 1.0}}'
KEYS = [b"model-%d" % i for i in range(4)]
STAGES = {"fetch", "decode", "task", "encode", "commit"}
QUICK = {"OTEL_BSP_SCHEDULE_DELAY": "100", "OTEL_METRIC_EXPORT_INTERVAL": "200"}


def traceparent(number: int, *, sampled: bool = True) -> tuple[bytes, Context]:
    """The header of a producer's span, and its ids."""
    context = (f"{number + 1:032x}", f"{number + 1:016x}")
    return f"00-{context[0]}-{context[1]}-{'01' if sampled else '00'}".encode(), context


class Stream:
    """Instances and labels of an installation, of which every tenth is sampled by its producer."""

    def __init__(self, place: Installation) -> None:
        self._place = place
        self._producer = place.producer()
        self.n = 0
        self.labels = 0

    def instances(self, n: int) -> None:
        for i in range(self.n, self.n + n):
            header, _ = traceparent(i, sampled=i % 10 == 0)
            value = orjson.dumps({"id": f"i{i}", "features": {"a": i % 10, "b": i % 7}})
            self._send(self._place.names.instances, value, i, header)
        assert self._producer.flush(PATIENCE) == 0
        self.n += n

    def label(self, *numbers: int, sampled: bool = True) -> None:
        for i in numbers:
            header, _ = traceparent(1_000_000 + i, sampled=sampled)
            value = orjson.dumps({"id": f"i{i}", "label": "high" if i % 10 > 5 else "low"})
            self._send(self._place.names.labels, value, i, header)
        assert self._producer.flush(PATIENCE) == 0
        self.labels += len(numbers)

    def _send(self, topic: str, value: bytes, i: int, header: bytes) -> None:
        key = KEYS[i % len(KEYS)]
        partition = partition_of(key, self._place.partitions)
        self._producer.produce(topic, value, key, partition, headers=[("traceparent", header)])


def place_of(broker: Broker, tmp_path: Path, guarantee: str = "exactly_once") -> Installation:
    settings = UNHURRIED | QUICK | {"GROVE_MODEL_SPEC": SPEC, "GROVE_PROCESSING_GUARANTEE": guarantee}
    place = Installation(broker.bootstrap_servers, "traced.", 2, tmp_path, module="streamapp worker")
    place.settings |= settings
    return place


def runs_of(collector: Collector, topic: str) -> list[ReceivedSpan]:
    return [span for span in list(collector.spans) if span.name == f"process {topic}"]


def linking(collector: Collector, topic: str, context: Context) -> ReceivedSpan | None:
    return next((span for span in runs_of(collector, topic) if context in span.links), None)


def root_of(collector: Collector, span: ReceivedSpan) -> ReceivedSpan:
    """The span with the stages of a run: its own, or that of the runs that were computed with it."""
    if not span.parent:
        return span
    place = span.context[0], span.parent
    root: ReceivedSpan = collector.wait_for(
        lambda: next((other for other in list(collector.spans) if other.context == place), None)
    )
    return root


def stages_of(collector: Collector, root: ReceivedSpan) -> dict[str, list[ReceivedSpan]]:
    """The spans below a root by name, once those of all stages have come."""

    def received() -> dict[str, list[ReceivedSpan]] | None:
        children = collector.children(root)
        return children if children.keys() >= STAGES else None

    stages: dict[str, list[ReceivedSpan]] = collector.wait_for(received)
    return stages


def page_of(worker: WorkerProcess) -> Series:
    """The metrics of the page as the collector has them."""
    series: Series = {}
    status, text = worker.page("/metrics")
    assert status == 200
    for family in text_string_to_metric_families(text):
        of_histogram: dict[Any, dict[str, Any]] = {}
        for sample in family.samples:
            labels = tuple(sorted((k, v) for k, v in sample.labels.items() if k != "le"))
            if family.type != "histogram":
                series[sample.name, labels] = sample.value
                continue
            one = of_histogram.setdefault(labels, {"upto": []})
            if sample.name.endswith("_bucket"):
                one["upto"].append(int(sample.value))
            else:
                one[sample.name.rpartition("_")[2]] = sample.value
        for labels, one in of_histogram.items():
            series[family.name, labels] = (tuple(one["upto"]), int(one["count"]), one["sum"])
    return series


def without_spans(series: Series) -> Series:
    """Their counters change with each export."""
    return {place: value for place, value in series.items() if not place[0].startswith("grove_spans_")}


@pytest.mark.parametrize("guarantee", ["exactly_once", "at_least_once"])
def test_a_run_has_a_span_with_stages_and_links_and_metrics_are_those_of_the_page(
    broker: Broker, tmp_path: Path, guarantee: str
) -> None:
    place = place_of(broker, tmp_path, guarantee)
    instances, labels = place.names.instances, place.names.labels
    stream = Stream(place)
    with (
        Collector() as collector,
        place.worker("w", OTEL_EXPORTER_OTLP_ENDPOINT=collector.url) as worker,
    ):
        worker.wait_until_ready()
        stream.instances(2000)  # load
        place.wait_for_lag_0(alive=[worker])
        stream.label(0, 1, 2, 3)
        place.wait_for_lag_0(alive=[worker])
        _, of_instance = traceparent(0)
        _, of_label = traceparent(1_000_000)
        answered = collector.wait_for(lambda: linking(collector, instances, of_instance))
        learned = collector.wait_for(lambda: linking(collector, labels, of_label))

        for run in (answered, learned):
            root = root_of(collector, run)
            stages = stages_of(collector, root)
            assert run.kind == root.kind == 5, "CONSUMER"
            for stage in STAGES:
                for span in stages[stage]:
                    assert root.start <= span.start <= span.end <= root.end, stage
            first = {stage: min(span.start for span in stages[stage]) for stage in STAGES}
            last = {stage: max(span.end for span in stages[stage]) for stage in STAGES}
            assert first["decode"] <= first["task"] <= first["encode"]
            assert max(last["encode"], last["task"]) <= last["commit"]
        assert answered.links[of_instance] == {
            "messaging.destination.name": instances,
            "messaging.kafka.offset": 0,
        }
        assert answered.context in learned.links, "where the instance was answered"
        assert of_instance in learned.links, "the trace that the instance belongs to"
        assert (
            answered.attributes.items()
            >= {
                "messaging.system": "kafka",
                "messaging.operation.type": "process",
                "messaging.operation.name": "process",
                "messaging.destination.name": instances,
                "messaging.destination.partition.id": str(partition_of(KEYS[0], 2)),
                "messaging.consumer.group.name": place.group,
                "messaging.client.id": "w",
                "streamgrove.offset.first": 0,
            }.items()
        )
        assert (
            answered.resource.items()
            >= {
                "service.name": place.group,
                "service.instance.id": "w",
            }.items()
        )
        counts = "messaging.batch.message_count"
        collector.wait_for(
            lambda: sum(run.attributes[counts] for run in runs_of(collector, instances)) == stream.n
        )
        linked = {context for run in runs_of(collector, instances) for context in run.links}
        unsampled = {traceparent(i)[1] for i in range(stream.n) if i % 10}
        assert not linked & unsampled
        left_out = sum(
            run.attributes.get("streamgrove.links.left_out", 0) for run in runs_of(collector, instances)
        )
        assert len(linked) + left_out == stream.n // 10

        # What comes in at rest is the same in both; a page and an export are two moments.
        wait_until(
            lambda: without_spans(page_of(worker)) == without_spans(collector.metrics),
            PATIENCE,
            lambda: str(page_of(worker).items() ^ collector.metrics.items()),
        )
        assert collector.metrics["grove_records_total", (("outcome", "answered"), ("topic", "instances"))]
        assert collector.resource["service.name"] == place.group
        assert worker.metric("grove_spans_dropped_total") == 0
        assert worker.terminate() == 0
    messages = {
        orjson.loads(m.value())["id"]: dict(m.headers() or ()) for m in place.raw(place.names.predictions)
    }
    assert messages["i0"] == {"traceparent": traceparent(0)[0]}, (
        "answers carry on the context of their record"
    )
    assert not [span for span in collector.spans if span.failed]


def test_a_collector_that_refuses_comes_back_and_hangs_changes_nothing_for_answers(
    broker: Broker, tmp_path: Path
) -> None:
    place = place_of(broker, tmp_path)
    place.settings |= {
        "OTEL_BSP_MAX_QUEUE_SIZE": "32",
        "OTEL_BSP_MAX_EXPORT_BATCH_SIZE": "16",
        "OTEL_EXPORTER_OTLP_TIMEOUT": "0.5",
    }
    stream = Stream(place)
    with (
        Collector(status=503) as collector,
        place.worker("w", OTEL_EXPORTER_OTLP_ENDPOINT=collector.url) as worker,
    ):
        worker.wait_until_ready()

        def dropped(reason: str) -> bool:
            stream.instances(20)
            place.wait_for_lag_0(alive=[worker])
            return worker.metric_of("grove_spans_dropped_total", reason=reason) > 0

        def n_dropped() -> float:
            """For either reason: the spans of a slow worker do not fill the queue."""
            reasons = ("not-sent", "queue-full")
            return sum(worker.metric_of("grove_spans_dropped_total", reason=reason) for reason in reasons)

        wait_until(lambda: dropped("not-sent"), PATIENCE, lambda: worker.log)
        line = f"spans are not sent to {collector.url}/v1/traces: "  # 503, or late on a slow machine
        assert worker.log.count(line) == 1
        collector.status = 200
        wait_until(lambda: dropped("not-sent") and bool(collector.spans), PATIENCE, lambda: worker.log)
        wait_until(
            lambda: f"spans are sent to {collector.url}/v1/traces again" in worker.log,
            PATIENCE,
            lambda: worker.log,
        )
        before = n_dropped()
        collector.status = None  # it takes requests, and does not answer them
        wait_until(lambda: dropped("queue-full") or n_dropped() > before, PATIENCE, lambda: worker.log)
        assert worker.terminate() == 0, "the collector has not answered"
        assert not collector.release.is_set()
    assert "spans of this worker were dropped" in worker.log
    answered = [prediction["id"] for prediction in place.read(place.names.predictions)]
    assert sorted(answered) == sorted(f"i{i}" for i in range(stream.n))
