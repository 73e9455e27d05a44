"""Model store: the models of one partition come, change and go.

Each duty has a part, which callers take from the store:

| part | duty |
|---|---|
| `keys` | key → slot, and the worker's quota |
| `table` | core's table: the kernels run on its models |
| `cache` | models in memory; before a kernel reads or changes models, `use` loads them |
| `traits` | the task's data about the models, as columns |
| `growth` | schemas that grow, and models that adopt the growth before the kernels run |
| `changes` | changed models, for cuts: before a kernel changes models, `touch` is called |
| `undo` | models as they were at the beginning of the run |
| `lives` | the incarnations that began and ended, for cuts |
| `warned` | models whose unknown features were warned of |
| `templates` | new models of equal specs and schemas, which begin as copies |

A model is identified by its *slot*: its index in core's table, and in all columns. `checkpoint` begins a run
and `rollback` undoes it.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from core.model.model import Model, Scale
from core.model_table import ModelTable
from core.schema.schema import Schema
from core.spec import Spec
from streamapp.worker.task.models.challenge import Challenge, Terms, running
from streamapp.worker.task.models.changes import ModelChanges
from streamapp.worker.task.models.eviction.cache import ModelCache
from streamapp.worker.task.models.eviction.model_memory import ModelMemory
from streamapp.worker.task.models.files.exported import ExportedModel
from streamapp.worker.task.models.files.model_record import ModelRecord
from streamapp.worker.task.models.files.model_unit import CHALLENGER, MODEL, StoredModel
from streamapp.worker.task.models.lives import Lives
from streamapp.worker.task.models.model_keys import NO_MODEL, ModelKeys
from streamapp.worker.task.models.quota import ModelQuota
from streamapp.worker.task.models.schema_growth import SchemaGrowth
from streamapp.worker.task.models.templates import Templates
from streamapp.worker.task.models.traits import ModelFacts, ModelTraits
from streamapp.worker.task.models.undo import ModelUndo
from streamapp.worker.task.models.warned import WarnedModels
from streamapp.worker.task.unit import UnitName

Ints64 = npt.NDArray[np.int64]


class ModelStore:
    """The models of one partition, by key and by slot."""

    def __init__(self, quota: ModelQuota, memory: ModelMemory | None = None) -> None:
        """`memory`: limits the memory of the worker's models; None: no limit."""
        self.table = ModelTable()
        self.cache = ModelCache(self.table, memory or ModelMemory())
        self.keys = ModelKeys(quota)
        self.traits = ModelTraits()
        self.lives = Lives()
        self.warned = WarnedModels()
        self.templates = Templates()
        self.changes = ModelChanges(self.record, self.cache)
        self.growth = SchemaGrowth(
            self.table, self.cache, self.keys, self.traits, self.changes, self.templates
        )
        self.undo = ModelUndo(self.table, self.cache, self.keys, self.traits, self.changes)

    def record(self, slot: int) -> ModelRecord:
        """Return all data about a model; its state is not copied, and stays where it is."""
        model, facts = self.cache.peek(slot), self.traits.facts(slot)
        return ModelRecord(
            self.keys[slot],
            facts.incarnation,
            model.plan,
            model.ints,
            facts.known_classes,
            facts.open,
            facts.frozen,
            slot in self.warned,
            self.growth.is_fresh(slot),
            facts.since,
            facts.challenge,
        )

    def scales(self) -> Iterator[tuple[Spec, Scale]]:
        """Yield spec and size of each model, including evicted models.

        Another thread may call it while models change, come and go.
        """
        for slot in self.keys:
            try:
                yield self.cache.plan(slot).spec, self.cache.scale(slot)
            except (IndexError, KeyError):  # deleted, evicted or loaded at this moment
                continue

    # -- models come, change and go -------------------------------------------------------------------------

    def create(self, key: str, spec: Spec, schema: Schema) -> int:
        """Make a model and return its slot, or NO_MODEL if the worker has its maximum number of models.

        Raise SchemaError, and change nothing, if the spec has no room for a model of this schema.
        """
        model = self._new_model(spec, schema)
        if model is None:
            return NO_MODEL
        slot = self._add(key, model)
        self.growth.set_fresh(slot)
        self._begin(slot, schema)
        self.undo.created(slot)
        return slot

    def replace(self, slot: int, model: Model) -> None:
        """Replace a model by a new model under the same key."""
        self._will_change(slot)
        self._end(slot)
        self.cache.put(slot, model)
        self._begin(slot, model.schema)

    def put(self, key: str, exported: ExportedModel) -> int:
        """Put a model that was learned elsewhere under a key; it replaces a model of that key.

        Return its slot, or NO_MODEL if the worker has its maximum number of models.
        """
        model, slot = exported.model, self.keys.slot(key)
        if slot != NO_MODEL:
            self._will_change(slot)
            self._end(slot)
            self.cache.put(slot, model)
            self.growth.forget(slot)
        elif self.keys.quota.take():
            slot = self._add(key, model)
            self.undo.created(slot)
        else:
            return NO_MODEL
        facts = ModelFacts(exported.known_classes, exported.open, exported.frozen, self.lives.begin())
        self.traits.describe(slot, model.spec, model.schema, facts)
        return slot

    def adopt(self, stored: StoredModel) -> None:
        """Add a model that was stored, even if the worker has no room for it."""
        model = stored.model
        self.keys.quota.add(1)
        slot = self._add(stored.name.key, model, challenges=stored.challenge is not None)
        facts = ModelFacts(
            stored.known_classes,
            stored.open,
            stored.frozen,
            stored.name.incarnation,
            stored.since,
            stored.challenge,
        )
        self.traits.describe(slot, model.spec, model.schema, facts)
        if stored.warned:
            self.warned.add(slot)
        if stored.fresh:
            self.growth.set_fresh(slot)

    def delete(self, slot: int) -> None:
        """Forget a model."""
        self._will_change(slot)
        self._end(slot)
        self.growth.forget(slot)
        self.undo.delete(slot)

    def freeze(self, slot: int, frozen: bool) -> None:
        """Let a model only answer, without label requests and learning, or end this state."""
        self._will_change(slot)
        self.traits.set_frozen(slot, frozen)

    def configure(self, slot: int, spec: Spec) -> None:
        """Change the parameters of a living model; SpecError if the change needs a new one."""
        self._will_change(slot)
        self.cache.model(slot).configure(spec)
        self.table.refresh(slot)
        self.traits.set_spec(slot, spec)

    def warn(self, slot: int) -> None:
        """Note that the unknown features of a model were warned of."""
        self.changes.touch(np.array([slot]))
        self.warned.add(slot)

    # -- challengers ----------------------------------------------------------------------------------------

    def with_challengers(self, slots: Ints64) -> Ints64:
        """Return slots (int64[m]), and after them the slots of the challengers of these models."""
        challengers = self.keys.challengers_of(slots)
        return np.concatenate((slots, [*challengers.values()])).astype(np.int64) if challengers else slots

    def challenge(self, slot: int, terms: Terms, since: int) -> int:
        """Make a challenger of a model and return its slot, or NO_MODEL if the worker has no room for it.

        since: serial of the next pending instance. Neither model adds new features from now on. Raise
        SchemaError, and change nothing, if the spec has no room for a model of this schema.
        """
        schema, was_open = self.traits.schema(slot), bool(self.traits.open[slot])
        model = self._new_model(running(terms.spec), schema)
        if model is None:
            return NO_MODEL
        self._will_change(slot)
        self.traits.open[slot] = False
        challenger = self._add(self.keys[slot], model, challenges=True)
        facts = ModelFacts(
            schema.declared_classes, False, False, self.lives.begin(), 0, Challenge(terms, since, was_open)
        )
        self.traits.describe(challenger, model.spec, schema, facts)
        self.undo.created(challenger)
        return challenger

    def set_challenge(self, challenger: int, challenge: Challenge) -> None:
        """Set the state of a challenge, for whose models `touch` and `preserve` were called."""
        self.traits.set_challenge(challenger, challenge)

    def drop(self, slot: int) -> None:
        """Forget the challenger of a model."""
        challenger = self.keys.challenger(self.keys[slot])
        self._will_change(slot)
        self.traits.open[slot] = self.is_open_alone(slot)
        self.delete(challenger)

    def is_open_alone(self, slot: int) -> bool:
        """Return whether a model that has a challenger would add new features without it."""
        challenge = self.traits.challenges[self.keys.challenger(self.keys[slot])]
        return challenge.was_open and self.cache.peek(slot).takes_attributes

    def promote(self, slot: int, since: int) -> None:
        """Put the challenger of a model in its place; since: serial of the next pending instance.

        The requests of the key go on: the new model takes over the account and the number of records.
        """
        challenger = self.keys.challenger(self.keys[slot])
        challenge, facts = self.traits.challenges[challenger], self.traits.facts(challenger)
        frozen = bool(self.traits.frozen[slot])
        self._will_change(slot)
        self._will_change(challenger)
        model = self.cache.model(challenger)
        model = Model(model.plan, model.ints.copy())
        model.configure(challenge.terms.spec)
        model.take_account(self.cache.model(slot))
        self._end(slot)
        self.delete(challenger)
        self.growth.forget(slot)
        self.cache.put(slot, model)
        is_open = challenge.was_open and model.takes_attributes
        facts = ModelFacts(facts.known_classes, is_open, frozen, self.lives.begin(), since)
        self.traits.describe(slot, model.spec, model.schema, facts)

    # -- contents of a cut ----------------------------------------------------------------------------------

    def begin_cut(self) -> tuple[Ints64, Ints64, dict[UnitName, None]]:
        """Hold the models that changed since the last finished cut.

        Return int64[m] slots, int64[m] incarnations in ascending order, and the lives that ended.
        """
        slots = self.changes.changed()
        slots = slots[np.argsort(self.traits.incarnation[slots])]
        self.changes.begin(slots)
        return slots, self.traits.incarnation[slots], self.lives.begin_cut(self._goes_on)

    def abandon_cut(self, slots: Ints64, incarnations: Ints64, ended: dict[UnitName, None]) -> None:
        """Count the contents of a cut as changed or deleted again; arguments: the results of `begin_cut`."""
        self.changes.end()
        self.changes.mark(slots[self.traits.incarnation[slots] == incarnations])
        self.lives.abandon_cut(ended)

    # -- all models -----------------------------------------------------------------------------------------

    def checkpoint(self) -> None:
        """Begin a run: changes so far are final."""
        self.undo.checkpoint()
        self.growth.checkpoint()
        self.lives.checkpoint()
        self.warned.checkpoint()

    def rollback(self) -> None:
        """Undo the creations and deletions since `checkpoint`, and restore preserved models."""
        self.growth.rollback()
        self.undo.rollback()
        self.lives.rollback()
        self.warned.rollback()

    def join(self, quota: ModelQuota, memory: ModelMemory | None = None) -> None:
        """Count the models among the models of a worker (`memory` None: its memory has no limit)."""
        self.keys.join(quota)
        self.cache.join(memory or ModelMemory(), self.keys)

    def close(self) -> None:
        """Return the memory and places of the models."""
        self.keys.close()
        self.cache.close()

    # -- inside ---------------------------------------------------------------------------------------------

    def _new_model(self, spec: Spec, schema: Schema) -> Model | None:
        """Return a new model, for which a place in the quota is taken; None: no place is left."""
        if not self.keys.quota.take():
            return None
        try:
            return self.templates.new_model(spec, schema)
        except BaseException:
            self.keys.quota.give_back()
            raise

    def _add(self, key: str, model: Model, *, challenges: bool = False) -> int:
        """Add a model, whose place in the quota is taken, and return its slot; challenges: a challenger."""
        slot = self.table.add(model)
        capacity = self.traits.reserve(slot)
        self.changes.reserve(capacity)
        self.cache.reserve(capacity)
        self.cache.entered(slot)
        if challenges:
            self.keys.enter_challenger(key, slot)
        else:
            self.keys.enter(key, slot)
        return slot

    def _will_change(self, slot: int) -> None:
        self.undo.preserve([slot])
        self.changes.touch(np.array([slot]))

    def _begin(self, slot: int, schema: Schema) -> None:
        """Describe a model that has processed nothing: a new life."""
        model = self.cache.peek(slot)
        is_open = schema.open_attributes and model.takes_attributes
        facts = ModelFacts(schema.declared_classes, is_open, False, self.lives.begin())
        self.traits.describe(slot, model.spec, schema, facts)

    def _end(self, slot: int) -> None:
        """End the life of a model: another model takes its place, or none."""
        kind = CHALLENGER if slot in self.traits.challenges else MODEL
        self.lives.end(UnitName(kind, self.keys[slot], int(self.traits.incarnation[slot])))
        self.warned.discard(slot)

    def _goes_on(self, name: UnitName) -> bool:
        find = self.keys.challenger if name.kind == CHALLENGER else self.keys.slot
        slot = find(name.key)
        return slot != NO_MODEL and self.traits.incarnation.item(slot) == name.incarnation
