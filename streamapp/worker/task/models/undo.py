"""Undo of a run: models that were created go, deleted models come back, and preserved models are restored.

The kernels change models in place: only models that were preserved before come back as they were.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from core.model.model import Model
from core.model_table import ModelTable
from core.plan import Plan
from streamapp.worker.task.models.changes import ModelChanges
from streamapp.worker.task.models.eviction.cache import ModelCache
from streamapp.worker.task.models.model_keys import ModelKeys
from streamapp.worker.task.models.traits import ModelFacts, ModelTraits


@dataclass(frozen=True, slots=True)
class PreservedModel:
    """A model as it was when the run began."""

    key: str
    plan: Plan
    ints: npt.NDArray[np.int64]
    facts: ModelFacts


class ModelUndo:
    """The models that the current run created, deleted or may change."""

    def __init__(
        self,
        table: ModelTable,
        cache: ModelCache,
        keys: ModelKeys,
        traits: ModelTraits,
        changes: ModelChanges,
    ) -> None:
        self._table, self._cache, self._keys = table, cache, keys
        self._traits, self._changes = traits, changes
        self._preserved: dict[int, PreservedModel] = {}
        self._created: list[int] = []
        self._deleted: list[int] = []  # not visible any more, but in the table until the run is final
        self._reported_before = False

    def preserve(self, slots: Iterable[int]) -> None:
        """Copy models before they change, so that `rollback` can bring them back."""
        for slot in slots:
            if slot not in self._preserved:
                model, facts = self._cache.model(slot), self._traits.facts(slot)
                self._preserved[slot] = PreservedModel(self._keys[slot], model.plan, model.ints.copy(), facts)

    def created(self, slot: int) -> None:
        """Note that a slot has a new model."""
        self._created.append(slot)
        self._changes.mark(np.array([slot]))

    def delete(self, slot: int) -> None:
        """Hide a model, which was preserved."""
        self._deleted.append(slot)
        self._hide(slot)

    def checkpoint(self) -> None:
        """Begin a run: changes so far are final."""
        self._reported_before = self._keys.quota.reported
        for slot in self._deleted:
            if slot not in self._keys:
                self._remove(slot)
        self._forget_run()

    def rollback(self) -> None:
        """Bring back the models as they were at `checkpoint`."""
        for slot in reversed(self._created):
            if slot in self._keys:
                self._hide(slot)
            self._remove(slot)
            self._preserved.pop(slot, None)
        for slot, before in self._preserved.items():
            if slot not in self._keys:
                self._keys.quota.add(1)
                enter = self._keys.enter if before.facts.challenge is None else self._keys.enter_challenger
                enter(before.key, slot)
            self._cache.put(slot, Model(before.plan, before.ints))
            self._changes.mark(np.array([slot]))
            self._traits.describe(slot, before.plan.spec, before.plan.schema, before.facts)
        self._keys.quota.reported = self._reported_before
        self._forget_run()

    def _hide(self, slot: int) -> None:
        self._traits.incarnation[slot] = 0
        self._traits.set_challenge(slot, None)
        self._changes.forget(slot)
        self._keys.remove(slot)

    def _remove(self, slot: int) -> None:
        self._cache.forget(slot)
        self._table.remove(slot)
        self._traits.forget(slot)

    def _forget_run(self) -> None:
        self._preserved.clear()
        self._created.clear()
        self._deleted.clear()
