"""Models that are evicted and come back, and which ones are."""

from __future__ import annotations

import gc
from pathlib import Path

import numpy as np
import pytest

from core.schema.schema import Attribute, Schema
from core.schema.shared import TALLY, Tally
from core.spec import Spec
from streamapp.worker.task.models.eviction.model_memory import SLICE_BYTES, ModelMemory
from streamapp.worker.task.models.eviction.swap_file import SwapFileError
from streamapp.worker.task.models.model_store import ModelStore
from streamapp.worker.task.models.quota import ModelQuota

SPEC = Spec.parse(None)
SCHEMA = Schema.of([Attribute("x"), Attribute("y")], ["no", "yes"])


def memory_of(limit: int, directory: Path | None = None, slice_bytes: int = SLICE_BYTES) -> ModelMemory:
    """Return a memory that counts words alone, as if nothing were shared by models."""
    return ModelMemory(limit, directory, slice_bytes, Tally())


def store_of(memory: ModelMemory, n: int, prefix: str = "k", schema: Schema = SCHEMA) -> ModelStore:
    store = ModelStore(ModelQuota(10_000), memory)
    for number in range(n):
        store.create(f"{prefix}{number}", SPEC, schema)
    store.growth.adopt()
    store.checkpoint()
    return store


def learn(store: ModelStore, *slots: int) -> None:
    """Let models learn, as a run does."""
    model = np.array(slots)
    n = len(model)
    store.cache.use(model)
    store.changes.touch(model)
    x = np.arange(2.0 * n).reshape(n, 2)
    store.table.answer(model, x, np.zeros(n, dtype=np.int32), np.ones(n))
    store.cache.evict_excess()


def away(store: ModelStore) -> list[int]:
    return np.flatnonzero(store.cache.evicted).tolist()


@pytest.fixture
def size() -> int:
    return store_of(ModelMemory(), 1).cache.model(0).nbytes


def test_the_longest_unused_models_are_evicted_first(size: int) -> None:
    memory = memory_of(4 * size)
    store = store_of(memory, 6)
    store.cache.evict_excess()
    assert away(store) == [0, 1]  # all were used in the same run: the hand begins at the first
    learn(store, 2)
    learn(store, 0)
    assert away(store) == [1, 3]  # 2 was used since the hand came by
    learn(store, 1)
    learn(store, 3)
    assert memory.taken == 4 * size
    assert len(away(store)) == 2
    assert 3 not in away(store)
    assert memory.misses == 3
    assert memory.evictions == 5
    store.close()


def test_the_same_uses_evict_the_same_models(size: int) -> None:
    def story() -> list[list[int]]:
        store, draw, found = store_of(memory_of(5 * size), 30), np.random.default_rng(3), []
        for _ in range(50):
            learn(store, *draw.integers(0, 30, 4).tolist())
            found.append(away(store))
        store.close()
        return found

    assert story() == story()


def test_models_come_back_as_they_were_and_learn_on(size: int) -> None:
    kept, evicted = store_of(ModelMemory(), 8), store_of(memory_of(1), 8)
    draw = np.random.default_rng(1)
    for _ in range(60):
        slots = draw.integers(0, 8, 5).tolist()
        learn(kept, *slots)
        learn(evicted, *slots)
        assert away(evicted) == list(range(8))
    assert list(evicted.scales()) == list(kept.scales())
    for slot in range(8):
        assert evicted.cache.peek(slot).snapshot() == kept.cache.peek(slot).snapshot()
        assert evicted.cache.plan(slot).spec == kept.cache.plan(slot).spec
    assert len(away(evicted)) == 8  # to look at a model brings nothing into memory
    assert evicted.cache.model(3).snapshot() == kept.cache.model(3).snapshot()
    assert len(away(evicted)) == 7
    evicted.close()


def test_what_has_not_changed_is_not_written_again(size: int) -> None:
    memory = memory_of(1)
    store = store_of(memory, 4)
    store.cache.evict_excess()
    assert memory.written == 4 * size
    for slot in range(4):
        store.cache.use(np.array([slot]))
        store.cache.evict_excess()
    assert memory.written == 4 * size
    assert memory.evictions == 8
    learn(store, 2)
    assert memory.written == 5 * size
    store.close()


def test_a_change_that_is_announced_before_its_model_is_back_is_written() -> None:
    store = store_of(memory_of(1), 2, schema=Schema.infer(("x", "y"), ("numeric", "numeric")))
    store.cache.evict_excess()
    store.growth.grow(0, store.traits.schema(0).with_class("maybe"))
    store.growth.adopt()
    expected = store.cache.model(0).snapshot()
    store.cache.evict_excess()
    assert away(store) == [0, 1]
    assert store.cache.peek(0).snapshot() == expected
    store.close()


def test_kernels_never_see_a_model_that_is_away() -> None:
    store = store_of(memory_of(1), 2)
    store.cache.evict_excess()
    with pytest.raises(IndexError, match="model=1 must be .*vacant"):
        store.table.answer(np.array([1]), np.zeros((1, 2)), np.array([-1], dtype=np.int32), np.ones(1))
    store.close()


def test_tasks_share_the_memory_and_evict_each_others_models(size: int) -> None:
    memory = memory_of(6 * size)
    idle, busy = store_of(memory, 4, "i"), store_of(memory, 8, "b")
    idle.cache.evict_excess()
    busy.cache.evict_excess()
    for _ in range(4):
        learn(busy, *range(6))
    assert memory.taken == 6 * size
    assert len(away(idle)) == 4
    busy.close()
    assert memory.taken == 0
    learn(idle, 0, 1)
    assert memory.taken == 2 * size
    idle.close()


def test_a_store_that_joins_a_memory_is_counted_there(size: int) -> None:
    memory = memory_of(3 * size)
    store = store_of(memory.apart(2), 4)
    store.cache.evict_excess()
    assert len(away(store)) == 3
    store.join(ModelQuota(100), memory)
    assert (memory.taken, store.keys.quota.taken) == (size, 4)
    free = store_of(ModelMemory(), 4)
    free.join(ModelQuota(100), memory)
    assert memory.taken == 5 * size
    free.cache.evict_excess()
    assert memory.taken == 3 * size
    free.join(ModelQuota(100))
    assert memory.taken <= size
    learn(free, *range(4))
    assert away(free) == []
    for each in (store, free):
        each.close()
    assert memory.taken == 0


def test_what_a_task_brings_above_the_limit_goes_slice_by_slice(size: int) -> None:
    memory = memory_of(4 * size, slice_bytes=3 * size)
    busy, arrived = store_of(memory, 4, "b"), store_of(memory_of(40 * size), 20, "a")
    busy.cache.evict_excess()
    arrived.cache.evict_excess()
    arrived.join(ModelQuota(100), memory)
    assert (memory.taken, memory.overcommitted) == (24 * size, 20 * size)
    seen, evicted = [], []
    for _ in range(8):
        before = memory.evictions
        learn(busy, 0)
        seen.append(memory.taken // size)
        evicted.append(memory.evictions - before)
    assert seen == [21, 18, 15, 12, 9, 6, 4, 4]
    assert max(evicted) <= 3 + 1, "and the one that the run brought back"
    assert memory.overcommitted == 0
    learn(busy, *range(4))
    assert memory.taken == 4 * size
    for each in (busy, arrived):
        each.close()
    assert (memory.taken, memory.overcommitted) == (0, 0)


def test_what_runs_bring_back_goes_at_once_whatever_is_borne(size: int) -> None:
    memory = memory_of(2 * size, slice_bytes=size)
    busy, arrived = store_of(memory, 8, "b"), store_of(memory_of(40 * size), 4, "a")
    busy.cache.evict_excess()
    arrived.cache.evict_excess()
    arrived.join(ModelQuota(100), memory)
    for left in (5, 4, 3, 2, 2):
        learn(busy, *range(8))  # six of them at least were away
        assert memory.taken == left * size
    for each in (busy, arrived):
        each.close()


def test_a_task_that_leaves_takes_what_is_borne_along(size: int) -> None:
    memory = memory_of(2 * size, slice_bytes=size)
    stays, leaves = store_of(memory, 2, "s"), store_of(memory_of(40 * size), 9, "l")
    stays.cache.evict_excess()
    leaves.cache.evict_excess()
    leaves.join(ModelQuota(100), memory)
    leaves.close()
    again = store_of(memory, 9, "n")
    again.cache.evict_excess()
    assert (memory.taken, memory.overcommitted) == (2 * size, 0)
    for each in (stays, again):
        each.close()


def test_deleted_replaced_and_undone_models_leave_nothing_behind(size: int) -> None:
    memory = memory_of(1)
    store = store_of(memory, 4)
    store.cache.evict_excess()
    before = [store.cache.peek(slot).snapshot() for slot in range(4)]
    store.checkpoint()
    store.delete(0)
    store.freeze(1, True)
    learn(store, 2)
    created = store.create("new", SPEC, SCHEMA)
    store.cache.evict_excess()
    store.rollback()
    assert created == 4
    assert [store.cache.peek(slot).snapshot() for slot in (0, 1, 3)] == [before[slot] for slot in (0, 1, 3)]
    store.cache.evict_excess()
    store.delete(3)
    store.checkpoint()
    assert away(store) == [0, 1, 2]
    assert store.create("again", SPEC, SCHEMA) in (3, 4)
    store.cache.evict_excess()
    assert memory.taken == 0
    assert len(away(store)) == 4
    store.close()


def test_what_was_fetched_for_a_task_that_is_gone_counts_nowhere(size: int) -> None:
    memory = memory_of(2 * size)
    gone, other = store_of(memory, 4, "g"), store_of(memory, 4, "o")
    gone.cache.evict_excess()
    other.cache.evict_excess()
    slot = away(gone)[0]
    (words,) = gone.cache.fetch([slot])
    gone.close()
    before = memory.taken
    gone.cache.install(slot, words)
    gone.cache.evict_excess()
    assert memory.taken == before
    learn(other, *range(4))
    assert memory.taken == 2 * size
    other.close()
    assert memory.taken == 0


def test_models_stay_in_memory_while_the_disk_takes_none(
    tmp_path: Path, size: int, caplog: pytest.LogCaptureFixture
) -> None:
    memory = memory_of(size, tmp_path / "gone")
    store = store_of(memory, 3)
    learn(store, 0)
    learn(store, 1)
    assert away(store) == []
    assert memory.taken == 3 * size
    said = [record.message for record in caplog.records if "models.max.bytes" in record.message]
    assert len(said) == 1
    (tmp_path / "gone").mkdir()
    learn(store, 0)
    assert memory.taken == size
    store.close()


def test_what_a_run_needs_is_found_and_brought_back_before_it() -> None:
    store = store_of(memory_of(1), 6)
    learn(store, *range(6))
    cache = store.cache
    expected = [store.cache.peek(slot).snapshot() for slot in range(6)]
    assert cache.missing([-1, 5, 2, 3]) == [5, 2, 3]
    waiting = cache.install_now([5, 2, 3])
    for slot, words in zip(waiting, cache.fetch(waiting), strict=True):
        cache.install(slot, words)
    assert away(store) == [0, 1, 4]
    assert cache.missing([5, 2, 3]) == []
    assert [store.cache.model(slot).snapshot() for slot in range(6)] == expected
    store.close()
    with pytest.raises(SwapFileError):
        cache.fetch([0])


def test_schemas_take_room_from_the_words_and_give_it_back(size: int) -> None:
    gc.collect()  # schemas of other tests, which would leave the tally in the middle of this one
    memory = ModelMemory(TALLY.bytes + 5 * size)
    store = store_of(memory, 4)
    learn(store, 0)
    assert away(store) == []
    values = [(0, f"value {i}") for i in range(1500)]
    large = Schema.infer(["x"], ["nominal"]).with_values(values)
    learn(store, 0)
    assert away(store) == [0, 1, 2, 3]  # what is shared leaves no room for words
    assert memory.used - memory.taken == TALLY.bytes
    del large
    learn(store, 0, 1)
    learn(store, 2, 3)
    assert away(store) == []
