"""Model store: the models of one partition by key, and the task's data about each of them.

A model is identified by its *slot*: its index in core's table, and in the columns here. Schemas grow while a
run is being prepared; the models get the new columns (`adopt_grown`) before the kernels see the run, so that
a buffer is laid out again only once, for any growth.

`checkpoint` begins a run and `rollback` undoes it. The kernels change models in place: `rollback` restores
only models for which `preserve` was called. Before a kernel changes models, `touch` is called, because an
open cut may need their current state (cut.py); before it reads or changes them, `use` loads them into memory,
because they may be evicted (cache.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import repeat
from typing import Final

import numpy as np
import numpy.typing as npt

from core.model.model import Model, Scale
from core.model_table import ModelTable
from core.schema.schema import Schema
from core.spec import Spec
from streamapp.worker.task.models.cache import ModelCache
from streamapp.worker.task.models.changes import ModelChanges, ModelRecord
from streamapp.worker.task.models.exported import ExportedModel
from streamapp.worker.task.models.families import Families
from streamapp.worker.task.models.memory import ModelMemory
from streamapp.worker.task.models.model_unit import MODEL, StoredModel
from streamapp.worker.task.models.preserved import ModelFacts, PreservedModel
from streamapp.worker.task.models.quota import ModelQuota
from streamapp.worker.task.unit import UnitName

Ints32 = npt.NDArray[np.int32]
Ints64 = npt.NDArray[np.int64]

NO_MODEL: Final = -1
_FIRST_CAPACITY: Final = 16
_TEMPLATE_BYTES: Final = 4 << 20  # of the templates that are kept, their schemas included


_COLUMNS: Final = (
    "schema_uid",
    "columns_uid",
    "known_classes",
    "width",
    "n_classes",
    "open",
    "frozen",
    "counts_records",
    "acquires",
    "incarnation",
)


class ModelStore:
    """Models by key."""

    def __init__(self, quota: ModelQuota, memory: ModelMemory | None = None) -> None:
        """`memory`: limits the memory of the worker's models; None: no limit."""
        self.table = ModelTable()
        self.cache = ModelCache(self.table, memory or ModelMemory())
        self.quota = quota
        self.keys: dict[int, str] = {}  # slot -> key
        self.specs: dict[str, Spec] = {}  # of keys that wait for their first instance and its schema
        self.warned: set[int] = set()  # slots whose unknown features were warned of
        self.schema_uid = np.zeros(_FIRST_CAPACITY, dtype=np.int64)
        self.columns_uid = np.zeros(_FIRST_CAPACITY, dtype=np.int64)
        self.known_classes = np.zeros(_FIRST_CAPACITY, dtype=np.int32)  # declared, or learned a label of
        self.width = np.zeros(_FIRST_CAPACITY, dtype=np.int32)  # attributes
        self.n_classes = np.zeros(_FIRST_CAPACITY, dtype=np.int32)
        self.open = np.zeros(_FIRST_CAPACITY, dtype=np.bool_)  # adds new features: nothing has split yet
        self.frozen = np.zeros(_FIRST_CAPACITY, dtype=np.bool_)
        self.counts_records = np.zeros(_FIRST_CAPACITY, dtype=np.bool_)  # refuses weights other than 1
        self.acquires = np.zeros(_FIRST_CAPACITY, dtype=np.bool_)  # buys features before it answers
        self.has_acquired = False  # whether there was ever a model that buys features
        self.incarnation = np.zeros(_FIRST_CAPACITY, dtype=np.int64)  # number of its life in this partition
        self.incarnations = 0  # lives that have begun
        self.latest_words = 0  # of the model that was made last: a hint for the next, which no result has
        self.families = Families(self._plain_schema)
        self.changes = ModelChanges(self.record)
        self._gone: dict[UnitName, None] = {}  # lives in the last cut that ended since, perhaps undone
        self._cut_at = 0  # lives that had begun at the last cut
        self._slots: dict[str, int] = {}
        self._schemas: dict[int, Schema] = {}  # slot -> schema, including its latest growth
        self.grown: set[int] = set()  # slots whose models lack the growth of their schemas
        self._fresh: set[int] = set()  # slots of models that have processed nothing yet
        self._templates: dict[tuple[Spec, int], Model] = {}  # by spec and uid of the schema
        self._templates_bytes = 0
        self._preserved: dict[int, PreservedModel] = {}
        self._created: list[int] = []
        self._deleted: list[int] = []  # not visible any more, but in the table until the run is final
        self._specs_before: dict[str, Spec] | None = None
        self._warned_before: set[int] | None = None
        self._reported_before = False
        self._incarnations_before = 0

    def __len__(self) -> int:
        """Return the number of models."""
        return len(self._slots)

    # -- reading --------------------------------------------------------------------------------------------

    def slot(self, key: str) -> int:
        """Return the slot of a key's model, or NO_MODEL."""
        return self._slots.get(key, NO_MODEL)

    def slots(self, keys: Iterable[str]) -> Ints64:
        """Return int64[k]: the slot of each key's model, or NO_MODEL."""
        return np.fromiter(map(self._slots.get, keys, repeat(NO_MODEL)), np.int64)

    def model(self, slot: int) -> Model:
        """Return the model in a slot, in memory from now on until the run is over."""
        return self.cache.model(slot)

    def peek(self, slot: int) -> Model:
        """Return the model in a slot for reading: it stays where it is."""
        return self.cache.peek(slot)

    def spec(self, slot: int) -> Spec:
        """Return the spec from which a model was built."""
        return self.cache.plan(slot).spec

    @property
    def is_growing(self) -> bool:
        """Whether `adopt_grown` has work to do."""
        return bool(self.grown or self._fresh)

    def learn_classes(self, model: Ints64, code: Ints32) -> None:
        """Note that models (int64[m]) have learned labels of classes (int32[m])."""
        before = self.known_classes[model]
        np.maximum.at(self.known_classes, model, code + 1)
        changed = self.known_classes[model] != before
        if np.count_nonzero(changed):
            self.families.forget(model[changed])

    def refuses_weight(self, slot: int, weight: float) -> bool:
        """Return whether the model in a slot counts records, and `weight` differs from 1."""
        return bool(self.counts_records[slot]) and weight != 1.0

    def schema(self, slot: int) -> Schema:
        """Return the schema of a model, including its latest growth."""
        return self._schemas[slot]

    def record(self, slot: int) -> ModelRecord:
        """Return all data about a model; its state is not copied, and stays where it is."""
        model = self.cache.peek(slot)
        return ModelRecord(
            self.keys[slot],
            int(self.incarnation[slot]),
            model.plan,
            model.ints,
            int(self.known_classes[slot]),
            bool(self.open[slot]),
            bool(self.frozen[slot]),
            slot in self.warned,
            slot in self._fresh,
        )

    def name(self, slot: int) -> UnitName:
        """Return the name of a model's unit."""
        return UnitName(MODEL, self.keys[slot], int(self.incarnation[slot]))

    # -- models coming, growing and going -------------------------------------------------------------------

    def create(self, key: str, spec: Spec, schema: Schema) -> int:
        """Make a model and return its slot, or NO_MODEL if the worker has its maximum number of models."""
        if not self.quota.take():
            return NO_MODEL
        model = self._new(spec, schema)
        self.latest_words = len(model.ints)
        slot = self._add(model)
        self._fresh.add(slot)
        self._slots[key], self.keys[slot] = slot, key
        self._begin(slot, schema)
        self._created.append(slot)
        self.changes.mark(np.array([slot]))
        return slot

    def replace(self, slot: int, model: Model) -> None:
        """Replace a model by a new model under the same key."""
        self._will_change(slot)
        self._end(slot)
        self._put(slot, model)
        self._set_warned(self.warned - {slot})
        self._begin(slot, model.schema)

    def put(self, key: str, exported: ExportedModel) -> int:
        """Put a model that was learned elsewhere under a key; it replaces a model of that key.

        Return its slot, or NO_MODEL if the worker has its maximum number of models.
        """
        model, slot = exported.model, self.slot(key)
        if slot != NO_MODEL:
            self._will_change(slot)
            self._end(slot)
            self._put(slot, model)
            self._fresh.discard(slot)
            self._set_warned(self.warned - {slot})
        elif self.quota.take():
            slot = self._add(model)
            self._slots[key], self.keys[slot] = slot, key
            self._created.append(slot)
            self.changes.mark(np.array([slot]))
        else:
            return NO_MODEL
        self.incarnations += 1
        facts = ModelFacts(exported.known_classes, exported.open, exported.frozen, self.incarnations)
        self._describe(slot, model.schema, facts)
        return slot

    def delete(self, slot: int) -> None:
        """Forget a model."""
        self._will_change(slot)
        self._deleted.append(slot)
        self._unlist(slot)

    def freeze(self, slot: int, frozen: bool) -> None:
        """Let a model only answer, without label requests and learning, or end this state."""
        self._will_change(slot)
        self.frozen[slot] = frozen
        self.families.forget(slot)

    def configure(self, slot: int, spec: Spec) -> None:
        """Change the parameters of a living model; SpecError if the change needs a new one."""
        self._will_change(slot)
        self.model(slot).configure(spec)
        self.table.refresh(slot)
        self._set_acquires(slot, spec)
        self.families.forget(slot)

    def warn(self, slot: int) -> None:
        """Note that the unknown features of a model were warned of."""
        self.touch(np.array([slot]))
        self._set_warned(self.warned | {slot})

    def await_instance(self, key: str, spec: Spec | None) -> None:
        """Note the spec for the model that the first instance of a key will make (None: no such spec)."""
        if self._specs_before is None:
            self._specs_before = dict(self.specs)
        self.specs.pop(key, None)
        if spec is not None:
            self.specs[key] = spec

    def grow(self, slot: int, schema: Schema) -> None:
        """Let a model's schema grow; `adopt_grown` then changes the model."""
        self._set_schema(slot, schema)
        self.grown.add(slot)

    def adopt_grown(self) -> None:
        """Lay out again the models whose schemas have grown."""
        if self.grown or self._fresh:
            self.touch(np.array([*self.grown, *self._fresh]))
        for slot in sorted(self.grown):
            model = self.model(slot)
            if slot in self._fresh:
                self._put(slot, self._new(model.spec, self._schemas[slot]))
            else:
                model.adopt(self._schemas[slot])
                self.table.refresh(slot)
        self.grown.clear()
        self._fresh.clear()

    def adopted(self, incarnations: int) -> None:
        """Note how many lives had begun when the adopted models were stored."""
        self.incarnations = self._cut_at = incarnations

    def adopt(self, stored: StoredModel) -> None:
        """Add a model that was stored, even if the worker has no room for it."""
        key = stored.name.key
        slot = self._add(stored.model)
        self._slots[key], self.keys[slot] = slot, key
        self.quota.add(1)
        facts = ModelFacts(stored.known_classes, stored.open, stored.frozen, stored.name.incarnation)
        self._describe(slot, stored.model.schema, facts)
        if stored.warned:
            self.warned = self.warned | {slot}
        if stored.fresh:
            self._fresh.add(slot)

    # -- contents of a cut ----------------------------------------------------------------------------------

    def touch(self, slots: Ints64) -> None:
        """Note that models are about to change; slots: int64[m], may repeat."""
        self.changes.touch(slots)
        self.cache.changes(slots)

    def begin_cut(self) -> tuple[Ints64, Ints64, dict[UnitName, None]]:
        """Hold the models that changed since the last finished cut.

        Return int64[m] slots and their lives, ascending, and the lives that ended.
        """
        slots = self.changes.changed()
        slots = slots[np.argsort(self.incarnation[slots])]
        self.changes.begin(slots)
        self._cut_at = self.incarnations
        gone, self._gone = self._gone, {}
        return slots, self.incarnation[slots], {name: None for name in gone if not self._lives(name)}

    def abandon_cut(self, slots: Ints64, incarnations: Ints64, gone: dict[UnitName, None]) -> None:
        """Count the contents of a cut as changed or deleted again; arguments: the results of `begin_cut`."""
        self.changes.end()
        self.changes.mark(slots[self.incarnation[slots] == incarnations])
        self._gone = gone | self._gone

    def scales(self) -> Iterator[tuple[Spec, Scale]]:
        """Yield spec and size of each model, including evicted models.

        Another thread may call it while models change, come and go.
        """
        for slot in list(self.keys):
            try:
                yield self.spec(slot), self.cache.scale(slot)
            except (IndexError, KeyError):  # deleted, evicted or loaded at this moment
                continue

    def names(self) -> Iterator[tuple[str, int]]:
        """Yield key and slot of each model, by key."""
        yield from sorted(self._slots.items())

    # -- models in memory -----------------------------------------------------------------------------------

    def use(self, slots: Ints64) -> None:
        """Load models into memory for the rest of the run; slots: int64[m], may repeat."""
        self.cache.use(slots)

    def evict_excess(self) -> None:
        """Evict models if too many are in memory: nothing uses them now."""
        self.cache.evict_excess()

    def join(self, quota: ModelQuota, memory: ModelMemory | None = None) -> None:
        """Count the models among the models of a worker (`memory` None: its memory has no limit)."""
        quota.add(len(self))
        self.quota = quota
        self.cache.join(memory or ModelMemory(), self.keys)

    def close(self) -> None:
        """Return the memory and places of the models."""
        self.quota.give_back(len(self))
        self.cache.close()

    # -- one run as a unit ----------------------------------------------------------------------------------

    def checkpoint(self) -> None:
        """Begin a run: what happened before is final."""
        self._reported_before = self.quota.reported
        self._incarnations_before = self.incarnations
        for slot in self._deleted:
            if slot not in self.keys:
                self._remove(slot)
        self._preserved.clear()
        self._created.clear()
        self._deleted.clear()
        self._specs_before = self._warned_before = None

    def preserve(self, slots: Iterable[int]) -> None:
        """Copy models before they change, so that `rollback` can bring them back."""
        for slot in slots:
            if slot not in self._preserved:
                model = self.model(slot)
                facts = ModelFacts(
                    int(self.known_classes[slot]),
                    bool(self.open[slot]),
                    bool(self.frozen[slot]),
                    int(self.incarnation[slot]),
                )
                self._preserved[slot] = PreservedModel(self.keys[slot], model.plan, model.ints.copy(), facts)

    def rollback(self) -> None:
        """Undo the creations and deletions since `checkpoint`, and restore preserved models."""
        for slot in self.grown:
            self._set_schema(slot, self.cache.plan(slot).schema)
        self.grown.clear()
        self._fresh.clear()
        for slot in reversed(self._created):
            if slot in self.keys:
                self._unlist(slot)
            self._remove(slot)
            self._preserved.pop(slot, None)
        for slot, before in self._preserved.items():
            if slot not in self.keys:
                self._slots[before.key], self.keys[slot] = slot, before.key
                self.quota.add(1)
            self._put(slot, Model(before.plan, before.ints))
            self.changes.mark(np.array([slot]))
            self._describe(slot, before.plan.schema, before.facts)
        self.quota.reported = self._reported_before
        self.incarnations = self._incarnations_before
        if self._specs_before is not None:
            self.specs = self._specs_before
        if self._warned_before is not None:
            self.warned = self._warned_before
        self._preserved.clear()
        self._created.clear()
        self._deleted.clear()
        self._specs_before = self._warned_before = None

    # -- inside ---------------------------------------------------------------------------------------------

    def _new(self, spec: Spec, schema: Schema) -> Model:
        """Return a new model; models that begin alike are copies of a template (2 instead of 40 µs)."""
        key = (spec, schema.uid)
        template = self._templates.get(key)
        if template is None:
            template = Model.create(spec, schema)
            if template.nbytes > _TEMPLATE_BYTES // 16:  # a copy would cost as much as a new model
                return template
            self._templates_bytes += template.nbytes + schema.content_bytes
            if self._templates_bytes > _TEMPLATE_BYTES:
                self._templates.clear()
                self._templates_bytes = template.nbytes + schema.content_bytes
            self._templates[key] = template
        return Model(template.plan, template.ints.copy())

    def _put(self, slot: int, model: Model) -> None:
        self.cache.put(slot, model)

    def _plain_schema(self, slot: int) -> Schema | None:
        """Return the schema of a model that may have a family (families.py)."""
        is_special = self.frozen[slot] or self.counts_records[slot] or self.acquires[slot]
        if is_special or self.known_classes[slot] < self.n_classes[slot]:
            return None
        return self._schemas[slot]

    def _set_schema(self, slot: int, schema: Schema) -> None:
        """Note the schema of a model, which changes its family."""
        self._schemas[slot] = schema
        self.schema_uid[slot] = schema.uid
        self.columns_uid[slot] = schema.columns.uid
        self.width[slot] = schema.n_attributes
        self.n_classes[slot] = schema.n_classes
        self.families.forget(slot)

    def _begin(self, slot: int, schema: Schema) -> None:
        """Note the facts of a model that has processed nothing: a new life."""
        self.incarnations += 1
        is_open = schema.open_attributes and self.peek(slot).takes_attributes
        facts = ModelFacts(schema.declared_classes, is_open, False, self.incarnations)
        self._describe(slot, schema, facts)

    def _end(self, slot: int) -> None:
        """Note that the life of a model ends, if a cut may have seen it."""
        if self.incarnation.item(slot) <= self._cut_at:
            self._gone[self.name(slot)] = None

    def _describe(self, slot: int, schema: Schema, facts: ModelFacts) -> None:
        self.counts_records[slot] = self.spec(slot).learner.unit_weights
        self._set_acquires(slot, self.spec(slot))
        self.known_classes[slot], self.open[slot], self.frozen[slot], self.incarnation[slot] = facts
        self._set_schema(slot, schema)

    def _set_acquires(self, slot: int, spec: Spec) -> None:
        self.acquires[slot] = spec.acquirer is not None
        self.has_acquired = self.has_acquired or spec.acquirer is not None

    def _will_change(self, slot: int) -> None:
        self.preserve([slot])
        self.touch(np.array([slot]))

    def _lives(self, name: UnitName) -> bool:
        slot = self._slots.get(name.key, NO_MODEL)
        return slot != NO_MODEL and self.incarnation.item(slot) == name.incarnation

    def _set_warned(self, warned: set[int]) -> None:
        if self._warned_before is None:
            self._warned_before = self.warned
        self.warned = warned

    def _unlist(self, slot: int) -> None:
        self._end(slot)
        self.incarnation[slot] = 0
        self.changes.forget(slot)
        del self._slots[self.keys.pop(slot)]
        self._fresh.discard(slot)
        self._set_warned(self.warned - {slot})
        self.quota.give_back()

    def _add(self, model: Model) -> int:
        """Add a model to the table and return its slot."""
        slot = self.table.add(model)
        self._reserve(slot)
        self.cache.entered(slot)
        return slot

    def _remove(self, slot: int) -> None:
        self.cache.forget(slot)
        self.table.remove(slot)
        self._schemas.pop(slot, None)

    def _reserve(self, slot: int) -> None:
        """Make room for a slot in the columns; new slots are given out in ascending order."""
        if slot == len(self.frozen):
            for name in _COLUMNS:
                column = getattr(self, name)
                setattr(self, name, np.concatenate((column, np.zeros_like(column))))
            self.families.reserve(len(self.frozen))
            self.changes.reserve(len(self.frozen))
            self.cache.reserve(len(self.frozen))
