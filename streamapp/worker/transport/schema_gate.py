"""Schema gate: lets runs pass whose schemas are known; a partition waits for a schema that is not known yet.

next run ──> ids ──all known──> run with its schemas
              │
              ├─ cannot be had ──> its record becomes a dead letter
              └─ not looked up yet ──> the records before it; the others go back, the partition waits
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Final

from streamapp.worker.transport.runs import Run, TimeOrder
from topics.codecs.frames.schema_ids import distinct_schema_ids, schema_ids
from topics.registry.known_schemas import KnownSchemas
from topics.registry.registered_schema import SchemaId

MOST_AT_ONCE: Final = 64
"""Schemas that are looked up for a run at a time."""


class SchemaGate:
    """The gate of one worker's partitions; belongs to the event loop."""

    def __init__(self, schemas: KnownSchemas | None) -> None:
        """`schemas`: None: no registry is in use, and every run passes as it is."""
        self._schemas = schemas
        self._waiting: dict[int, frozenset[SchemaId]] = {}
        self._changed = asyncio.Event()

    @property
    def reads_schemas(self) -> bool:
        """Whether a registry is in use; else every run passes as it is."""
        return self._schemas is not None

    def holds(self, partition: int) -> bool:
        """Whether a partition waits for schemas that are being looked up."""
        awaited = self._waiting.get(partition)
        return awaited is not None and self._schemas is not None and self._schemas.are_pending(awaited)

    def changed(self) -> None:
        """Note that schemas were looked up."""
        self._changed.set()

    async def until_known(self, partition: int, ids: Collection[SchemaId]) -> None:
        """Return when a partition that is being restored need not wait for some schemas any more."""
        self._waiting[partition] = frozenset(ids)
        while self.holds(partition):
            self._changed.clear()
            await self._changed.wait()
        self.forget(partition)

    def waiting(self) -> Mapping[int, frozenset[SchemaId]]:
        """Return the ids that each waiting partition needs."""
        return {partition: ids for partition, ids in [*self._waiting.items()] if self.holds(partition)}

    def waiting_in_words(self) -> str:
        """Return the first partition that waits, its schema and the reason; empty if none waits."""
        waiting = self.waiting()
        if not waiting or self._schemas is None:
            return ""
        partition, ids = next(iter(waiting.items()))
        more = f" (and {len(waiting) - 1} more)" if len(waiting) > 1 else ""
        reason = self._schemas.status.failure or "it is being looked up"
        return f"partition {partition}{more} waits for schema {min(map(str, ids))}: {reason}"

    def forget(self, partition: int) -> None:
        """Forget that a partition waits."""
        self._waiting.pop(partition, None)
        self._changed.set()

    def clear(self) -> None:
        """Forget which partitions wait."""
        self._waiting.clear()
        self._changed.set()

    def admit(self, order: TimeOrder, run: Run) -> Run | None:
        """Return a run, or its first records, with schemas; None if the first record has to wait.

        The other records go back to `order`, from which the run was taken.
        """
        if self._schemas is None:
            return run
        ids = distinct_schema_ids(run.raw)
        self._waiting.pop(order.partition, None)
        self._schemas.forget_unused(ids.union(*self._waiting.values()))
        present, absent = self._schemas.schemas(ids)
        missing = ids - present.keys() - absent.keys()
        if missing:
            numbers = schema_ids(run.raw)
            first = next(row for row, number in enumerate(numbers) if number in missing)
            # Those of later records are looked up on the way. A bound, because ids may all be made up.
            later = (number for number in numbers[first:] if number is not None and number in missing)
            awaited = [*dict.fromkeys(later)][:MOST_AT_ONCE]
            self._waiting[order.partition] = frozenset(awaited[:1])
            self._schemas.request(awaited)
            if first == 0:
                order.give_back(run, 1)
                return None
            run, rest = run.cut(first)
            order.give_back(rest, first)
        unknown = {}
        if absent:
            named = zip(run.raw.offsets, schema_ids(run.raw), strict=True)
            unknown = {
                offset: absent[number] for offset, number in named if number is not None and number in absent
            }
        return replace(run, raw=run.raw.read_by(present), unknown=unknown)
