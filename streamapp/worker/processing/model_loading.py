"""Model loading: evicted models that a run needs are loaded before it, in slices, the disk in a thread.

A model that is found missing later (for example, the model of an expiring request) is read when it is needed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from streamapp.worker.blocking_calls import run_blocking
from topics.codecs.compiled.keys import coded
from topics.columns.records import RawRecords

if TYPE_CHECKING:
    from streamapp.worker.task.models.model_store import ModelStore  # loads compiled kernels

SLICE_MODELS: Final = 256
SLICE_BYTES: Final = 4 << 20


async def reload(models: ModelStore, raw: RawRecords) -> bool:
    """Load the models that records name by their keys; return whether one was not in memory.

    During this nothing else may use or evict models of the task, but cuts are made and read.
    """
    cache = models.cache
    if not cache.n_evicted:
        return False
    keys = [key.decode("utf-8", "replace") for key in coded(raw.keys).distinct if key is not None]
    slots = [models.keys.slot(key) for key in keys]
    if models.keys.has_challengers:
        slots += [models.keys.challenger(key) for key in keys]
    missing = cache.missing(slots)
    for named_slots in _slices(missing, cache.sizes(missing)):
        waiting = cache.install_now(named_slots)
        if waiting:
            fetched = await run_blocking(lambda slots=waiting: cache.fetch(slots))  # type: ignore[misc]
            for slot, words in zip(waiting, fetched, strict=True):
                cache.install(slot, words)
        else:
            await asyncio.sleep(0)  # give other coroutines a turn
    return bool(missing)


def _slices(slots: Sequence[int], sizes: Sequence[int]) -> Iterator[list[int]]:
    """Yield the slots in groups that are read in a few milliseconds each."""
    group: list[int] = []
    total = 0
    for slot, size in zip(slots, sizes, strict=True):
        if group and (len(group) == SLICE_MODELS or total + size > SLICE_BYTES):
            yield group
            group, total = [], 0
        group.append(slot)
        total += size
    if group:
        yield group
