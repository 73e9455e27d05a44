"""Keys in a partition that is not murmur2's are counted and warned of; counts of effects become metrics."""

from collections import Counter
from typing import get_args

import numpy as np
import pytest

from core.hoeffding.decision import Reason as SplitReason
from streamapp.observability.metrics import MAX_MODEL_KEYS, SPLIT_REASONS, Metrics
from streamapp.processing.pipeline import KeyPlacement
from streamapp.task import counters
from streamapp.task.effects.effects import Alert, DeadLetter, Effects, Evaluated, Origin, Requests
from streamapp.transport.runs import Run
from topics.errors import Reason
from topics.partitioner import partition_of
from topics.records import DriftAlert, EvaluationRecord, LabelRequests, RawRecords

PARTITIONS = 4
DELAYS = {"0.01": 0.0, "0.02": 1.0, "0.5": 1.0, "1.0": 2.0, "2.0": 3.0, "3600.0": 3.0, "+Inf": 4.0}


def run(partition: int, *keys: bytes | None) -> Run:
    n = len(keys)
    raw = RawRecords("grove.instances", partition, list(range(n)), [0] * n, list(keys), [b""] * n, [()] * n)
    return Run(raw.topic, raw, n)


def counted(metrics: Metrics, name: str, **labels: str) -> float:
    return metrics.registry.get_sample_value(name, labels) or 0.0


def test_misplaced_keys_are_counted_once_each_and_warned_of_once_a_topic(
    caplog: pytest.LogCaptureFixture,
) -> None:
    metrics = Metrics()
    placement = KeyPlacement(metrics, PARTITIONS)
    keys = [b"key-%d" % i for i in range(40)]
    here = [key for key in keys if partition_of(key, PARTITIONS) == 2]
    elsewhere = [key for key in keys if partition_of(key, PARTITIONS) != 2]
    placement.check(run(2, *here, None))
    assert counted(metrics, "grove_misplaced_keys_total", topic="grove.instances") == 0
    assert caplog.text == ""
    placement.check(run(2, *elsewhere, *elsewhere))
    placement.check(run(2, *elsewhere))
    assert counted(metrics, "grove_misplaced_keys_total", topic="grove.instances") == len(elsewhere)
    assert caplog.text.count("partitioner=murmur2_random") == 1


def test_what_a_run_leads_to_is_counted() -> None:
    metrics = Metrics()
    raw = run(0, b"model-a", b"model-b").raw
    requests = LabelRequests(
        ["r1", "r2"], ["i1", "i2"], [], [None, None], ["random", "random"], np.zeros(2), np.zeros(2, np.int64)
    )
    effects = Effects(
        requests=[Requests(np.array([0, 1], np.int32), requests)],
        alerts=[Alert(0, DriftAlert("drift", "ddm", 0.5, "rebuild"))],
        evaluations=[Evaluated(1, EvaluationRecord(9, 9, 0.5, 0.75, 0, 0, 0, 0, 1))],
        dead_letters=[DeadLetter(Origin.of(raw, 0), Reason.NOT_JSON, "no")] * 3,
        counts=Counter({counters.ANSWERED: 5, counters.LATE: 2, counters.SPLITS: 3}),
        splits=Counter({"gap": 1, "tie": 2}),
        closed=Counter({("random", "answered"): 3, ("random", "expired"): 1}),
        label_delays=[np.array([20, 1000, 1001, 7_200_000])],
    )
    metrics.sent(raw, effects)
    assert counted(metrics, "grove_records_total", topic="instances", outcome="answered") == 5
    assert counted(metrics, "grove_records_total", topic="labels", outcome="late") == 2
    reasons = {reason: counted(metrics, "grove_tree_splits_total", reason=reason) for reason in SPLIT_REASONS}
    assert reasons == {"gap": 1, "tie": 2, "only": 0}
    assert counted(metrics, "grove_dlq_records_total", reason="not-json") == 3
    assert counted(metrics, "grove_label_requests_total", strategy="random", outcome="sent") == 2
    assert counted(metrics, "grove_label_requests_total", strategy="random", outcome="answered") == 3
    assert counted(metrics, "grove_label_requests_total", strategy="random", outcome="expired") == 1
    delays = {bound: counted(metrics, "grove_label_delay_seconds_bucket", le=bound) for bound in DELAYS}
    assert delays == DELAYS
    assert counted(metrics, "grove_label_delay_seconds_count") == 4
    assert counted(metrics, "grove_label_delay_seconds_sum") == pytest.approx(7202.021)
    assert counted(metrics, "grove_drift_alerts_total", detector="ddm", level="drift") == 1
    assert counted(metrics, "grove_accuracy_ratio", model_key="model-b") == 0.75


def test_reasons_of_splits_are_those_of_core() -> None:
    assert get_args(SplitReason) == SPLIT_REASONS


def test_only_so_many_models_get_a_label_of_their_own() -> None:
    metrics = Metrics()
    for i in range(2 * MAX_MODEL_KEYS):
        raw = run(0, b"model-%d" % i).raw
        evaluated = Evaluated(0, EvaluationRecord(9, 9, 0.5, 0.5, 0, 0, 0, 0, 1))
        metrics.sent(raw, Effects(evaluations=[evaluated]))
    samples = [s for f in metrics.registry.collect() for s in f.samples if s.name == "grove_accuracy_ratio"]
    assert len(samples) == MAX_MODEL_KEYS


def test_every_counter_of_a_task_has_a_metric_and_every_help_says_whose_it_is() -> None:
    metrics = Metrics()
    metrics.sent(run(0, b"k").raw, Effects(counts=Counter(dict.fromkeys(counters.MEANING, 1))))
    for family in metrics.registry.collect():
        assert family.documentation.endswith(("(process).", "(model state).")), family.name
        assert family.name.startswith("grove_")
