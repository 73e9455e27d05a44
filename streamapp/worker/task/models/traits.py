"""Model traits: the task's data about each model, as columns by slot.

The schemas here include their latest growth, which a model may not have yet (schema_growth.py).
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from core.schema.schema import Schema
from core.spec import Spec
from streamapp.worker.task.models.challenge import Challenge
from streamapp.worker.task.models.families import Families

Ints32 = npt.NDArray[np.int32]
Ints64 = npt.NDArray[np.int64]

_FIRST_CAPACITY: Final = 16
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
    "publishes",
    "incarnation",
    "since",
)


class ModelFacts(NamedTuple):
    """The traits of a model that follow neither from its spec nor from its schema."""

    known_classes: int
    open: bool
    frozen: bool
    incarnation: int
    since: int = 0
    challenge: Challenge | None = None


class ModelTraits:
    """Columns by slot."""

    def __init__(self) -> None:
        self.schema_uid = np.zeros(_FIRST_CAPACITY, dtype=np.int64)
        self.columns_uid = np.zeros(_FIRST_CAPACITY, dtype=np.int64)
        self.known_classes = np.zeros(_FIRST_CAPACITY, dtype=np.int32)  # declared, or learned a label of
        self.width = np.zeros(_FIRST_CAPACITY, dtype=np.int32)  # attributes
        self.n_classes = np.zeros(_FIRST_CAPACITY, dtype=np.int32)
        self.open = np.zeros(_FIRST_CAPACITY, dtype=np.bool_)  # adds new features: nothing has split yet
        self.frozen = np.zeros(_FIRST_CAPACITY, dtype=np.bool_)
        self.counts_records = np.zeros(_FIRST_CAPACITY, dtype=np.bool_)  # refuses weights other than 1
        self.acquires = np.zeros(_FIRST_CAPACITY, dtype=np.bool_)  # buys features before it answers
        self.publishes = np.zeros(_FIRST_CAPACITY, dtype=np.bool_)  # calibrates, or answers sets
        self.has_acquired = False  # whether there was ever a model that buys features
        self.incarnation = np.zeros(_FIRST_CAPACITY, dtype=np.int64)  # number of its life (lives.py)
        self.since = np.zeros(_FIRST_CAPACITY, dtype=np.int64)  # earlier pending instances had another model
        self.state_version = 0  # the highest that a model here has needed
        self.challenges: dict[int, Challenge] = {}  # of challengers; `set_challenge` changes them
        self.decided: set[int] = set()  # challengers whose challenges are decided: each run looks at these
        self.families = Families(self._plain_schema)
        self._schemas: dict[int, Schema] = {}
        self._latest_spec: Spec | None = None

    def reserve(self, slot: int) -> int:
        """Make room for a slot, and return the capacity; new slots come in ascending order."""
        if slot == len(self.frozen):
            for name in _COLUMNS:
                column = getattr(self, name)
                setattr(self, name, np.concatenate((column, np.zeros_like(column))))
            self.families.reserve(len(self.frozen))
        return len(self.frozen)

    def schema(self, slot: int) -> Schema:
        """Return the schema of a model, including its latest growth."""
        return self._schemas[slot]

    def facts(self, slot: int) -> ModelFacts:
        """Return the facts about a model."""
        return ModelFacts(
            int(self.known_classes[slot]),
            bool(self.open[slot]),
            bool(self.frozen[slot]),
            int(self.incarnation[slot]),
            int(self.since[slot]),
            self.challenges.get(slot),
        )

    def describe(self, slot: int, spec: Spec, schema: Schema, facts: ModelFacts) -> None:
        """Set all columns of a slot."""
        self.counts_records[slot] = spec.learner.unit_weights
        self.known_classes[slot], self.open[slot], self.frozen[slot], self.incarnation[slot] = facts[:4]
        self.since[slot] = facts.since
        self.set_challenge(slot, facts.challenge)
        self.set_schema(slot, schema)
        self.set_spec(slot, spec)

    def set_schema(self, slot: int, schema: Schema) -> None:
        """Set the columns that follow from a model's schema."""
        self._schemas[slot] = schema
        self.schema_uid[slot] = schema.uid
        self.columns_uid[slot] = schema.columns.uid
        self.width[slot] = schema.n_attributes
        self.n_classes[slot] = schema.n_classes
        self.families.forget(slot)

    def set_spec(self, slot: int, spec: Spec) -> None:
        """Set the columns that the configuration of a living model can change."""
        self.acquires[slot] = spec.acquirer is not None
        self.publishes[slot] = spec.calibration is not None or spec.conformal is not None
        self.has_acquired = self.has_acquired or spec.acquirer is not None
        if spec is not self._latest_spec:  # most models have the same, and its version is looked up by a hash
            self.state_version = max(self.state_version, spec.state_version)
            self._latest_spec = spec
        self.families.forget(slot)

    def set_frozen(self, slot: int, frozen: bool) -> None:
        """Set whether a model only answers."""
        self.frozen[slot] = frozen
        self.families.forget(slot)

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

    def forget(self, slot: int) -> None:
        """Forget the schema of a slot whose model leaves the table."""
        self._schemas.pop(slot, None)
        self.set_challenge(slot, None)

    def set_challenge(self, slot: int, challenge: Challenge | None) -> None:
        """Set the challenge of a challenger, None: the model in the slot is no challenger."""
        if challenge is None:
            self.challenges.pop(slot, None)
        else:
            self.challenges[slot] = challenge
            self.state_version = max(self.state_version, challenge.terms.spec.state_version)
        if challenge is not None and challenge.is_decided:
            self.decided.add(slot)
        else:
            self.decided.discard(slot)

    def _plain_schema(self, slot: int) -> Schema | None:
        """Return the schema of a model that may have a family (families.py)."""
        is_special = self.frozen[slot] or self.counts_records[slot] or self.acquires[slot]
        if is_special or self.publishes[slot] or self.known_classes[slot] < self.n_classes[slot]:
            return None
        return self._schemas[slot]
