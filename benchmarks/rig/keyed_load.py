"""Keyed load: records over many model keys, equally often or by Zipf's law, published at one moment."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Self

import numpy as np
import numpy.typing as npt

from benchmarks.rig.encoding import values
from benchmarks.rig.producing import Backfill
from benchmarks.rig.stream import generate
from topics.clients.partitioner import partition_of

DIFFERENT_ROWS: Final = 20_000
"""Rows that are generated and encoded; they repeat, under keys of their own."""


@dataclass(frozen=True, eq=False)
class KeyedLoad:
    """Numbers of keys in the order of the records, and the partition of each key."""

    keys: tuple[bytes, ...]
    key: npt.NDArray[np.int64]
    """int64[records]: indices into `keys`."""
    places: npt.NDArray[np.int64]
    """int64[keys]: partitions."""
    partitions: int

    @classmethod
    def draw(
        cls, records: int, models: int, partitions: int, zipf: float, within: int | None = None, seed: int = 1
    ) -> Self:
        """Draw the key of each record; key k has a weight of 1 / k ** zipf (0: all are equal).

        With `within`, only keys are taken whose partitions are below it.
        """
        keys: list[bytes] = []
        places: list[int] = []
        number = 0
        while len(keys) < models:
            key = b"model-%d" % number
            place = partition_of(key, partitions)
            if within is None or place < within:
                keys.append(key)
                places.append(place)
            number += 1
        weights = 1.0 / np.arange(1, models + 1) ** zipf
        key_of = np.random.default_rng(seed).choice(models, size=records, p=weights / weights.sum())
        return cls(tuple(keys), key_of, np.array(places), partitions)

    @property
    def by_partition(self) -> npt.NDArray[np.int64]:
        """int64[partitions]: records."""
        return np.bincount(self.places[self.key], minlength=self.partitions)

    @property
    def hottest_share(self) -> float:
        """Share of all records that the busiest key has."""
        return float(np.bincount(self.key).max() / len(self.key))

    def each_key(self, times: int) -> KeyedLoad:
        """Return a load in which each key has so many records."""
        return KeyedLoad(self.keys, np.tile(np.arange(len(self.keys)), times), self.places, self.partitions)

    def publish(self, bootstrap: str, topic: str, form: str) -> float:
        """Produce the records in one transaction; return the mean bytes of a value.

        Readers of committed records see none of them before the call ends, and then all of them.
        """
        encoded = [value for _, value in values(generate(DIFFERENT_ROWS, ("unused",)), form)]
        places = self.places.tolist()
        with Backfill(bootstrap, transaction=f"load-{uuid.uuid4().hex[:8]}") as backfill:
            for value, key in zip(_repeated(encoded), self.key.tolist(), strict=False):
                backfill.send(topic, value, self.keys[key], places[key])
        return backfill.bytes / backfill.records


def _repeated(items: list[bytes]) -> Iterator[bytes]:
    while True:
        yield from items
