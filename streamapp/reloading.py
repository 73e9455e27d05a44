"""Evicted models that a run needs: brought back before it, in slices, and in a thread where a disk has to be
waited for. What is found missing later (the model of a request that expires) is read when it is needed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from streamapp.daemons import in_daemon
from topics.records import RawRecords

if TYPE_CHECKING:
    from streamapp.task.model_store import ModelStore  # compiled kernels: not for who only looks

SLICE_MODELS: Final = 256
SLICE_BYTES: Final = 4 << 20


async def reload(models: ModelStore, raw: RawRecords) -> bool:
    """Return when the models that records name by their keys are in memory; whether one was not. ShelfError.

    Nothing else may use or evict models of the task meanwhile, but cuts are made and read.
    """
    residency = models.residency
    if not residency.n_away:
        return False
    keys = (key.decode("utf-8", "replace") for key in dict.fromkeys(raw.keys) if key is not None)
    missing = residency.missing(models.slot(key) for key in keys)
    for some in _slices(missing, residency.sizes(missing)):
        waiting = residency.install_now(some)
        if waiting:
            found = await in_daemon(lambda slots=waiting: residency.fetch(slots))  # type: ignore[misc]
            for slot, words in zip(waiting, found, strict=True):
                residency.install(slot, words)
        else:
            await asyncio.sleep(0)  # others have their turn
    return bool(missing)


def _slices(slots: Sequence[int], sizes: Sequence[int]) -> Iterator[list[int]]:
    """Yield the slots, so many at once that they are read in a few milliseconds."""
    some: list[int] = []
    total = 0
    for slot, size in zip(slots, sizes, strict=True):
        if some and (len(some) == SLICE_MODELS or total + size > SLICE_BYTES):
            yield some
            some, total = [], 0
        some.append(slot)
        total += size
    if some:
        yield some
