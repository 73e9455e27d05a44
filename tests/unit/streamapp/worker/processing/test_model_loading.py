"""Evicted models are back before the run that names them, and a disk that fails is no record's fault."""

from __future__ import annotations

import asyncio
import os
import threading

import numpy as np
import pytest

from streamapp.worker.processing import model_loading
from streamapp.worker.processing.model_loading import reload
from streamapp.worker.task.models.eviction.model_memory import ModelMemory
from streamapp.worker.task.models.eviction.swap_file import SwapFileError
from streamapp.worker.task.models.model_store import ModelStore
from streamapp.worker.task.task import Task
from tests.topology.partition import ALWAYS, PARTITION, Partition, config, instance
from topics.columns.records import RawRecords


def evicted(keys: str, handler: str = "stop-partition") -> Partition:
    partition = Partition(config(ALWAYS, processing_exception_handler=handler))
    partition.task = Task(PARTITION, partition.task.config, None, ModelMemory(1))
    partition.feed(*(instance({"features": {"x": 1.0}}, key=key) for key in keys))
    return partition


def raw(*keys: bytes | None) -> RawRecords:
    n = len(keys)
    return RawRecords("t.instances", 3, list(range(n)), [0] * n, list(keys), [b"{}"] * n, [()] * n)


def here(store: ModelStore) -> set[str]:
    return {key for key, slot in store.keys.names() if not store.cache.evicted[slot]}


@pytest.mark.parametrize("waits", [False, True], ids=["in-memory", "from-the-disk"])
def test_the_models_that_records_name_are_brought_back_in_slices(
    waits: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_loading, "SLICE_MODELS", 2)
    store = evicted("abcdefgh").task.models
    expected = {key: store.cache.peek(slot).snapshot() for key, slot in store.keys.names()}
    store.cache._swap._waits |= waits
    threads: set[str] = set()
    real = store.cache.fetch
    monkeypatch.setattr(
        store.cache, "fetch", lambda slots: (threads.add(threading.current_thread().name), real(slots))[1]
    )
    assert here(store) == set()
    assert asyncio.run(reload(store, raw(b"e", b"b", None, b"e", b"nobody", b"\xff", b"a", b"g", b"h")))
    assert here(store) == {"a", "b", "e", "g", "h"}
    assert {key: store.cache.peek(slot).snapshot() for key, slot in store.keys.names()} == expected
    if waits:
        assert threads
        assert threading.current_thread().name not in threads
    assert not asyncio.run(reload(store, raw(b"e", b"b")))
    store.cache.evict_excess()
    assert store.cache.memory.misses == 5


def test_others_have_their_turn_while_models_are_brought_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_loading, "SLICE_BYTES", 1)
    store = evicted("abcd").task.models
    seen: list[int] = []

    async def story() -> None:
        reloaded = asyncio.ensure_future(reload(store, raw(b"a", b"b", b"c", b"d")))
        while not reloaded.done():
            seen.append(len(here(store)))
            await asyncio.sleep(0)

    asyncio.run(story())
    assert {1, 2, 3} <= set(seen)


def test_a_task_that_is_given_up_meanwhile_gives_nothing() -> None:
    store = evicted("ab").task.models
    store.cache._swap._waits = True
    store.close()
    with pytest.raises(SwapFileError, match="given up"):
        asyncio.run(reload(store, raw(b"a")))


@pytest.mark.parametrize("handler", ["stop-partition", "dead-letter"])
def test_a_model_that_the_disk_lost_is_no_fault_of_a_record(handler: str) -> None:
    partition = evicted("ab", handler)
    file = partition.task.models.cache._swap._file
    assert file is not None
    os.ftruncate(file, 0)
    with pytest.raises(SwapFileError, match="must be what was written"):
        partition.instances({"features": {"x": 2.0}}, key="a")
    assert partition.dead_letters == []


def test_a_model_whose_request_expires_is_told_wherever_it_is() -> None:
    given = config(ALWAYS, pending_ttl_ms=160)
    plain, limited = Partition(given), Partition(given)
    limited.task = Task(PARTITION, given, None, ModelMemory(1))
    keys = [f"k{number}" for number in range(600)]
    for partition in (plain, limited):
        partition.feed(*(instance({"features": {"x": 1.0}}, key=key) for key in keys))
        partition.instances({"features": {"x": 1.0}}, key="k0", at=400)
    store = limited.task.models
    assert store.cache.peek(5).summary().expired == 1
    assert np.count_nonzero(store.cache.evicted) == 600
    assert limited.task.digest() == plain.task.digest()
