"""Keys with challengers: cuts of runs are invisible, a restored task goes on, undone runs leave no trace."""

from __future__ import annotations

import random
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamapp.worker.task.models.eviction.model_memory import ModelMemory
from streamapp.worker.task.task import Task
from tests.property.test_task_cuts import SPECS, assert_same, outcome, played, story
from tests.property.test_task_rollback import runs_of, state
from tests.property.test_task_snapshots import LIMITS, Store, restored, said, since
from tests.tiers import examples
from tests.topology.partition import PARTITION, QUICK, Partition, Record, config

CHALLENGES: list[dict[str, Any]] = [
    {"spec": {"learner": "majority-class"}, "max_labels": 5},
    {"spec": {"learner": QUICK, "drift": "ddm"}, "share": 0.9, "alpha": 0.5},
    {"spec": {"learner": "naive-bayes", "budget": {"limit": 0.3}}, "decide": "person", "share": 0.1},
    {"spec": {"learner": "no-change"}, "alpha": 0.5, "worth": 0.9},
]
WHOLE = LIMITS | {"models_max_count": 7}


def challenged(seed: int, n: int) -> list[Record]:
    """Return a story in which the models of keys are challenged, and challenges end by persons too."""
    draw = random.Random(seed)
    records = story(seed, n)
    for _ in range(16):
        place = draw.randrange(len(records))
        command = draw.choice(["challenge"] * 5 + ["promote", "drop", "configure"])
        body: dict[str, Any] = {"command": command}
        if command == "challenge":
            body |= draw.choice(CHALLENGES) | {"warm_up": draw.choice([0, 0, 4])}
        if command == "configure":
            body["spec"] = {"budget": {"limit": draw.choice([0.2, 0.9])}}
        at = records[place].at
        records.insert(place, Record("controls", draw.choice("abcd").encode(), orjson.dumps(body), at))
    return records


KINDS = st.sampled_from(sorted(SPECS))


@settings(max_examples=examples(12))
@given(
    seed=st.integers(0, 10**6),
    kind=KINDS,
    keep=st.sampled_from(["requested", "all"]),
    max_bytes=st.sampled_from([4096, 1 << 20]),
    every=st.sampled_from([1, 7, 50]),
)
def test_cuts_are_invisible(seed: int, kind: str, keep: str, max_bytes: int, every: int) -> None:
    records = challenged(seed, 400)
    limits = WHOLE | {"pending_keep": keep, "pending_max_bytes": max_bytes}
    whole = played(records, set(), spec=SPECS[kind], **limits)
    cut = played(records, set(range(0, len(records), every)), spec=SPECS[kind], **limits)
    assert_same(outcome(cut), outcome(whole))
    assert cut.task.digest() == whole.task.digest()


@settings(max_examples=examples(12))
@given(seed=st.integers(0, 10**6), kind=KINDS, limit=st.sampled_from([0, 1, 12_000]))
def test_a_restored_task_goes_on(seed: int, kind: str, limit: int) -> None:
    """`limit`: bytes of models in memory of the task that is cut; 0: no limit."""
    given_ = config(SPECS[kind], **WHOLE)
    draw = random.Random(seed)
    runs = runs_of(challenged(seed, 400), 7)
    plain, cutting = Partition(given_), Partition(given_)
    cutting.task = Task(PARTITION, given_, None, ModelMemory(limit))
    store = Store(cutting, draw, {})
    offsets, before = [], []
    for number, run in enumerate(runs):
        offsets.append(dict(plain._offsets))
        before.append(said(plain))
        store.step(number)
        plain.feed(*run)
        cutting.feed(*run)
        if number == len(runs) // 2:
            store.finish(number + 1)
    assert store.last is not None
    at, digest = store.last
    again = restored(store, given_, offsets[at])
    assert again.task.digest() == digest
    for run in runs[at:]:
        again.feed(*run)
    assert since(again, ({}, 0)) == since(plain, before[at])
    assert again.task.digest() == cutting.task.digest() == plain.task.digest()


@settings(max_examples=examples(12))
@given(seed=st.integers(0, 10**6), kind=KINDS)
def test_an_undone_run_leaves_no_trace(seed: int, kind: str) -> None:
    given_ = config(SPECS[kind], processing_exception_handler="dead-letter", **WHOLE)
    undone, plain = Partition(given_), Partition(given_)
    for run in runs_of(challenged(seed, 250), 9):
        before, digest = state(undone), undone.task.digest()
        sent = {topic: len(records) for topic, records in undone.sent.items()}
        n_notices = len(undone.notices)
        undone.feed(*run)
        undone.task.rollback()
        assert_same(state(undone), before)
        assert undone.task.digest() == digest
        for topic in undone.sent:
            del undone.sent[topic][sent.get(topic, 0) :]
        del undone.notices[n_notices:]
        undone._offsets[run[0].source] -= len(run)
        undone.feed(*run)
        plain.feed(*run)
    assert_same(outcome(undone), outcome(plain))
    assert undone.task.digest() == plain.task.digest()


@pytest.mark.parametrize(
    ("event", "kind", "seed"), [("promoted", "repeats-labels", 9), ("undecided", "repeats-labels", 4)]
)
def test_the_stories_have_every_end(event: str, kind: str, seed: int) -> None:
    """The properties would be worth little if challenges never ended by their rule."""
    partition = played(challenged(seed, 400), set(), spec=SPECS[kind], **WHOLE)
    events = [sent.json for sent in partition.sent["model-events"]]
    assert any((each["event"], each["detail"].get("by")) == (event, "rule") for each in events)
