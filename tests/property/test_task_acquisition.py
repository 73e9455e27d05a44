"""Tasks whose models buy features: runs, snapshots, failed runs and eviction change nothing."""

from __future__ import annotations

import random
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from streamapp.worker.task.counters import EPISODES, MEANING
from streamapp.worker.task.models.eviction.model_memory import ModelMemory
from tests.property.acquiring_story import SPECS, acquiring_story
from tests.property.test_task_cuts import assert_same, outcome, played
from tests.property.test_task_residency import within
from tests.property.test_task_rollback import runs_of
from tests.property.test_task_snapshots import Store, restored, said, since
from tests.tiers import examples
from tests.topology.partition import Partition, config

KINDS = st.sampled_from(sorted(SPECS))
ROOMS = st.sampled_from([3, 10_000])  # episodes


def with_episodes(partition: Partition) -> dict[str, Any]:
    image = partition.task._state.episodes.image()
    said_of = [
        (*episode[:6], episode.x.tolist(), episode.status.tolist(), *episode[9:])
        for episode in image.episodes
    ]
    return outcome(partition) | {"episodes": (image.next, repr(said_of)), "digest": partition.task.digest()}


@settings(max_examples=examples(12))
@given(seed=st.integers(0, 10**6), kind=KINDS, room=ROOMS, every=st.sampled_from([1, 2, 7, 50]))
@example(seed=1974, kind="random", room=3, every=7)  # another acquirer answers open episodes
def test_cutting_the_records_into_other_runs_changes_nothing(
    seed: int, kind: str, room: int, every: int
) -> None:
    records = acquiring_story(seed, 400)
    limits: dict[str, Any] = {"pending_ttl_ms": 400, "models_max_classes": 4, "episodes_max_count": room}
    whole = played(records, set(), spec=SPECS[kind], **limits)
    cut = played(records, set(range(0, len(records), every)), spec=SPECS[kind], **limits)
    assert_same(with_episodes(cut), with_episodes(whole))


@settings(max_examples=examples(10))
@given(
    seed=st.integers(0, 10**6),
    kind=KINDS,
    room=ROOMS,
    handler=st.sampled_from(["stop-partition", "dead-letter"]),
)
def test_a_task_restored_in_mid_episode_goes_on_as_the_one_that_never_stopped(
    seed: int, kind: str, room: int, handler: Any
) -> None:
    given_ = config(
        SPECS[kind], pending_ttl_ms=400, episodes_max_count=room, processing_exception_handler=handler
    )
    draw = random.Random(seed)
    runs = runs_of(acquiring_story(seed, 300), 7)
    plain, cutting = Partition(given_), Partition(given_)
    store = Store(cutting, draw, {})
    offsets, before = [], []
    for number, run in enumerate(runs):
        offsets.append(dict(plain._offsets))
        before.append(said(plain))
        store.step(number)
        plain.feed(*run)
        cutting.feed(*run)
        if number == len(runs) // 2 and store.last is None:
            store.finish(number + 1)
    assert_same(with_episodes(cutting), with_episodes(plain))
    assert store.last is not None
    at, digest = store.last
    again = restored(store, given_, offsets[at])
    assert again.task.digest() == digest
    for run in runs[at:]:
        again.feed(*run)
    assert since(again, ({}, 0)) == since(plain, before[at])
    assert again.task.digest() == plain.task.digest()


@settings(max_examples=examples(10))
@given(seed=st.integers(0, 10**6), kind=KINDS, room=ROOMS)
@example(seed=917, kind="budget", room=3)  # the last record of a run brings a new feature, and is refused
def test_a_run_that_is_undone_and_done_again_leads_to_the_same(seed: int, kind: str, room: int) -> None:
    given_ = config(
        SPECS[kind], pending_ttl_ms=400, episodes_max_count=room, processing_exception_handler="dead-letter"
    )
    plain, undone = Partition(given_), Partition(given_)
    draw = random.Random(seed)
    for run in runs_of(acquiring_story(seed, 300), 7):
        plain.feed(*run)
        if draw.random() < 0.5:
            before, offsets = undone.task.digest(), dict(undone._offsets)
            sent = {topic: len(records) for topic, records in undone.sent.items()}
            notices, counted = len(undone.notices), dict(undone.task.counters)
            undone.feed(*run)
            undone.task.rollback()
            assert undone.task.digest() == before
            undone._offsets.clear()
            undone._offsets.update(offsets)
            assert dict(undone.task.counters) == counted
            for topic, records in undone.sent.items():
                del records[sent.get(topic, 0) :]
            del undone.notices[notices:]
        undone.feed(*run)
    assert undone.task.digest() == plain.task.digest()
    assert {t: r for t, r in undone.sent.items() if r} == dict(plain.sent)


@settings(max_examples=examples(10))
@given(seed=st.integers(0, 10**6), kind=KINDS, room=ROOMS)
def test_models_that_are_evicted_between_question_and_answer_are_those_that_stay(
    seed: int, kind: str, room: int
) -> None:
    given_ = config(SPECS[kind], pending_ttl_ms=400, episodes_max_count=room)
    memory = ModelMemory(1)  # none stays that a run does not need
    plain, evicting = Partition(given_), within(given_, memory)
    for run in runs_of(acquiring_story(seed, 250), 7):
        for partition in (plain, evicting):
            partition.feed(*run)
    assert memory.evictions and memory.taken == 0
    assert_same(with_episodes(evicting), with_episodes(plain))


def test_the_stories_tell_of_everything_about_features() -> None:
    """The properties would be worth little if half of what can happen never did."""
    missing = {name for name in MEANING if name.startswith(("episodes.", "feature_values."))}
    missing -= {EPISODES["none_left"]}  # of learners with hypotheses
    for seed in range(30):
        for kind in sorted(SPECS):
            partition = played(
                acquiring_story(seed, 300), set(), spec=SPECS[kind], pending_ttl_ms=400, episodes_max_count=5
            )
            missing -= set(partition.counts)
            if not missing:
                return
    assert not missing
