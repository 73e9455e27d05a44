"""ModelTable: many models that one compiled call processes; JoinedTables: models of several such tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from core.kernels import jit
from core.kernels.jit import kernel, words_at
from core.model.model import Model
from core.table_calls import ANSWER_ONLY as ANSWER_ONLY
from core.table_calls import LABELLED as LABELLED
from core.table_calls import NO_LABEL as NO_LABEL
from core.table_calls import ON_REQUEST as ON_REQUEST
from core.table_calls import Answers as Answers
from core.table_calls import TableCalls
from core.table_calls import unit_weight_rule as unit_weight_rule

FIRST_CAPACITY: Final = 16
COLUMNS: Final = ("_addresses", "_plans", "_columns", "_classes", "_prepared_at")
"""Columns of int64, whose addresses are the heads of a table."""


class ModelTable(TableCalls):
    """Models by index. The table keeps the buffers alive whose addresses the kernels get."""

    def __init__(self) -> None:
        super().__init__()
        self._models: list[Model | None] = []
        self._free: list[int] = []
        self._vacant: set[int] = set()  # indices whose models are elsewhere
        for name in COLUMNS:
            setattr(self, name, np.zeros(FIRST_CAPACITY, dtype=np.int64))
        self._counts_records = np.zeros(FIRST_CAPACITY, dtype=np.bool_)
        self.heads = self._find_heads()

    def __len__(self) -> int:
        return len(self._models) - len(self._free)

    def add(self, model: Model) -> int:
        """Add a model and return its index."""
        if self._free:
            index = self._free.pop()
            self._models[index] = model
        else:
            index = len(self._models)
            self._models.append(model)
            if index == len(self._addresses):
                for name in (*COLUMNS, "_counts_records"):
                    column = getattr(self, name)
                    setattr(self, name, np.concatenate((column, np.zeros(index, dtype=column.dtype))))
                self.heads = self._find_heads()
        self.refresh(index)
        return index

    def remove(self, index: int) -> None:
        """Remove a model, or a vacant place; its index may be used again."""
        if index in self._vacant:
            self._vacant.remove(index)
        else:
            self._clear(index)
        self._free.append(index)

    def vacate(self, index: int) -> Model:
        """Return a model and remove it, but keep its place. Rows of it are refused from now on."""
        model = self.model(index)
        self._clear(index)
        self._vacant.add(index)
        return model

    def occupy(self, index: int, model: Model) -> None:
        """Put a model into its vacant place."""
        if index not in self._vacant:
            msg = f"model={index} must be vacant to be occupied"
            raise IndexError(msg)
        self._vacant.remove(index)
        self._models[index] = model
        self.refresh(index)

    def model(self, index: int) -> Model:
        model = self._models[index] if 0 <= index < len(self._models) else None
        if model is None:
            why = "it is vacant; occupy it first" if index in self._vacant else "add one first"
            msg = f"model={index} must be the index of a model in the table: {why}"
            raise IndexError(msg)
        return model

    def _find_heads(self) -> list[int]:
        """Return the addresses of the columns; they change when the table grows."""
        columns = [getattr(self, name) for name in COLUMNS]
        for column in columns:
            jit.register(column)
        return [column.ctypes.data for column in columns]

    def moved(self, index: int, model: Model) -> None:
        """Update the address of a model's buffer after a decision."""
        self._addresses[index] = model.address

    def _clear(self, index: int) -> None:
        self.model(index)
        self._models[index] = None
        self.forget_preparation(index)
        self._addresses[index] = self._plans[index] = self._columns[index] = self._classes[index] = 0

    def refresh(self, index: int) -> None:
        """Update the address of a model's buffer: to be called after ``adopt`` on a model of the table."""
        model = self.model(index)
        self.forget_preparation(index)
        self._addresses[index] = model.address
        self._plans[index] = model.plan.address
        self._columns[index] = model.schema.n_attributes
        self._classes[index] = model.schema.n_classes
        self._counts_records[index] = model.spec.learner.unit_weights
        self._has_counted = self._has_counted or model.spec.learner.unit_weights
        self.has_reports = self.has_reports or bool(model.plan.record.publishes)


class JoinedTables(TableCalls):
    """Models of several tables, for calls with rows of all of them; its indices are 0..k-1.

    It is valid until one of the tables changes by other means than its own calls.
    """

    def __init__(
        self,
        tables: Sequence[ModelTable],
        table: npt.NDArray[np.int64],
        index: npt.NDArray[np.int64],
    ) -> None:
        """table: int64[k], the table of each model, as an index into `tables`; index: int64[k], in there."""
        super().__init__()
        self._tables, self._table, self._index = tables, table, index
        self.has_reports = any(own.has_reports for own in tables)
        columns = np.empty((len(COLUMNS), len(index)), dtype=np.int64)
        heads = np.array([own.heads for own in tables], dtype=np.int64)
        prepared = gather(heads, table, index, columns)
        self._addresses, self._plans, self._columns, self._classes, self._prepared_at = columns
        if prepared:
            self._forget_preparations()

    def model(self, index: int) -> Model:
        """Return a model; raise IndexError if its table has none at its index."""
        return self._tables[self._table[index]].model(int(self._index[index]))

    def slot(self, index: int) -> int:
        """Return the index of a model in its own table."""
        return int(self._index[index])

    def answer_into(
        self,
        answers: Answers,
        model: npt.NDArray[np.int64],
        x: npt.NDArray[np.float64],
        label: npt.NDArray[np.int32],
        weight: npt.NDArray[np.float64],
    ) -> None:
        """Answer n rows in LABELLED mode, as `ModelTable.answer` does.

        answers: columns of n rows, probability with zeros and with the classes of the model that has most.
        After an exception the rows before `reached` are done, and that row may have changed its model.
        """
        self._cursor = None
        rows = self._examine(model, x, label, weight)._replace(classes=answers.probability.shape[1])
        self._run(rows, answers, LABELLED)

    @property
    def reached(self) -> int:
        """The row at which the latest call ended; 0 if it was refused, so that no row was answered."""
        return 0 if self._cursor is None else int(self._cursor.row)

    @property
    def most_classes(self) -> int:
        """Largest number of classes of a model."""
        return int(self._classes.max())

    def moved(self, index: int, model: Model) -> None:
        """Update the address of a model's buffer here and in its own table."""
        self._addresses[index] = model.address
        self._tables[self._table[index]].moved(int(self._index[index]), model)

    def _forget_preparations(self) -> None:
        """Forget the preparations of models that were frozen once: rows of them may change them now."""
        for index in np.flatnonzero(self._prepared_at).tolist():
            self._tables[self._table[index]].forget_preparation(int(self._index[index]))
        self._prepared_at[:] = 0


@kernel("int64(int64[:, ::1], int64[::1], int64[::1], int64[:, ::1])")
def gather(heads, table, index, columns) -> int:
    """Copy the columns of models from their tables; return how many models are prepared.

    heads: int64[t, COLUMNS], addresses of the columns of each table; table, index: int64[k], the place of
    each model; columns: int64[COLUMNS, k], written.
    """
    n_prepared = 0
    for column in range(len(columns)):
        for model in range(len(index)):
            words, _ = words_at(heads[table[model], column])
            columns[column, model] = words[index[model]]
    for model in range(len(index)):
        n_prepared += columns[len(columns) - 1, model] != 0
    return n_prepared
