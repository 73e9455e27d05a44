"""Prediction outside a stream: the answer to one record; nothing is counted or learned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from core.errors import SchemaError
from core.kernels import jit
from core.layout.learning import NO_CLASS
from core.layout.model import Floats, Ints, ModelHeader
from core.layout.published import RAW
from core.learners.protocol import workspace_of
from core.plan import Plan
from core.schema.schema import Schema
from core.tree.conditions import Branch

Cell = float | int | str | bool | None
Record = Mapping[str, Cell] | Sequence[Cell]
"""Features by name, or in the order of the schema; None: missing."""


@dataclass(frozen=True, slots=True)
class Prediction:
    """The answer to one record."""

    label: str | None
    """None: the model has learned no class yet."""
    probabilities: dict[str, float]
    """Probability of each class, in alphabetical order."""
    version: int
    """Labels the model has learned."""
    explanation: tuple[Branch, ...]
    """The branches that lead to the answer; empty: the tree is one leaf, or the learner is no tree."""


def predict(plan: Plan, ints: Ints, record: Record) -> Prediction:
    """Return the answer of a model's buffer; SchemaError if the record does not fit its schema."""
    schema = plan.schema
    x = place(schema, record)
    code, shares = _answer(plan, ints, x)
    model = ModelHeader.over(ints)
    names = schema.classes[: int(model.classes)]
    return Prediction(
        label=schema.classes[code] if code >= 0 else None,
        probabilities={name: float(shares[schema.class_code(name)]) for name in sorted(names)},
        version=int(model.labels),
        explanation=plan.blocks.explain(schema, ints, int(model.first), x),
    )


def place(schema: Schema, record: Record) -> Floats:
    """Return float64[d]: a record in the columns of a schema, as the kernels take it.

    Features that the schema does not have are ignored and unknown values count as missing, as in a worker
    whose schema must not grow.
    """
    x = np.full(schema.n_attributes, np.nan)
    if isinstance(record, Mapping):
        cells: list[Cell] = [record.get(name) for name in schema.names]
    else:
        cells = list(record)
        if len(cells) != schema.n_attributes:
            msg = (
                f"record has {len(cells)} values; it must have {schema.n_attributes}, one per attribute "
                "of the model"
            )
            raise SchemaError(msg)
    for column, cell in enumerate(cells):
        if cell is not None:
            x[column] = _value(schema, column, cell)
    return x


def _value(schema: Schema, column: int, cell: Cell) -> float:
    attribute = schema.attributes[column]
    if attribute.kind == "numeric":
        if isinstance(cell, str) or cell is None:
            msg = f"{attribute.name}={cell!r} must be a number; the model learned it as one"
            raise SchemaError(msg)
        return float(cell)
    if cell is None or cell != cell:  # NaN
        return np.nan
    code = schema.value_code(column, cell if isinstance(cell, str) else _digits(float(cell)))
    return code if code >= 0 else np.nan


def _digits(value: float) -> str:
    return str(int(value)) if value.is_integer() else repr(value)


def _answer(plan: Plan, ints: Ints, x: Floats) -> tuple[int, Floats]:
    """Return the class code and float64[K] shares."""
    from core import (
        run,
    )  # imported here: it compiles or loads kernels, for which only predictions wait

    k = plan.schema.n_classes
    prediction, probability = np.full(1, NO_CLASS, dtype=np.int32), np.zeros((1, max(k, 1)))
    workspace, log, prepared_at = workspace_of(len(x), k), run.log_of(k), np.zeros(1, dtype=np.int64)
    arrays = run.Run(
        addresses=np.array([ints.ctypes.data], dtype=np.int64),
        plans=np.array([plan.address], dtype=np.int64),
        prepared=prepared_at,
        model=np.zeros(1, dtype=np.int64),
        x=x.reshape(1, -1),
        label=np.full(1, -1, dtype=np.int32),
        weight=np.ones(1),
        prediction=prediction,
        probability=probability,
        report=np.full((1, RAW + probability.shape[1]), np.nan),
        asked=np.zeros(1, dtype=np.int8),
        sampled=np.zeros(1, dtype=np.int8),
        importance=np.zeros(1),
        version=np.zeros(1, dtype=np.int64),
        columns=workspace[0],
        scratch=workspace[1],
        votes=workspace[2],
        log=log,
        cursor=run.new_cursor().ints,
        rows=1,
        width=len(x),
        classes=probability.shape[1],
        entry_words=len(log) // run.LOG_ENTRIES,
        mode=run.ANSWER_ONLY,
    )
    prepared = None  # kept alive here: the kernel gets its address
    while reason := run.run(arrays):
        if reason == run.PREPARATION_DUE:
            prepared = preparation(plan, ints)
            prepared_at[0] = prepared.ctypes.data
        # A model that explains stops after each row; its path is found without the kernel.
    return int(prediction[0]), probability[0]


def preparation(plan: Plan, ints: Ints) -> Floats:
    """Return the values that a frozen block prepares for the kernels (BlockLayout.prepare)."""
    prepared: Floats = plan.blocks.prepare(ints, int(ModelHeader.over(ints).first))
    jit.register(prepared)
    return prepared
