"""Families: models with the same columns and without special conditions; one kernel finds them.

The models of a family may have different classes, or the same classes in another order: each list of classes
is a *class order* of it, and all orders of the same classes are of one *kind*. A model has no family as long
as it is frozen, counts records, buys features, calibrates its probabilities, answers sets, or has classes of
which it has learned no label yet. The family of a model is determined when a run needs it, and forgotten
whenever something about the model changes.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import repeat
from typing import Final, NamedTuple

import numpy as np

from core.kernels import jit
from core.kernels.jit import kernel, row_of, start_of
from core.schema.schema import Schema
from streamapp.worker.task.models.class_order import ClassOrder
from topics.columns.records import Ints32, Ints64

OPEN: Final = -1  # of a model whose family is not determined yet
NONE: Final = -2  # of a model without a family
MIXED: Final = -3  # of models of several families or kinds; or a model has not learned a class
ORDER_BITS: Final = 24
MAX_CELLS: Final = 1 << 18
"""Classes of all orders that are kept: 6 MB."""
MAX_CODES: Final = 64
"""The most lists of class names whose codes a family keeps."""
MAX_CODED: Final = 1 << 10
"""The most codes (orders times names) of such a list. In small runs most lists are new, and more codes would
take longer than the general way, which looks only at the models of a run.
"""

_FIRST_CAPACITY: Final = 16


class Kind:
    """The class orders of a family that have the same K classes."""

    def __init__(self, classes: tuple[str, ...]) -> None:
        """classes: in the order of their names."""
        self.classes = classes
        self.moved = False
        """Whether a schema has the classes in another order than the order of their names."""
        self.columns: Ints64 = np.zeros((1, len(classes)), dtype=np.int64)
        """int64[at least orders, K]: where each class is in the schema."""
        self.codes: Ints32 = np.zeros((1, len(classes) + 1), dtype=np.int32)
        """int32[at least orders, K + 1]: the number in this kind of each class of a schema; the last is -1.
        """
        self._orders = 0

    def add(self, order: ClassOrder) -> int:
        """Return the number of a new order."""
        number = self._orders
        self._orders += 1
        if number == len(self.columns):
            self.columns = np.concatenate((self.columns, self.columns))
            self.codes = np.concatenate((self.codes, self.codes))
        self.columns[number], self.codes[number] = order.columns, order.codes
        self.moved = self.moved or order.moved
        return number


class Family:
    """The models that have the same columns."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.kinds: list[Kind] = []
        self.kind: Ints64 = np.zeros(1, dtype=np.int64)
        """int64[at least orders]: index in `kinds` of the kind of each order."""
        self.within: Ints64 = np.zeros(1, dtype=np.int64)
        """int64[at least orders]: number of each order in its kind."""
        self._orders: list[tuple[str, ...]] = []
        self._by_classes: dict[tuple[str, ...], int] = {}
        self._by_names: dict[tuple[str, ...], int] = {}
        self._codes: dict[tuple[str, ...], Ints32] = {}

    def order(self, classes: tuple[str, ...]) -> int:
        """Return the number of the class order of a schema."""
        number = self._by_classes.get(classes)
        if number is None:
            number = self._by_classes[classes] = len(self._orders)
            self._orders.append(classes)
            if number == len(self.kind):
                self.kind = np.concatenate((self.kind, self.kind))
                self.within = np.concatenate((self.within, self.within))
            order = ClassOrder.of(classes)
            kind = self._by_names.setdefault(order.classes, len(self.kinds))
            if kind == len(self.kinds):
                self.kinds.append(Kind(order.classes))
            self.kind[number], self.within[number] = kind, self.kinds[kind].add(order)
        return number

    def codes(self, names: list[str]) -> Ints32 | None:
        """Return int32[orders, names + 1]: the code of each class name, -1: unknown; the last is -1, too.

        None: the orders and names together are more than MAX_CODED codes.
        """
        if len(self._orders) * (len(names) + 1) > MAX_CODED:
            return None
        key = tuple(names)
        codes = self._codes.get(key)
        if codes is None or len(codes) < len(self._orders):
            if codes is None and len(self._codes) >= MAX_CODES:
                self._codes.clear()
            codes_before = np.empty((0, len(names) + 1), dtype=np.int32) if codes is None else codes
            rows = [
                [*map({name: code for code, name in enumerate(classes)}.get, names, repeat(-1)), -1]
                for classes in self._orders[len(codes_before) :]
            ]
            codes = self._codes[key] = np.concatenate((codes_before, np.array(rows, dtype=np.int32)))
        return codes


class Surveyed(NamedTuple):
    """The n rows of a run whose models are of one family."""

    model: Ints64  # int64[n] slot
    code: Ints32  # int32[n] class, -1: no label
    labels: int  # rows with a label
    kind: Kind | None  # the kind of all models; None: they have several
    order: Ints64  # int64[n]: number of the class order of each row's model in its kind


class FamilyRegister:
    """The families of the models of several partitions, which one thread uses."""

    def __init__(self) -> None:
        self.families: dict[int, Family] = {}  # by number
        self.generation = 0
        """How often all families were forgotten; their numbers are not given again."""
        self._by_columns: dict[int, Family] = {}
        self._by_schema: dict[int, int] = {}  # numbers of family and class order, by uid
        self._cells = 0
        self._begun = 0

    def member(self, schema: Schema) -> int:
        """Return the numbers of family and class order of the models of a schema in one integer."""
        member = self._by_schema.get(schema.uid)
        if member is None:
            self._cells += len(schema.classes) + 1
            if self._cells > MAX_CELLS:
                self._forget_all()
                self._cells = len(schema.classes) + 1
            family = self._by_columns.get(schema.columns.uid)
            if family is None:
                family = self._by_columns[schema.columns.uid] = Family(self._begun)
                self.families[self._begun] = family
                self._begun += 1
            member = (family.number << ORDER_BITS) | family.order(schema.classes)
            self._by_schema[schema.uid] = member
        return member

    def _forget_all(self) -> None:
        self.generation += 1
        self.families.clear()
        self._by_columns.clear()
        self._by_schema.clear()


class Families:
    """The families of a partition's models, by slot."""

    def __init__(self, schema_of: Callable[[int], Schema | None]) -> None:
        """schema_of: returns the schema of the model in a slot; None: the model has special conditions."""
        self._schema_of = schema_of
        self._of_slot = np.full(_FIRST_CAPACITY, OPEN, dtype=np.int64)
        self._latest: Family | None = None
        self.join(FamilyRegister())

    def join(self, register: FamilyRegister) -> None:
        """Share the families of other partitions of the worker from now on."""
        self.register = register
        self._forget_all()
        self._find_head()

    def reserve(self, capacity: int) -> None:
        """Make room for slots below `capacity`."""
        more = capacity - len(self._of_slot)
        if more > 0:
            self._of_slot = np.concatenate((self._of_slot, np.full(more, OPEN, dtype=np.int64)))
            self._find_head()

    def forget(self, slots: int | Ints64) -> None:
        """Note that one or more models have changed."""
        self._of_slot[slots] = OPEN

    def current(self) -> int:
        """Return the address of the members by slot, without those of families that are forgotten."""
        if self.generation != self.register.generation:
            self._forget_all()
        return self.head

    def survey(self, slots: Ints64, key: Ints32, names: list[str], label: Ints32) -> Surveyed | None:
        """Return the rows of a run, if all models are of one family and have learned all classes; else None.

        slots: int64[k], below 0: there is none; key: int32[n] into slots; label: int32[n] into names, -1:
        none. No model is about to grow.
        """
        self.current()
        surveyed: Surveyed | int = OPEN
        if self._latest is not None:
            surveyed = self._surveyed(self._latest, slots, key, names, label)
            if isinstance(surveyed, Surveyed):
                return surveyed
            if surveyed == NONE:
                return None
        if not len(slots) or slots.min() < 0:
            return None
        family = self.resolve(slots)
        if family is None or (family is self._latest and surveyed == MIXED):
            return None
        self._latest = family
        surveyed = self._surveyed(family, slots, key, names, label)
        return surveyed if isinstance(surveyed, Surveyed) else None

    def resolve(self, slots: Ints64) -> Family | None:
        """Return the family of all models (int64[k], at least one), None: they have none, or several."""
        for slot in slots[self._of_slot[slots] == OPEN].tolist():
            schema = self._schema_of(slot)
            member = NONE if schema is None else self.register.member(schema)
            self.current()  # the register may be full: earlier members count no longer
            self._of_slot[slot] = member
        families = self._of_slot[slots] >> ORDER_BITS
        if families[0] < 0 or np.count_nonzero(families == families[0]) < len(families):
            return None
        return self.register.families[int(families[0])]

    def _surveyed(
        self, family: Family, slots: Ints64, key: Ints32, names: list[str], label: Ints32
    ) -> Surveyed | int:
        codes, n = family.codes(names), len(key)
        if codes is None:
            return NONE
        model, code, order = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int32), np.empty(n, np.int64)
        kind = np.empty(1, dtype=np.int64)
        of_family = (family.number, codes, family.kind, family.within)
        labels = survey_rows(slots, key, label, self._of_slot, *of_family, model, code, order, kind)
        if labels < 0:
            return int(labels)
        number = kind.item(0)
        return Surveyed(model, code, labels, family.kinds[number] if number >= 0 else None, order)

    def _find_head(self) -> None:
        jit.register(self._of_slot)
        self.head: int = self._of_slot.ctypes.data
        """The address of the members by slot."""

    def _forget_all(self) -> None:
        self._of_slot[:] = OPEN
        self._latest = None
        self.generation = self.register.generation
        """How often the register had forgotten all families when these members were determined."""


@kernel(
    "int64(int64[::1], int32[::1], int32[::1], int64[::1], int64, int32[:, ::1], int64[::1], int64[::1],"
    " int64[::1], int32[::1], int64[::1], int64[::1])"
)
def survey_rows(slots, key, label, of_slot, family, codes, kinds, within, model, code, order, kind) -> int:
    """Write model, class and class order of each row; return the number of labels, or OPEN, NONE or MIXED.

    slots: int64[k], below 0: there is none; key: int32[n] into slots; label: int32[n] class name, -1: none.
    of_slot: int64, numbers of a model's family and class order, below 0: not determined.
    family: number of the family that all models must have; codes: int32[orders, names + 1], class codes;
    kinds, within: int64, kind of each class order and its number there.
    model: int64[n]; code: int32[n], -1: no label; order: int64[n], in its kind; kind: int64[1],
    MIXED: several.
    """
    for at in range(len(slots)):
        if slots[at] < 0:
            return NONE
        family_and_order = of_slot[slots[at]]
        if family_and_order < 0:
            return family_and_order
        if family_and_order >> ORDER_BITS != family:
            return MIXED
    keys, labels, models = start_of(key), start_of(label), start_of(model)
    own, orders = start_of(code), start_of(order)
    unnamed, n_labels, mask = codes.shape[1] - 1, 0, (1 << ORDER_BITS) - 1
    for row in range(len(key)):
        slot, name = slots[keys[row]], labels[row]
        where = of_slot[slot] & mask
        c = row_of(codes, where)[name if name >= 0 else unnamed]
        if name >= 0:
            if c < 0:
                return MIXED
            n_labels += 1
        if row == 0:
            kind[0] = kinds[where]
        elif kinds[where] != kind[0]:
            kind[0] = MIXED
        models[row], own[row], orders[row] = slot, c, within[where]
    return n_labels
