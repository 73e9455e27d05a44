"""Runs of several partitions in one group lead to what each leads to alone."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import io
import json
import random
import weakref
import zlib
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

import fastavro
import numpy as np
import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.learners.hoeffding.blocks import TreeLayout
from core.model.model import Model
from core.model_table import ModelTable
from streamapp.settings import Settings
from streamapp.worker.observability.metrics import Metrics
from streamapp.worker.outputs.joined_answers import joined_answers
from streamapp.worker.outputs.outgoing import OutputRecords
from streamapp.worker.outputs.record_sizes import OutputLimits
from streamapp.worker.processing.pipeline import Pipeline
from streamapp.worker.processing.results import Results
from streamapp.worker.task.effects.effects import Effects
from streamapp.worker.task.error_isolation import ProcessingError
from streamapp.worker.task.rounds import family_round
from streamapp.worker.task.rounds.round_answers import RoundAnswers
from streamapp.worker.transport.runs import Run
from tests.tiers import examples
from topics.codecs.frames.wire_format import framed
from topics.columns.records import Headers, RawRecords, Schemas
from topics.columns.spans import RecordSpans
from topics.definitions import TopicNames
from topics.registry.registered_schema import RegisteredSchema

NAMES = TopicNames("grove.")
LIMITS = OutputLimits.of_catalogue(NAMES)
NARROW = OutputLimits({**LIMITS.topics, NAMES.predictions: 196})
"""A limit that answers with a long id are above."""
ODD: list[dict[str, Any]] = [
    {"label": "another"},
    {"features": {"x": 1.0}},
    {"features": None},
    {"id": "an id that is long" * 3},
    {"id": 'an "id"'},
    {"id": "é\u2028"},
    {"id": None},
    {"weight": -1},
    {"features": {"x": "word", "y": 2}},
]
KEYS = [b"a", b"b", b"c"]
HEADERS: list[Headers] = [(), (), (), [("content-type", b"application/json")], [("a", None)]]


AVRO: Any = {
    "type": "record",
    "name": "Instance",
    "fields": [
        {"name": "id", "type": ["null", "string"], "default": None},
        {"name": "label", "type": ["null", "string"]},
        {
            "name": "features",
            "type": {
                "type": "record",
                "name": "Features",
                "fields": [{"name": name, "type": ["double", "string", "null"]} for name in "xy"],
            },
        },
    ],
}
REGISTERED: Schemas = {
    3: RegisteredSchema(3, "AVRO", json.dumps(AVRO)),
    4: RegisteredSchema(4, "AVRO", '"int"'),
}


def in_avro(value: bytes, is_odd: bool) -> bytes:
    """Return plain JSON as Avro in a frame; odd: cut off, by the other schema, or JSON as it is."""
    try:
        sink = io.BytesIO()
        fastavro.schemaless_writer(sink, AVRO, json.loads(value))
    except (ValueError, TypeError, KeyError, AttributeError):
        return value
    odd = {0: framed(3, sink.getvalue()[:-1]), 1: framed(4, sink.getvalue()), 2: value}
    return odd[len(value) % 3] if is_odd else framed(3, sink.getvalue())


class Rounds:
    """A producer of each partition, whose records have a shape of their own."""

    def __init__(self, rng: random.Random, partitions: int, oddness: float) -> None:
        self._rng, self._oddness = rng, oddness
        self._next = [rng.randrange(1000) for _ in range(partitions)]
        self._has_id = rng.random() < 0.7
        self._labelled = rng.choice([1.0, 1.0, 0.5])
        self._classes = [rng.choice([["yes", "no"], ["no", "yes"], ["1", "2", "3"]]) for _ in self._next]
        self._headers = rng.choice(HEADERS)
        self.schemas: Schemas | None = None
        """Of a registry; the records name none of them, or all the first one."""
        if not oddness:
            self._classes, self._headers = self._classes[:1] * partitions, ()

    def round(self) -> list[Run]:
        return [self._run(partition) for partition in range(len(self._next))]

    def _run(self, partition: int) -> Run:
        n, first = self._rng.randint(1, 12), self._next[partition]
        self._next[partition] += n
        offsets = range(first, first + n)
        values = [self._value(partition, offset) for offset in offsets]
        if self.schemas:
            values = [in_avro(value, self._rng.random() < self._oddness) for value in values]
        keys = self._rng.choices(KEYS, k=n)
        times = [1_800_000_000_000 + at for at in offsets]
        spans = RecordSpans.of(offsets, times, keys, values, self._kinds(n))
        raw = RawRecords.over(NAMES.instances, partition, spans, self.schemas)
        return Run(NAMES.instances, raw, first + n)

    def _kinds(self, n: int) -> list[Headers]:
        if self._rng.random() < self._oddness:
            return self._rng.choices(HEADERS, k=n)
        return [self._headers] * n

    def _value(self, partition: int, offset: int) -> bytes:
        rng = self._rng
        x, y, classes = round(rng.uniform(0, 10), 2), round(rng.uniform(0, 10), 2), self._classes[partition]
        document: dict[str, Any] = {"id": f"n{offset}"} if self._has_id else {}
        label = classes[int(x + y) % len(classes)] if rng.random() < self._labelled else None
        document |= {"features": {"x": x, "y": y}, "label": label}
        if rng.random() < self._oddness / 4:
            document |= rng.choice(ODD)
        return orjson.dumps(document)[: -1 if rng.random() < self._oddness / 20 else None]


class Offers:
    """Keeps what a pipeline offers to its sender, by topic and partition."""

    def __init__(self) -> None:
        self.records: dict[tuple[str, int], list[tuple[bytes | None, bytes | None]]] = {}

    def gathering(self) -> contextlib.AbstractContextManager[None]:
        return contextlib.nullcontext()

    def hand_over(self) -> None:
        """Nothing waits."""

    def offer_run(self, topic: str, partition: Any, values: Any, keys: Any, *_: Any) -> None:
        partitions = np.broadcast_to(partition, len(values)).tolist()
        for number, key, value in zip(partitions, keys, values, strict=True):
            self.records.setdefault((topic, number), []).append((key, value))


class Both:
    """A worker that processes rounds as groups, and one that processes run after run."""

    def __init__(self, partitions: int, limits: OutputLimits, **given: Any) -> None:
        chosen = Settings(**given)
        nobody: Any = None
        self.pipelines = [
            Pipeline(chosen, nobody, Metrics(), partitions=partitions, limits=limits) for _ in range(2)
        ]
        self._tasks = [
            [pipeline.new_task(number) for number in range(partitions)] for pipeline in self.pipelines
        ]
        self.stopped: set[int] = set()
        self._results: list[tuple[Results, Results]] = []

    def drop(self, partition: int) -> weakref.ref[ModelTable]:
        """Close a partition's task and forget it; return a weak reference to its models."""
        task = self._tasks[0][partition]
        del self._tasks[0][partition]
        task.close()
        return weakref.ref(task.models.table)

    def counters(self, partition: int) -> Mapping[str, int]:
        """Return the counters of a partition's task."""
        return self._tasks[0][partition].counters

    def send(self, most: int) -> None:
        """Send the results, some of several rounds at once as after a commit, and compare what is offered.

        `most`: results in a group.
        """
        one, other = Offers(), Offers()
        ours, theirs = self.pipelines
        ours.sender, theirs.sender = cast("Any", one), cast("Any", other)
        for at in range(0, len(self._results), most):
            ours.send([results for results, _ in self._results[at : at + most]])
        for _, results in self._results:
            theirs.send([results])
        assert one.records == other.records

    async def process(self, some: list[Run]) -> None:
        """Process runs both ways, and compare all that comes of it."""
        here = [run for run in some if run.raw.partition not in self.stopped]
        work = [(self._tasks[0][run.raw.partition], run) for run in here]
        outcomes = await self.pipelines[0].process(work, lambda _: True)
        for run, ours in zip(here, outcomes, strict=True):
            number = run.raw.partition
            one, other = self._tasks[0][number], self._tasks[1][number]
            (theirs,) = await self.pipelines[1].process([(other, run)], lambda _: True)
            if isinstance(ours, Exception):
                assert isinstance(ours, ProcessingError) and isinstance(theirs, ProcessingError)
                assert str(ours) == str(theirs)
                assert repr(ours.__cause__) == repr(theirs.__cause__)
                self.stopped.add(number)
                continue
            assert isinstance(ours, Results) and isinstance(theirs, Results)
            assert_same(ours, theirs)
            self._results.append((ours, theirs))
            assert (one.digest(), one.counters) == (other.digest(), other.counters)


def assert_same(ours: Results, theirs: Results) -> None:
    """Compare what two pipelines made of a run."""
    assert (ours.run, ours.step, ours.input_bytes) == (theirs.run, theirs.step, theirs.input_bytes)
    assert ours.size == theirs.size
    assert len(ours.records) == len(theirs.records)
    for one, other in zip(ours.records, theirs.records, strict=True):
        assert (one.topic, one.kind, one.most_bytes) == (other.topic, other.kind, other.most_bytes)
        assert (one.values, one.keys, one.timestamps) == (other.values, other.keys, other.timestamps)
        assert [*(one.headers or ())] == [*(other.headers or ())]
        assert (one.records.dtype, one.records.tolist()) == (other.records.dtype, other.records.tolist())
    a, b = ours.effects, theirs.effects
    assert (a.counts, a.dead_letters, a.notices) == (b.counts, b.dead_letters, b.notices)
    assert repr((a.alerts, a.evaluations, a.happened)) == repr((b.alerts, b.evaluations, b.happened))  # NaN


def fail_at(pipeline: Pipeline, marks: frozenset[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """Have nothing encoded that answers a record of these offsets."""
    encoder = pipeline._encoder
    encode = encoder.encode

    def check(raw: RawRecords, effects: Effects) -> None:
        if effects.answers and (failing := marks & {*raw.offsets}):
            raise ArithmeticError(min(failing))

    def checked(raw: RawRecords, effects: Effects, answers: OutputRecords | None = None) -> Any:
        check(raw, effects)
        return encode(raw, effects, answers)

    def joined(runs: Any, *of_all: Any) -> Any:
        for raw, effects in runs:
            check(raw, effects)
        return joined_answers(runs, *of_all)

    together = encoder.encode_round

    def checked_round(answers: RoundAnswers) -> Any:
        for number in range(len(answers.runs)):
            start, stop = answers.ends[number : number + 2].tolist()
            raw = RawRecords.over("", 0, answers.spans.part(start, stop))
            check(raw, answers.effects(number))
        return together(answers)

    monkeypatch.setattr(encoder, "encode", checked)
    monkeypatch.setattr(encoder, "encode_round", checked_round)
    monkeypatch.setattr("streamapp.worker.outputs.encoder.joined_answers", joined)


def fail_to_grow(share: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let some decisions about a leaf fail, always the same for the same model."""
    grow = TreeLayout.grow

    def growing(layout: TreeLayout, model: Model, *arguments: Any) -> Any:
        if zlib.crc32(model.ints.tobytes()) < share * 2**32:
            raise ArithmeticError(share)
        return grow(layout, model, *arguments)

    monkeypatch.setattr(TreeLayout, "grow", growing)


@pytest.fixture(autouse=True)
def _nothing_fails_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """A round that cannot be answered together is answered run by run, which would hide a fault."""

    def exception(message: str, *arguments: Any) -> None:
        raise AssertionError(message % arguments)

    monkeypatch.setattr(family_round.logger, "exception", exception)


def spec_of(rng: random.Random) -> str:
    """Return a spec whose leaves are examined often, with or without label requests."""
    query = rng.choice(["always", "random", "random", "never"])
    learner = {"name": "h-tree", "grace_period": rng.choice([5, 200]), "delta": 0.1}
    drift = rng.choice(["none", "ddm"])
    return orjson.dumps({"learner": learner, "query": query, "drift": drift}).decode()


@settings(max_examples=examples(20), deadline=None)
@given(st.integers(0, 2**63))
def test_in_one_go_as_one_by_one(seed: int) -> None:
    rng = random.Random(seed)
    partitions = rng.randint(2, 5)
    rounds = Rounds(rng, partitions, rng.choice([0, 0.05, 0.3]))
    rounds.schemas = rng.choice([None, {}, REGISTERED])
    both = Both(
        partitions,
        rng.choice([LIMITS, LIMITS, NARROW]),
        output_headers=rng.choice(["minimal", "minimal", "minimal", "full"]),
        output_format=rng.choice([None, None, "json", "packed"]),
        processing_exception_handler=rng.choice(["stop-partition", "dead-letter"]),
        model_spec=spec_of(rng),
        evaluation_every=rng.choice([7, 1000]),
        pending_keep=rng.choice(["requested", "requested", "all"]),
    )
    with pytest.MonkeyPatch.context() as patch:
        if rng.random() < 0.3:
            marks = frozenset(rng.sample(range(1060), 40))
            for pipeline in both.pipelines:
                fail_at(pipeline, marks, patch)
        if rng.random() < 0.3:
            fail_to_grow(rng.choice([0.1, 0.5]), patch)
        for _ in range(5):
            asyncio.run(both.process(rounds.round()))
    both.send(rng.randint(1, 20))


@pytest.mark.parametrize("most", [1, 5, 11, 60])
def test_outputs_of_several_rounds_that_were_held_are_sent_in_the_order_of_their_partition(most: int) -> None:
    """A commit holds them; a partition may be in one of the rounds and alone before or after it."""
    rng = random.Random(most)
    both, rounds = Both(4, LIMITS), Rounds(rng, 4, 0.0)
    for _ in range(12):
        asyncio.run(both.process(rounds.round()))
    for _ in range(8):
        runs = rounds.round()
        alone = rng.randrange(4)
        asyncio.run(both.process([run for run in runs if run.raw.partition != alone]))
        asyncio.run(both.process([runs[alone]]))
    both.send(most)


@pytest.mark.parametrize(
    ("seed", "schemas"), [(0, None), (1, None), (2, {}), (0, REGISTERED), (1, REGISTERED)]
)
def test_steady_rounds_are_answered_together(
    seed: int, schemas: Schemas | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    both, rounds, joined = Both(4, LIMITS), Rounds(random.Random(seed), 4, 0.0), 0
    rounds.schemas = schemas
    process = family_round.FamilyRounds.process

    def counting(*arguments: Any) -> Any:
        nonlocal joined
        outcome = process(*arguments)
        joined += 0 if outcome.answers is None else len(outcome.answers.runs)
        return outcome

    monkeypatch.setattr(family_round.FamilyRounds, "process", counting)
    for _ in range(12):
        asyncio.run(both.process(rounds.round()))
    assert joined >= 4 * 7, "all but those of the first rounds, in which shapes and classes are new"


def test_a_record_with_an_unknown_schema_takes_no_part_in_a_round() -> None:
    both, rounds = Both(3, LIMITS), Rounds(random.Random(5), 3, 0.0)
    rounds.schemas = {}
    for _ in range(12):
        asyncio.run(both.process(rounds.round()))
    first, *others = rounds.round()
    asyncio.run(
        both.process([replace(first, unknown={first.raw.offsets[0]: "schema 7 is unknown"}), *others])
    )
    assert both.counters(0)["instances.dead-letter"] == 1


def test_a_partition_that_leaves_the_worker_takes_its_models_along() -> None:
    """Also if no round follows, because a single partition is left."""
    both, rounds = Both(3, LIMITS), Rounds(random.Random(5), 3, 0.0)
    for _ in range(12):
        asyncio.run(both.process(rounds.round()))
    models = both.drop(0)
    gc.collect()
    assert models() is None
