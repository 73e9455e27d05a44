"""Everything that a worker does with a model: each of it must stay inside of the model's words."""

from __future__ import annotations

import numpy as np

from core import export
from core.errors import GroveError, SnapshotError
from core.model import validate
from core.model.model import Model
from core.model_table import ANSWER_ONLY, LABELLED, ON_REQUEST, ModelTable
from core.spec import Spec
from tests.fuzz.models import rows_of

ROWS = 8

PLAIN_ONLY = ("math domain error", "math range error", "Numerical result out of range")
"""What plain Python raises where compiled code goes on with what is not a number."""


def exercise(data: bytes) -> str:
    """Restore a model and use it in every way; return what became of it.

    "refused", or "used", or "misled": what was asked of it raised an error, which is allowed only to one
    whose words were sound but whose numbers were not. Whatever leaves the words of a model raises Hole.
    """
    try:
        model = Model.restore(data)
    except SnapshotError:
        return "refused"
    try:
        validate.check(model)
        is_valid = True
    except SnapshotError:
        is_valid = False
    try:
        use(model)
    except (ArithmeticError, ValueError, GroveError) as error:
        cause = error.__cause__ or error
        if not isinstance(cause, ArithmeticError | ValueError) or "convert float" in str(cause):
            raise
        if is_valid and not any(known in str(cause) for known in PLAIN_ONLY):
            raise
        return "misled"
    return "used"


def use(model: Model) -> None:
    """Answer, learn, grow, drift, explain, export, configure, save."""
    table = ModelTable()
    index = table.add(model)
    x, y = rows_of(model.schema, ROWS, 7)
    unit = model.spec.learner.unit_weights
    which, weight = np.full(ROWS, index), np.full(ROWS, 1.0 if unit else 2.0)
    table.answer(which, x, y, weight, ANSWER_ONLY)
    then = table.answer(which, x, y, weight, ON_REQUEST)
    asked = np.ones(ROWS, dtype=bool)
    kept = (then.sampled, then.importance, then.probability, then.report)
    table.learn(which, x, y, weight, then.prediction, asked, *kept)
    show(table.model(index))
    grow(table, index)
    model = table.model(index)
    x, y = rows_of(model.schema, 2 * ROWS, 8)
    y[::2] ^= 1  # another concept: detectors are to raise an alarm
    y[5] = model.schema.n_classes - 1
    which, weight = np.full(len(y), index), np.full(len(y), 1.0 if unit else 5.0)
    table.answer(which, x, y, weight, LABELLED)
    model = table.model(index)
    body = model.spec.to_dict()
    model.configure(Spec.parse(body | {"seed": 3, "query": "always", "budget": "count"}))
    table.refresh(index)
    table.answer(which, x, y, weight, LABELLED)
    show(table.model(index))
    Model.restore(table.model(index).snapshot())


def show(model: Model) -> None:
    """Ask a model for all that is shown of it."""
    model.summary()
    model.scale()
    model.evaluation()
    x, _ = rows_of(model.schema, 2, 9)
    for record in x:
        model.explain(record)
    model.predict({model.schema.names[0]: "0" if model.schema.attributes[0].kind == "nominal" else 1.0})
    export.to_text(model)
    export.to_document(model)
    export.to_dot(model)
    export.to_svg(model)


def grow(table: ModelTable, index: int) -> None:
    """Let the schema take in a class and a value."""
    model = table.model(index)
    schema = model.schema
    if schema.classes_open and schema.n_classes < schema.max_classes:
        schema = schema.with_class(f"new {schema.n_classes}")
    for position, attribute in enumerate(schema.attributes):
        if attribute.open:
            for name in ("more", "and more"):
                schema = schema.with_values([(position, name)])
    model.adopt(schema)
    table.refresh(index)
