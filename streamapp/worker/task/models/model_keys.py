"""Model keys: which slot holds the model of a key, and the place of each model in the worker's quota.

A key may have a challenger too, whose slot leads to the key, but no record of the key to it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import repeat
from typing import Final

import numpy as np
import numpy.typing as npt

from streamapp.worker.task.models.quota import ModelQuota

Ints64 = npt.NDArray[np.int64]

NO_MODEL: Final = -1


class ModelKeys:
    """Keys and slots of the models that records reach. Another thread may read it at any time."""

    def __init__(self, quota: ModelQuota) -> None:
        self.quota = quota
        self._slots: dict[str, int] = {}
        self._challengers: dict[str, int] = {}
        self._keys: dict[int, str] = {}

    def __len__(self) -> int:
        """Return the number of models, challengers included."""
        return len(self._keys)

    def __contains__(self, slot: int) -> bool:
        """Return whether a slot holds a model that records reach, or a challenger."""
        return slot in self._keys

    def __iter__(self) -> Iterator[int]:
        """Yield the slots as they were at the call: models may come and go meanwhile."""
        return iter([*self._keys])

    def __getitem__(self, slot: int) -> str:
        """Return the key of the model in a slot."""
        return self._keys[slot]

    def slot(self, key: str) -> int:
        """Return the slot of a key's model, or NO_MODEL."""
        return self._slots.get(key, NO_MODEL)

    def slots(self, keys: Iterable[str]) -> Ints64:
        """Return int64[k]: the slot of each key's model, or NO_MODEL."""
        return np.fromiter(map(self._slots.get, keys, repeat(NO_MODEL)), np.int64)

    def known(self, keys: Iterable[str]) -> list[int]:
        """Return the slot of each key's model, or NO_MODEL."""
        return list(map(self._slots.get, keys, repeat(NO_MODEL)))

    def names(self) -> Iterator[tuple[str, int]]:
        """Yield key and slot of each model, by key."""
        yield from sorted(self._slots.items())

    def challenger(self, key: str) -> int:
        """Return the slot of a key's challenger, or NO_MODEL."""
        return self._challengers.get(key, NO_MODEL)

    def challengers(self) -> Iterator[tuple[str, int]]:
        """Yield key and slot of each challenger, by key."""
        yield from sorted(self._challengers.items())

    @property
    def has_challengers(self) -> bool:
        """Whether any key has a challenger."""
        return bool(self._challengers)

    def challengers_of(self, slots: Ints64) -> dict[int, int]:
        """Return the slots of the challengers of models, by the slots of these: int64[m], may repeat."""
        if not self._challengers:
            return {}
        keys = {slot: self._keys[slot] for slot in np.unique(slots).tolist() if slot in self._keys}
        rivals = {slot: self._challengers.get(key, slot) for slot, key in keys.items()}
        return {slot: challenger for slot, challenger in rivals.items() if challenger != slot}

    def enter(self, key: str, slot: int) -> None:
        """Let records of a key reach the model in a slot, whose place in the quota is taken already."""
        self._slots[key], self._keys[slot] = slot, key

    def enter_challenger(self, key: str, slot: int) -> None:
        """Note the challenger of a key, whose place in the quota is taken already."""
        self._challengers[key], self._keys[slot] = slot, key

    def remove(self, slot: int) -> None:
        """Let no record reach the model in a slot any more, and return its place."""
        key = self._keys.pop(slot)
        del (self._challengers if self._challengers.get(key) == slot else self._slots)[key]
        self.quota.give_back()

    def join(self, quota: ModelQuota) -> None:
        """Count the models in another quota, even beyond its limit."""
        quota.add(len(self))
        self.quota = quota

    def close(self) -> None:
        """Return the places of all models."""
        self.quota.give_back(len(self))
