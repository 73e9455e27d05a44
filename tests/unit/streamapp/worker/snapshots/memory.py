"""A table and a journal in memory, for snapshots without Faust and a broker.

`tests/contract/test_stand_ins.py` holds them to what the real ones do.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterator, Sequence
from typing import Any

from confluent_kafka import KafkaException

from core.state_version import STATE_VERSION
from streamapp.errors import NotYetError
from streamapp.worker.snapshots.snapshot_table import Chunks, ClosedError
from streamapp.worker.task.unit import Unit, UnitName


class MemoryTable:
    """Chunks of each partition in a dict."""

    def __init__(self) -> None:
        self.chunks_of: dict[int, dict[bytes, bytes]] = {}
        self.writes = 0
        self.failures = 0  # of the next writes
        self.lacks = ""  # why chunks cannot be read; empty: they can
        self.overwritten: list[bytes] = []  # keys that were there already: of no story any

    def chunks(self, partition: int) -> Chunks:
        held = [self.chunks_of.setdefault(partition, {})]

        def here() -> dict[bytes, bytes]:
            if not held:
                raise ClosedError
            return held[0]

        def check() -> None:
            if self.lacks:
                raise NotYetError(self.lacks)

        return Chunks(lambda key: here().get(key), lambda: list(here()), held.clear, check)

    def failure(self) -> str:
        return ""

    async def write(self, partition: int, items: Any) -> None:
        if self.failures:
            self.failures -= 1
            message = "the broker is away"
            raise ConnectionError(message)
        here = self.chunks_of.setdefault(partition, {})
        for key, value in items:
            if value is None:
                here.pop(key, None)
            else:
                self.overwritten += [key] if key in here else []
                here[key] = value
                self.writes += 1

    async def remove(self, partition: int, keys: Sequence[bytes]) -> None:
        await self.write(partition, [(key, None) for key in keys])


class MemoryJournal:
    """Where a journal ends and begins."""

    def __init__(self) -> None:
        self.ends: dict[int, int] = {}
        self.trimmed: list[tuple[int, int]] = []
        self.away = False
        self.answers = threading.Event()
        self.answers.set()

    def end(self, partition: int) -> int:
        assert self.answers.wait(60)
        if self.away:
            message = "the broker is away"
            raise ConnectionError(message)
        return self.ends.get(partition, 0)

    def trim(self, partition: int, before: int) -> None:
        if before > self.ends.get(partition, 0):
            message = f"offset {before} is behind the end"
            raise KafkaException(message)
        self.trimmed.append((partition, before))


class ListCut:
    """A cut of which all units are there already."""

    state_version = STATE_VERSION

    def __init__(self, units: dict[str, bytes], removed: Collection[str] = ()) -> None:
        self._units = units
        self.removed = [UnitName("test", name) for name in removed]
        self.abandoned = False
        self.is_done = False

    def pieces(self) -> Iterator[Unit]:
        for name, data in self._units.items():
            yield Unit(UnitName("test", name), data)

    def keep(self, unit: Unit) -> bool:
        raise AssertionError(unit, "is not of a large model")

    def done(self) -> None:
        self.is_done = True

    def abandon(self) -> None:
        self.abandoned = True
