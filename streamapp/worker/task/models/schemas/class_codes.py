"""Class codes: class names of a run to the codes of each model's schema."""

from __future__ import annotations

import numpy as np

from core.errors import SchemaError, TooManyClassesError
from streamapp.worker.task.models.model_keys import NO_MODEL
from streamapp.worker.task.models.schema_growth import SchemaGrowth
from streamapp.worker.task.models.traits import ModelTraits
from topics.columns.distinct import distinct
from topics.columns.records import Ints32, Ints64
from topics.errors import Reason


class RefusedClassError(Exception):
    """Raised for a class that a model does not add to its schema."""

    def __init__(self, reason: Reason, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason
        self.detail = detail


class ClassCodes:
    """Codes of the class names of one run; `names` may grow while it is used."""

    def __init__(self, traits: ModelTraits, growth: SchemaGrowth, names: list[str]) -> None:
        self.names = names
        self._traits, self._growth = traits, growth

    def known(self, slots: Ints64, key: Ints32, label: Ints32) -> Ints32:
        """Return int32[n]: the code of each label in its model's schema; -1 for unknown classes and no label.

        slots: int64[k] models, NO_MODEL where no row has one; key: int32[n] into slots; label: int32[n] into
        `names`, -1 none.
        """
        if not self.names or not len(label):
            return np.full(len(label), -1, dtype=np.int32)
        slots = np.where(slots == NO_MODEL, slots.max(), slots)
        uids = self._traits.schema_uid[slots]
        if np.count_nonzero(uids == uids[0]) == len(uids):
            return self._of_schema(int(slots[0]))[label]
        first, schema = distinct(uids)
        codes = np.array([self._of_schema(slot) for slot in slots[first].tolist()])
        code: Ints32 = codes[schema[key], label]
        return code

    def admit(self, slot: int, name: str) -> int:
        """Return the code of a class, which the model's schema adds if it can; else RefusedClassError."""
        schema = self._traits.schema(slot)
        code = schema.class_code(name)
        if code >= 0:
            return code
        try:
            schema = schema.with_class(name)
        except TooManyClassesError as error:
            raise RefusedClassError(Reason.TOO_MANY_CLASSES, str(error)) from error
        except SchemaError as error:
            raise RefusedClassError(Reason.WRONG_SCHEMA, str(error)) from error
        self._growth.grow(slot, schema)
        return schema.class_code(name)

    def _of_schema(self, slot: int) -> Ints32:
        """Return the code of every name, followed by -1: the element at index -1 (no label)."""
        schema = self._traits.schema(slot)
        return np.array([*map(schema.class_code, self.names), -1], dtype=np.int32)
