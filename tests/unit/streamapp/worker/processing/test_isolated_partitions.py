"""A fault in one partition of a group stops that partition; the others go on, nothing is lost or doubled."""

import asyncio
import contextlib
import pkgutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

import pytest

from streamapp.settings import Settings
from streamapp.worker.observability.metrics import Metrics
from streamapp.worker.outputs.record_sizes import OutputLimits
from streamapp.worker.processing import pipeline as module
from streamapp.worker.processing.pipeline import Pipeline
from streamapp.worker.processing.results import Results
from streamapp.worker.task.effects.effects import Effects
from streamapp.worker.task.error_isolation import ProcessingError
from streamapp.worker.task.instances.leading_records import STEP
from streamapp.worker.task.task import CODE
from streamapp.worker.transport.runs import Run
from topics.columns.records import RawRecords
from topics.definitions import TopicNames

PARTITIONS = 3


def pipeline_of(sender: Any = None, **settings: Any) -> Pipeline:
    limits = OutputLimits.of_catalogue(TopicNames("grove."))
    return Pipeline(Settings(**settings), sender, Metrics(), partitions=PARTITIONS, limits=limits)


def group(begin: int = 0, label: str = "") -> list[Run]:
    """Return a run of each partition."""
    values = [b'{"id":"%d","features":{"x":1}%s}' % (at, label.encode()) for at in range(begin, begin + 9)]
    columns = [*range(begin, begin + 9)], [0] * 9, [b"k"] * 9, values
    raws = [RawRecords("grove.instances", partition, *columns, [()] * 9) for partition in range(PARTITIONS)]
    return [Run(raw.topic, raw, begin + 9) for raw in raws]


STAGES = ["placement", "decode", "leading", "process", "encode together", "encode", "step", "cut"]


class Fault:
    """A stage that fails for partition 1, alone or in a group."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, pipeline: Pipeline, stage: str) -> None:
        self._patch = monkeypatch
        tasks = "streamapp.worker.task.task.Task"
        encoder: Any = pipeline._encoder
        placement: Any = pipeline._placement
        {
            "placement": lambda: self._fails(placement, "check", lambda run: [run.raw]),
            "decode": self._decode,
            "leading": lambda: self._fails(tasks, "leading", lambda task, run, most: [run.raw]),
            "process": lambda: self._fails(tasks, "process", lambda task, run: [run.raw]),
            "encode together": lambda: self._fails(
                encoder, "encode_runs", lambda runs: [raw for raw, _ in runs]
            ),
            "encode": lambda: self._fails(encoder, "encode", lambda raw, effects, written: [raw]),
            "step": lambda: self._fails(module, "step_of", lambda source, raw, *rest: [raw]),
            "cut": lambda: self._fails(Run, "cut", lambda run, n: [run.raw]),
        }[stage]()

    def _decode(self) -> None:
        decode = CODE["instances"].decode

        def decoded(runs: Any, limits: Any) -> Any:
            self._check(runs)
            return decode(runs, limits)

        code = replace(CODE["instances"], decode=decoded)
        self._patch.setitem(CODE, "instances", code)

    def _fails(self, owner: Any, name: str, raws_of: Callable[..., Sequence[RawRecords]]) -> None:
        if isinstance(owner, str):
            owner = pkgutil.resolve_name(owner)
        stage = getattr(owner, name)

        def failing(*given: Any) -> Any:
            self._check(raws_of(*given))
            return stage(*given)

        self._patch.setattr(owner, name, failing)

    @staticmethod
    def _check(raws: Sequence[RawRecords]) -> None:
        if any(raw.partition == 1 for raw in raws):
            message = "a fault in partition 1"
            raise ZeroDivisionError(message)


@pytest.mark.parametrize("stage", STAGES)
def test_a_fault_in_one_partition_of_a_group_costs_the_others_nothing(
    monkeypatch: pytest.MonkeyPatch, stage: str
) -> None:
    """They have the results, once, that they have without it, and their tasks the same state."""

    async def story() -> None:
        pipeline = pipeline_of()
        healthy, ill = ([pipeline.new_task(partition) for partition in range(PARTITIONS)] for _ in range(2))
        most = 4 if stage == "cut" else STEP
        expected = await pipeline.process([*zip(healthy, group(), strict=True)], lambda _: True, most)
        Fault(monkeypatch, pipeline, stage)
        outcomes = await pipeline.process([*zip(ill, group(), strict=True)], lambda _: True, most)
        assert isinstance(outcomes[1], Exception)
        assert "a fault in partition 1" in str(outcomes[1])
        for number in (0, 2):
            ours, theirs = outcomes[number], expected[number]
            assert isinstance(ours, Results) and isinstance(theirs, Results)
            assert [(each.topic, [*each.values]) for each in ours.records] == [
                (each.topic, [*each.values]) for each in theirs.records
            ]
            assert (ours.step, ours.effects.counts) == (theirs.step, theirs.effects.counts)
            assert ill[number].digest() == healthy[number].digest()

    asyncio.run(story())


TOGETHER = {
    "decode": ("topics.codecs.compiled.decode.join_runs", False),
    "survey": ("streamapp.worker.task.rounds.family_round.survey_runs", False),
    "begin": ("streamapp.worker.task.task.Task.begin_joined", False),
    "models": ("streamapp.worker.task.task.Task.will_change", True),
    "tables": ("streamapp.worker.task.rounds.family_round.JoinedTables.answer_into", True),
    "end": ("streamapp.worker.task.task.Task.end_plain", True),
    "encode": ("streamapp.worker.outputs.encoder.round_outputs", False),
}
"""By stage of a round that is answered together: a function, and whether a run goes back if it fails."""


@pytest.mark.parametrize("handler", ["stop-partition", "dead-letter"])
@pytest.mark.parametrize("stage", TOGETHER)
def test_a_stage_that_fails_for_runs_together_is_repeated_for_each(
    monkeypatch: pytest.MonkeyPatch, stage: str, handler: str
) -> None:
    async def story() -> None:
        pipeline = pipeline_of(processing_exception_handler=handler)
        healthy, ill = ([pipeline.new_task(partition) for partition in range(PARTITIONS)] for _ in range(2))
        label, expected, outcomes = ',"label":"a"', [], []
        for begin in (0, 9):
            expected = await pipeline.process(
                [*zip(healthy, group(begin, label), strict=True)], lambda _: True
            )
            if begin:
                place, goes_back = TOGETHER[stage]
                owner, _, name = place.rpartition(".")
                monkeypatch.setattr(pkgutil.resolve_name(owner), name, failing)
            outcomes = await pipeline.process([*zip(ill, group(begin, label), strict=True)], lambda _: True)
        for ours, theirs, own, other in zip(outcomes, expected, ill, healthy, strict=True):
            assert isinstance(theirs, Results)
            if goes_back and handler == "stop-partition":
                assert isinstance(ours, ProcessingError), "its models may have learned a part of the run"
                continue
            assert isinstance(ours, Results)
            assert [*chain.from_iterable(each.values for each in ours.records)] == [
                *chain.from_iterable(each.values for each in theirs.records)
            ]
            assert (ours.step, ours.effects.counts) == (theirs.step, theirs.effects.counts)
            assert (own.digest(), own.counters) == (other.digest(), other.counters)

    failed: list[str] = []

    def failing(*_given: Any) -> Any:
        failed.append(stage)
        raise ZeroDivisionError(stage)

    asyncio.run(story())
    assert failed


def test_a_run_that_cannot_be_counted_is_sent_once_and_ends_nothing(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Its outputs are with the producer: a second computation would send them again."""

    async def story() -> None:
        sender: Any = Outbox()
        pipeline = pipeline_of(sender)
        tasks = [pipeline.new_task(partition) for partition in range(PARTITIONS)]
        outcomes = await pipeline.process([*zip(tasks, group(), strict=True)], lambda _: True)
        metrics = pipeline._metrics
        sent = metrics.sent

        def failing(raw: RawRecords, effects: Effects) -> None:
            if raw.partition == 1:
                raise ZeroDivisionError
            sent(raw, effects)

        monkeypatch.setattr(metrics, "sent", failing)
        pipeline.send([results for results in outcomes if isinstance(results, Results)])
        assert {partition for _, partition in sender.offered} == {0, 1, 2}
        assert len(sender.offered) == len(set(sender.offered)), "each topic of each run once"
        assert "partition=1: a run was not counted" in caplog.text

    asyncio.run(story())


class Outbox:
    """A sender that notes topic and partition of what it is offered."""

    def __init__(self) -> None:
        self.offered: list[tuple[str, int]] = []

    def gathering(self) -> contextlib.AbstractContextManager[None]:
        return contextlib.nullcontext()

    def offer_run(self, topic: str, partition: int, *_columns: object) -> None:
        self.offered.append((topic, partition))

    def hand_over(self) -> None:
        """All is taken at once."""
