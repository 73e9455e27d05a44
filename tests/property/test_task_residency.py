"""Which models are in memory changes nothing: answers, requests, state, snapshots, an undone run."""

from __future__ import annotations

import random
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from streamapp.worker.task.models.eviction.model_memory import ModelMemory
from streamapp.worker.task.models.quota import ModelQuota
from streamapp.worker.task.task import Task
from streamapp.worker.task.task_config import TaskConfig
from tests.property.test_task_cuts import SPECS, assert_same, outcome, story
from tests.property.test_task_rollback import runs_of, state
from tests.property.test_task_snapshots import LIMITS, Store, restored, said, since
from tests.tiers import examples
from tests.topology.partition import PARTITION, Partition, config

BYTES = st.sampled_from([1, 4_000, 12_000, 40_000, 1 << 20])
"""Limits: from none of the models (3 to 30 kB each) to all of them."""


def within(given_: TaskConfig, memory: ModelMemory) -> Partition:
    """Return a partition whose models share a memory."""
    partition = Partition(given_)
    partition.task = Task(PARTITION, given_, None, memory)
    return partition


def scales(partition: Partition) -> list[Any]:
    return list(partition.task.models.scales())


@settings(max_examples=examples(15))
@given(
    seed=st.integers(0, 10**6),
    kind=st.sampled_from(sorted(SPECS)),
    keep=st.sampled_from(["requested", "all"]),
    limit=BYTES,
    handler=st.sampled_from(["stop-partition", "dead-letter"]),
    every=st.sampled_from([1, 7, 50]),
    slice_bytes=st.sampled_from([1, 4_000, 1 << 20]),
)
@example(
    seed=1, kind="committee", keep="requested", limit=1, handler="stop-partition", every=1, slice_bytes=1
)  # a forest of leaves, which is more than one node
def test_what_is_in_memory_changes_nothing(
    seed: int, kind: str, keep: Any, limit: int, handler: Any, every: int, slice_bytes: int
) -> None:
    """Two tasks share the memory, so that each evicts models of the other; both are cut and restored."""
    given_ = config(SPECS[kind], pending_keep=keep, processing_exception_handler=handler, **LIMITS)
    memory = ModelMemory(limit, slice_bytes=slice_bytes)
    runs = runs_of(story(seed, 300), every)
    other = runs_of(story(seed + 1, 60), every)
    plain, evicting, beside = Partition(given_), within(given_, memory), within(given_, memory)
    stores = [Store(partition, random.Random(seed), {}) for partition in (plain, evicting)]
    for number, run in enumerate(runs):
        for store in stores:
            store.step(number)
        plain.feed(*run)
        evicting.feed(*run)
        if number < len(other):
            beside.feed(*other[number])
        assert memory.taken <= limit
        assert scales(evicting) == scales(plain)
        if number == len(runs) // 2:
            for store in stores:
                store.finish(number + 1)
            offsets = dict(plain._offsets)
            before, at = said(plain), number + 1
            middle = dict(stores[1].units)
    assert stores[0].units == stores[1].units
    assert stores[0].last == stores[1].last
    if limit == 1:
        assert memory.taken == 0
        assert memory.evictions
    alone = Partition(given_)
    for run in other[: len(runs)]:
        alone.feed(*run)
    for one, whole in ((evicting, plain), (beside, alone)):
        assert one.task.digest() == whole.task.digest()
        assert_same(outcome(one), outcome(whole))
    # What was cut while models were away, restored into a memory of its own, and joined to the worker's.
    store = Store(plain, random.Random(0), middle)
    again = restored(store, given_, offsets)
    again.task = Task.from_units(PARTITION, given_, None, middle.values(), memory.apart(2))
    for run in runs[at : at + 3]:
        again.feed(*run)
    again.task.join(ModelQuota(given_.models_max_count), memory)
    for run in runs[at + 3 :]:
        overcommitted = memory.overcommitted
        again.feed(*run)
        assert memory.taken <= limit + memory.overcommitted
        assert memory.overcommitted <= max(0, overcommitted - slice_bytes)
    assert since(again, ({}, 0)) == since(plain, before)
    assert again.task.digest() == plain.task.digest()
    for partition in (evicting, beside, again):
        partition.task.close()
    assert memory.taken == 0


@settings(max_examples=examples(15))
@given(seed=st.integers(0, 10**6), kind=st.sampled_from(sorted(SPECS)), limit=BYTES)
def test_an_undone_run_leaves_no_trace_whatever_was_in_memory(seed: int, kind: str, limit: int) -> None:
    given_ = config(SPECS[kind], processing_exception_handler="dead-letter", **LIMITS)
    undone, plain = within(given_, ModelMemory(limit)), Partition(given_)
    for run in runs_of(story(seed, 200), 9):
        before = state(plain)
        undone.feed(*run)
        undone.task.rollback()
        if seed % 2:  # looking brings all of them into memory
            assert_same(state(undone), before | {"counters": state(undone)["counters"]})
        undone._offsets[run[0].source] -= len(run)
        undone.feed(*run)
        plain.feed(*run)
    assert undone.task.digest() == plain.task.digest()
