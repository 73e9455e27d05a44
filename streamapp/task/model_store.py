"""The models of one partition by key, and what the task has to know of each beside its state.

A model is known by its *slot*: its index in core's table, and in the columns here. Schemas grow while a run
is being prepared; the models take them in (`adopt_grown`) before the kernels see the run, so that a buffer
is laid out anew once, however much it grew.

`checkpoint` begins a run and `rollback` undoes it. The kernels change models in place: only those that
`preserve` was called for come back as they were.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from core.features import Schema
from core.model import Model
from core.model_table import ModelTable
from core.plan import Plan
from core.spec import Spec
from streamapp.task.model_quota import ModelQuota

Ints64 = npt.NDArray[np.int64]

NO_MODEL: Final = -1
_FIRST_CAPACITY: Final = 16
_TEMPLATES_KEPT: Final = 1024


@dataclass(frozen=True, slots=True)
class _Preserved:
    """A model as it was when the run began."""

    key: str
    plan: Plan
    ints: Ints64
    facts: tuple[int, bool, bool]  # known classes, open, frozen


class ModelStore:
    """Models by key."""

    def __init__(self, quota: ModelQuota) -> None:
        self.table = ModelTable()
        self.quota = quota
        self.keys: dict[int, str] = {}  # slot -> key
        self.specs: dict[str, Spec] = {}  # of keys whose first instance is awaited, for it gives the schema
        self.warned: set[int] = set()  # slots whose unknown features were warned of
        self.schema_uid = np.zeros(_FIRST_CAPACITY, dtype=np.int64)
        self.shape_uid = np.zeros(_FIRST_CAPACITY, dtype=np.int64)  # of what they share but for classes
        self.known_classes = np.zeros(_FIRST_CAPACITY, dtype=np.int32)  # declared, or learned a label of
        self.width = np.zeros(_FIRST_CAPACITY, dtype=np.int32)  # attributes
        self.n_classes = np.zeros(_FIRST_CAPACITY, dtype=np.int32)
        self.open = np.zeros(_FIRST_CAPACITY, dtype=np.bool_)  # takes in new features: nothing split yet
        self.frozen = np.zeros(_FIRST_CAPACITY, dtype=np.bool_)
        self._slots: dict[str, int] = {}
        self._schemas: list[Schema] = []
        self._shapes: WeakKeyDictionary[Schema, Schema] = WeakKeyDictionary()
        self.grown: set[int] = set()  # slots whose models do not know their schema yet
        self._fresh: set[int] = set()  # slots of models that have seen nothing yet
        self._templates: dict[tuple[Spec, int], Model] = {}  # by spec and uid of the schema
        self._preserved: dict[int, _Preserved] = {}
        self._created: list[int] = []
        self._deleted: list[int] = []  # gone for everybody, but the table holds them until the run is final
        self._specs_before: dict[str, Spec] | None = None
        self._warned_before: set[int] | None = None
        self._reported_before = False

    def __len__(self) -> int:
        """Return the number of models."""
        return len(self._slots)

    # -- reading --------------------------------------------------------------------------------------------

    def slot(self, key: str) -> int:
        """Return the slot of a key's model, or NO_MODEL."""
        return self._slots.get(key, NO_MODEL)

    def slots(self, keys: Iterable[str]) -> Ints64:
        """Return int64[k]: the slot of each key's model, or NO_MODEL."""
        get = self._slots.get
        return np.array([get(key, NO_MODEL) for key in keys], dtype=np.int64)

    def model(self, slot: int) -> Model:
        """Return the model in a slot."""
        return self.table.model(slot)

    def schema(self, slot: int) -> Schema:
        """Return the schema of a model, as far as it has grown."""
        return self._schemas[slot]

    def shape(self, slot: int) -> Schema:
        """Return the schema of a model without its classes: one for all that met theirs in another order."""
        return self._shape(self._schemas[slot])

    # -- models coming, growing and going -------------------------------------------------------------------

    def create(self, key: str, spec: Spec, schema: Schema) -> int:
        """Make a model and return its slot, or NO_MODEL if the worker holds as many as it may."""
        if not self.quota.take():
            return NO_MODEL
        slot = self.table.add(self._new(spec, schema))
        self._reserve(slot, schema)
        self._fresh.add(slot)
        self._slots[key], self.keys[slot] = slot, key
        self._describe(slot, schema, (schema.declared_classes, schema.open_attributes, False))
        self._created.append(slot)
        return slot

    def replace(self, slot: int, model: Model) -> None:
        """Put a new model in the place of one, under the same key."""
        self.preserve([slot])
        self._put(slot, model)
        self._set_warned(self.warned - {slot})
        schema = model.schema
        self._describe(slot, schema, (schema.declared_classes, schema.open_attributes, False))

    def delete(self, slot: int) -> None:
        """Forget a model."""
        self.preserve([slot])
        self._deleted.append(slot)
        self._unlist(slot)

    def freeze(self, slot: int, frozen: bool) -> None:
        """Let a model answer without asking and learning, or go on."""
        self.preserve([slot])
        self.frozen[slot] = frozen

    def configure(self, slot: int, spec: Spec) -> None:
        """Change the parameters of a living model; SpecError if the change needs a new one."""
        self.preserve([slot])
        self.table.model(slot).configure(spec)
        self.table.refresh(slot)

    def warn(self, slot: int) -> None:
        """Note that the unknown features of a model were warned of."""
        self._set_warned(self.warned | {slot})

    def await_instance(self, key: str, spec: Spec | None) -> None:
        """Note the spec for the model that the first instance of a key will make (None: none is awaited)."""
        if self._specs_before is None:
            self._specs_before = dict(self.specs)
        self.specs.pop(key, None)
        if spec is not None:
            self.specs[key] = spec

    def grow(self, slot: int, schema: Schema) -> None:
        """Let a model's schema grow; `adopt_grown` lets the model know."""
        self._set_schema(slot, schema)
        self.grown.add(slot)

    def adopt_grown(self) -> None:
        """Lay out the models anew whose schemas have grown."""
        for slot in sorted(self.grown):
            model = self.table.model(slot)
            if slot in self._fresh:
                self._put(slot, self._new(model.spec, self._schemas[slot]))
            else:
                model.adopt(self._schemas[slot])
                self.table.refresh(slot)
        self.grown.clear()
        self._fresh.clear()

    # -- one run as a unit ----------------------------------------------------------------------------------

    def checkpoint(self) -> None:
        """Begin a run: what happened before is final."""
        self._reported_before = self.quota.reported
        for slot in self._deleted:
            if slot not in self.keys:
                self.table.remove(slot)
        self._preserved.clear()
        self._created.clear()
        self._deleted.clear()
        self._specs_before = self._warned_before = None

    def preserve(self, slots: Iterable[int]) -> None:
        """Copy models before they change, so that `rollback` can bring them back."""
        for slot in slots:
            if slot not in self._preserved:
                model = self.table.model(slot)
                facts = (
                    int(self.known_classes[slot]),
                    bool(self.open[slot]),
                    bool(self.frozen[slot]),
                )
                self._preserved[slot] = _Preserved(self.keys[slot], model.plan, model.ints.copy(), facts)

    def rollback(self) -> None:
        """Undo the models that came and went since `checkpoint`, and bring back those that were preserved."""
        for slot in self.grown:
            self._set_schema(slot, self.table.model(slot).schema)
        self.grown.clear()
        self._fresh.clear()
        for slot in reversed(self._created):
            if slot in self.keys:
                self._unlist(slot)
            self.table.remove(slot)
            self._preserved.pop(slot, None)
        for slot, before in self._preserved.items():
            if slot not in self.keys:
                self._slots[before.key], self.keys[slot] = slot, before.key
                self.quota.taken += 1
            self._put(slot, Model(before.plan, before.ints))
            self._describe(slot, before.plan.schema, before.facts)
        self.quota.reported = self._reported_before
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
        """Return a new model; models that begin alike are copies of one (2 instead of 40 µs)."""
        key = (spec, schema.uid)
        template = self._templates.get(key)
        if template is None:
            if len(self._templates) >= _TEMPLATES_KEPT:
                self._templates.clear()
            # It keeps its schema alive, whose uid is therefore not given to another one.
            template = self._templates[key] = Model.create(spec, schema)
        return Model(template.plan, template.ints.copy())

    def _put(self, slot: int, model: Model) -> None:
        placed = self.table.model(slot)
        placed.plan = model.plan
        placed.use(model.ints)
        self.table.refresh(slot)

    def _set_schema(self, slot: int, schema: Schema) -> None:
        self._schemas[slot] = schema
        self.schema_uid[slot] = schema.uid
        self.shape_uid[slot] = self._shape(schema).uid
        self.width[slot] = schema.n_attributes
        self.n_classes[slot] = schema.n_classes

    def _shape(self, schema: Schema) -> Schema:
        shape = self._shapes.get(schema)
        if shape is None:
            open_attributes = schema.open_attributes
            shape = self._shapes[schema] = Schema.of(schema.attributes, open_attributes=open_attributes)
        return shape

    def _describe(self, slot: int, schema: Schema, facts: tuple[int, bool, bool]) -> None:
        self._set_schema(slot, schema)
        self.known_classes[slot], self.open[slot], self.frozen[slot] = facts

    def _set_warned(self, warned: set[int]) -> None:
        if self._warned_before is None:
            self._warned_before = self.warned
        self.warned = warned

    def _unlist(self, slot: int) -> None:
        del self._slots[self.keys.pop(slot)]
        self._set_warned(self.warned - {slot})
        self.quota.give_back()

    def _reserve(self, slot: int, schema: Schema) -> None:
        """Make room for a slot in the columns; new slots are given out one after the other."""
        if slot == len(self._schemas):
            self._schemas.append(schema)
        if slot == len(self.frozen):
            for name in ("schema_uid", "shape_uid", "known_classes", "width", "n_classes", "open", "frozen"):
                column = getattr(self, name)
                setattr(self, name, np.concatenate((column, np.zeros_like(column))))
