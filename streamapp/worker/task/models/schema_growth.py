"""Schema growth: schemas grow while a run is prepared; models adopt the growth before the kernels run.

So a buffer is laid out again only once, for any growth. A model that has processed nothing yet is *fresh*: it
is replaced by a new model instead, if `max_bytes` has room for one.
"""

from __future__ import annotations

import numpy as np

from core.errors import SchemaError
from core.model_table import ModelTable
from core.schema.schema import Schema
from core.spec import Spec
from streamapp.worker.task.models.changes import ModelChanges
from streamapp.worker.task.models.eviction.cache import ModelCache
from streamapp.worker.task.models.model_keys import NO_MODEL, ModelKeys
from streamapp.worker.task.models.templates import Templates
from streamapp.worker.task.models.traits import ModelTraits


class SchemaGrowth:
    """Slots of grown schemas, and of fresh models."""

    def __init__(
        self,
        table: ModelTable,
        cache: ModelCache,
        keys: ModelKeys,
        traits: ModelTraits,
        changes: ModelChanges,
        templates: Templates,
    ) -> None:
        self._table, self._cache, self._keys, self._traits = table, cache, keys, traits
        self._changes, self._templates = changes, templates
        self.grown: set[int] = set()  # slots whose models lack the growth of their schemas
        self._fresh: set[int] = set()
        self._fresh_before: set[int] | None = None  # None: unchanged since `checkpoint`

    @property
    def is_due(self) -> bool:
        """Whether `adopt` has work to do."""
        return bool(self.grown or self._fresh)

    def is_fresh(self, slot: int) -> bool:
        """Return whether a model has processed nothing yet."""
        return slot in self._fresh

    def set_fresh(self, slot: int) -> None:
        """Note that a slot has a fresh model."""
        self._will_change()
        self._fresh.add(slot)

    def forget(self, slot: int) -> None:
        """Note that the model of a slot is gone, or is not fresh."""
        if slot in self._fresh:
            self._will_change()
            self._fresh.remove(slot)

    def grow(self, slot: int, schema: Schema) -> None:
        """Let a model's schema grow, and that of its challenger; `adopt` then changes the models."""
        self._traits.set_schema(slot, schema)
        self.grown.add(slot)
        challenger = self._keys.challenger(self._keys[slot]) if self._keys.has_challengers else NO_MODEL
        if challenger != NO_MODEL:
            self._traits.set_schema(challenger, schema)
            self.grown.add(challenger)

    def adopt(self) -> None:
        """Lay out again the models whose schemas have grown."""
        if self.is_due:
            self._changes.touch(np.array([*self.grown, *self._fresh]))
        for slot in sorted(self.grown):
            model, schema = self._cache.model(slot), self._traits.schema(slot)
            if slot not in self._fresh or not self._replace(slot, model.spec, schema):
                model.adopt(schema)
                self._table.refresh(slot)
        self.grown.clear()
        if self._fresh:
            self._will_change()
            self._fresh.clear()

    def checkpoint(self) -> None:
        """Begin a run: which models are fresh now is final."""
        self._fresh_before = None

    def rollback(self) -> None:
        """Undo the growth that was not adopted; models that were fresh are fresh again."""
        for slot in self.grown:
            self._traits.set_schema(slot, self._cache.plan(slot).schema)
        self.grown.clear()
        if self._fresh_before is not None:
            self._fresh, self._fresh_before = self._fresh_before, None

    def _replace(self, slot: int, spec: Spec, schema: Schema) -> bool:
        """Put a new model in the place of a fresh one; return whether `max_bytes` has room for it.

        A model without this room adopts the schema, as if the features had come in a later run: its growth
        stops.
        """
        try:
            model = self._templates.new_model(spec, schema)
        except SchemaError:
            return False
        self._cache.put(slot, model)
        return True

    def _will_change(self) -> None:
        if self._fresh_before is None:
            self._fresh_before = set(self._fresh)
