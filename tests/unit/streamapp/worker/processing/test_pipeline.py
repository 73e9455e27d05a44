"""Where runs are computed; keys in a partition that is not murmur2's; counts of effects become metrics."""

import asyncio
import sys
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any, get_args

import numpy as np
import pytest

from core.learners.hoeffding.decision import Reason as SplitReason
from streamapp.settings import Settings
from streamapp.worker.observability.metrics import SPLIT_REASONS, Metrics
from streamapp.worker.outputs.record_sizes import OutputLimits
from streamapp.worker.processing import pipeline as module
from streamapp.worker.processing import run_groups as group_module
from streamapp.worker.processing.pipeline import KeyPlacement, Pipeline
from streamapp.worker.processing.results import Results
from streamapp.worker.processing.run_groups import (
    GROUP_BYTES,
    LARGE_RECORD,
    MANY_HEADERS,
    MANY_IN_ALL,
    groups,
)
from streamapp.worker.task import counters
from streamapp.worker.task.effects.effects import Alert, DeadLetter, Effects, Evaluated, Origin, Requests
from streamapp.worker.task.error_isolation import process_isolated
from streamapp.worker.task.instances.leading_records import STEP
from streamapp.worker.task.models.eviction.swap_file import SwapFileError
from streamapp.worker.task.task import Task, TaskRun
from streamapp.worker.transport.runs import Run
from tests.log_lines import lines_of
from topics.clients.partitioner import partition_of
from topics.columns.records import DriftAlert, EvaluationRecord, Headers, LabelRequests, RawRecords
from topics.columns.spans import RecordSpans
from topics.definitions import TopicNames
from topics.errors import Reason

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
    assert lines_of(caplog) == []
    placement.check(run(2, *elsewhere[1:], *elsewhere[1:]))
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


def test_every_counter_of_a_task_has_a_metric_and_every_help_says_whose_it_is() -> None:
    metrics = Metrics()
    metrics.sent(run(0, b"k").raw, Effects(counts=Counter(dict.fromkeys(counters.MEANING, 1))))
    for family in metrics.registry.collect():
        assert family.documentation.endswith(("(process).", "(model state).")), family.name
        assert family.name.startswith("grove_")


PLAIN = b'{"features":{"x":1}}'
LARGE = b'{"features":{"x":1},"note":"%s"}' % (b"a" * LARGE_RECORD)


class Traced:
    """A pipeline whose computing says in which thread it is, and waits if it is told to."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.threads: list[int] = []
        self.begun, self.may_end = threading.Event(), threading.Event()
        self.may_end.set()
        self.lock = asyncio.Lock()
        nowhere: Any = None
        limits = OutputLimits.of_catalogue(TopicNames("grove."))
        self.pipeline = Pipeline(
            Settings(), nowhere, Metrics(), partitions=PARTITIONS, limits=limits, tasks_lock=self.lock
        )
        compute = process_isolated

        def traced(*arguments: Any) -> Any:
            self.threads.append(threading.get_ident())
            self.begun.set()
            assert self.may_end.wait(60), "the event loop stands still"
            return compute(*arguments)

        monkeypatch.setattr(module, "process_isolated", traced)

    async def process(
        self, *values: bytes, ours: Callable[[], bool] = lambda: True, headers: Headers = ()
    ) -> Results | None:
        n = len(values)
        raw = RawRecords("grove.instances", 2, [*range(n)], [0] * n, [b"k"] * n, [*values], [headers] * n)
        return await results_of(self.pipeline, self.pipeline.new_task(2), Run(raw.topic, raw, n), ours)


async def results_of(
    pipeline: Pipeline, task: Task, run: Run, ours: Callable[[], bool] = lambda: True, most: int = STEP
) -> Results | None:
    """Return the results of a run alone in its group."""
    (outcome,) = await pipeline.process([(task, run)], lambda _: ours(), most)
    if isinstance(outcome, Exception):
        raise outcome
    return outcome


def test_runs_of_a_group_lead_to_what_they_lead_to_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story() -> None:
        pipeline = Traced(monkeypatch).pipeline
        in_group, alone = ([pipeline.new_task(partition) for partition in range(3)] for _ in range(2))
        good = b'{"id":"%d","features":{"x":%d},"label":"%s"}'
        for turn in range(6):
            runs = []
            for partition in range(3):
                values = [good % (100 * turn + at, at, b"ab"[at % 2 :][:1]) for at in range(9)]
                if partition == 1 and turn % 2:
                    values[3] = b'{"id":'
                offsets = [*range(9 * turn, 9 * turn + 9)]
                keys: list[bytes | None] = [b"k%d" % (at % (2 + turn)) for at in range(9)]
                raw = RawRecords("grove.instances", partition, offsets, [0] * 9, keys, [*values], [()] * 9)
                runs.append(Run(raw.topic, raw, 9 * turn + 9))
            outcomes = await pipeline.process([*zip(in_group, runs, strict=True)], lambda _: True)
            for partition, (one, ours) in enumerate(zip(runs, outcomes, strict=True)):
                theirs = await results_of(pipeline, alone[partition], one)
                assert isinstance(ours, Results) and theirs is not None
                assert [(each.values, each.keys) for each in ours.records] == [
                    (each.values, each.keys) for each in theirs.records
                ]
                assert ours.effects.dead_letters == theirs.effects.dead_letters
                assert ours.effects.counts == theirs.effects.counts
                assert in_group[partition].digest() == alone[partition].digest()

    asyncio.run(story())


def test_a_run_that_adds_too_much_is_processed_in_steps_also_in_a_group(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    n = 60
    values = [b'{"features":{"f%d":1}}' % at for at in range(n)]
    keys: list[bytes | None] = [b"k%d" % at for at in range(n)]
    raws = [
        RawRecords("grove.instances", partition, [*range(n)], [0] * n, keys, values, [()] * n)
        for partition in range(2)
    ]

    async def story() -> None:
        pipeline = Traced(monkeypatch).pipeline
        wholes, tasks = ([pipeline.new_task(partition) for partition in range(2)] for _ in range(2))
        effects = [
            whole.process(TaskRun("instances", raw, position=n))
            for whole, raw in zip(wholes, raws, strict=True)
        ]
        left = {raw.partition: Run(raw.topic, raw, n) for raw in raws}
        steps: list[list[Results]] = [[], []]
        while left:
            work = [(tasks[partition], one) for partition, one in left.items()]
            for results in await pipeline.process(work, lambda _: True, STEP // 2):
                assert isinstance(results, Results)
                partition = results.run.raw.partition
                steps[partition].append(results)
                del left[partition]
                if results.rest is not None:
                    left[partition] = results.rest
        for task, whole, expected, made in zip(tasks, wholes, effects, steps, strict=True):
            assert [offset for each in made for offset in each.run.raw.offsets] == raws[0].offsets
            assert [each.step.to for each in made] == [each.run.position for each in made]
            assert len(made) > 2
            assert sum((each.effects.counts for each in made), Counter[str]()) == expected.counts
            assert task.digest() == whole.digest()

    asyncio.run(story())


def runs_of(begin: int, partitions: int = 3) -> list[Run]:
    columns = [*range(begin, begin + 9)], [0] * 9, [b"k"] * 9, [b'{"id":"1","features":{"x":1}}'] * 9
    raws = [RawRecords("grove.instances", partition, *columns, [()] * 9) for partition in range(partitions)]
    return [Run(raw.topic, raw, begin + 9) for raw in raws]


def test_one_run_of_a_group_fails_and_the_others_have_their_results(monkeypatch: pytest.MonkeyPatch) -> None:
    lost = SwapFileError("the disk lost a model")

    def fail(*_given: object) -> bool:
        raise lost

    async def story() -> None:
        pipeline = Traced(monkeypatch).pipeline
        tasks = [pipeline.new_task(partition) for partition in range(3)]
        await pipeline.process([*zip(tasks, runs_of(0), strict=True)], lambda _: True)
        some = runs_of(9)
        for stage in ("process", "begin_joined"):  # alone, and together with other tasks' runs
            monkeypatch.setattr(tasks[1], stage, fail)
        outcomes = await pipeline.process([*zip(tasks, some, strict=True)], lambda number: number != 2)
        assert outcomes[1:] == [lost, None], "the third partition has left meanwhile"
        results = outcomes[0]
        assert isinstance(results, Results)
        assert (results.run, results.step.to) == (some[0], 18)
        assert [len(each.values) for each in results.records] == [9]

    asyncio.run(story())


@pytest.mark.parametrize("stage", ["decoded in one go", "encoded together"])
def test_a_stage_that_fails_for_a_group_is_repeated_for_each_run(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, stage: str
) -> None:
    def fail(*_given: object) -> list[None]:
        raise ZeroDivisionError

    async def story() -> None:
        pipeline = Traced(monkeypatch).pipeline
        tasks = [pipeline.new_task(partition) for partition in range(3)]
        place = "topics.codecs.compiled.decode.small_runs"
        if stage == "encoded together":
            place = "streamapp.worker.outputs.encoder.joined_answers"
        monkeypatch.setattr(place, fail)
        outcomes = await pipeline.process([*zip(tasks, runs_of(0), strict=True)], lambda _: True)
        for results in outcomes:
            assert isinstance(results, Results)
            assert len(results.records[0].values) == 9

    asyncio.run(story())
    assert stage in caplog.text


def sized(*sizes: int, records: int = 1) -> list[Run]:
    """Return runs of partitions 0, 1, … with values of these sizes."""
    raws = [
        RawRecords(
            "t", partition, [*range(records)], [0] * records, [b"k"] * records, [b"v" * size] * records, [()]
        )
        for partition, size in enumerate(sizes)
    ]
    return [Run("t", raw, records) for raw in raws]


@pytest.mark.parametrize(
    ("sizes", "records", "grouped"),
    [
        ((), 1, []),
        ((0, 0, 9), 1, [[0, 1, 2]]),
        ((9, LARGE_RECORD, 0, 9), 1, [[0], [1], [2, 3]]),
        ((GROUP_BYTES // 64, GROUP_BYTES // 64, 1), 32, [[0, 1], [2]]),
        ((GROUP_BYTES // 20, 1, 1), 32, [[0], [1, 2]]),
    ],
)
def test_small_runs_are_in_one_group_and_a_large_run_is_alone(
    sizes: tuple[int, ...], records: int, grouped: list[list[int]]
) -> None:
    made = groups(sized(*sizes, records=records))
    assert [[run.raw.partition for run in group] for group in made] == grouped


def test_a_run_with_a_large_record_is_computed_in_a_thread_and_leads_to_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def story() -> None:
        traced, here = Traced(monkeypatch), threading.get_ident()
        plain = await traced.process(PLAIN, PLAIN)
        large = await traced.process(PLAIN, LARGE)
        monkeypatch.setattr(group_module, "LARGE_RUN", 2 * len(PLAIN))
        many = await traced.process(PLAIN, PLAIN)
        monkeypatch.setattr(group_module, "LARGE_RUN", 1 << 30)
        monkeypatch.setattr(group_module, "LARGE_RECORD", 1 << 30)
        at_once = await traced.process(PLAIN, LARGE)
        await traced.process(PLAIN, headers=[("x", b"")] * MANY_HEADERS)
        assert [thread == here for thread in traced.threads] == [True, False, False, True, False]
        assert plain is not None
        for other in (large, many, at_once):
            assert other is not None
            assert [each.values for each in other.records] == [each.values for each in plain.records]
            assert other.effects.counts == plain.effects.counts
            assert other.step == plain.step

    asyncio.run(story())


def with_headers(records: int, headers: int) -> RawRecords:
    """Return fetched records of so many empty headers each, none of them read yet."""
    given: list[Headers] = [[("", b"")] * headers] * records
    spans = RecordSpans.of(range(records), [0] * records, [b"k"] * records, [PLAIN] * records, given)
    return RawRecords.over("grove.instances", 2, spans)


@pytest.mark.parametrize(("records", "headers"), [(1, 100_000), (200, MANY_IN_ALL // 200 + 1)])
def test_the_event_loop_reads_none_of_many_headers(
    monkeypatch: pytest.MonkeyPatch, records: int, headers: int
) -> None:
    """A header takes only two bytes of a batch: one that has millions would stop heartbeats and fetches."""
    calls: Counter[str] = Counter()

    def count(frame: Any, event: str, _: object) -> None:
        calls[frame.f_code.co_qualname] += event == "call"

    async def story() -> None:
        traced = Traced(monkeypatch)
        await traced.process(PLAIN)  # compiles
        raw = with_headers(records, headers)
        one = Run(raw.topic, raw, records)
        task = traced.pipeline.new_task(2)
        sys.setprofile(count)  # of this thread only
        try:
            made = groups([one, one])
            results = await results_of(traced.pipeline, task, one)
        finally:
            sys.setprofile(None)
        assert made == [[one], [one]]
        assert results is not None
        assert traced.threads[-1] != threading.get_ident()

    asyncio.run(story())
    assert calls.total() < records * headers / 10, calls.most_common(3)


def test_while_a_large_run_is_computed_the_event_loop_turns_and_its_task_is_nobodys(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def story() -> None:
        traced = Traced(monkeypatch)
        traced.may_end.clear()
        processing = asyncio.ensure_future(traced.process(LARGE))
        await asyncio.to_thread(traced.begun.wait, 60)
        assert traced.lock.locked()
        processing.cancel()
        await asyncio.sleep(0)
        processing.cancel()
        await asyncio.sleep(0)
        assert not processing.done(), "a task must not be left to a thread half processed"
        traced.may_end.set()
        with pytest.raises(asyncio.CancelledError):
            await processing
        assert not traced.lock.locked()

    asyncio.run(story())


def test_a_large_run_is_looked_at_again_when_its_turn_has_come(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story() -> None:
        traced, ours = Traced(monkeypatch), [True]
        await traced.lock.acquire()
        processing = asyncio.ensure_future(traced.process(LARGE, ours=lambda: ours[0]))
        await asyncio.sleep(0)
        ours[0] = False  # its task was dropped by who had the lock
        traced.lock.release()
        assert await processing is None
        assert traced.threads == []

    asyncio.run(story())
