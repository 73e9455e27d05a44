"""Small models and runs for the tests of core."""

from __future__ import annotations

import importlib

import numpy as np

from core import registry
from core.kernels.records import Words
from core.layout.learning import LEAVES
from core.learners.forest.learner import Forest
from core.learners.hoeffding.learner import HoeffdingLearner
from core.model.model import Model
from core.model_table import LABELLED, ModelTable
from core.schema.schema import Attribute, Schema
from core.spec import Spec

TREES = [
    name
    for name in registry.names("learners")
    if issubclass(registry.plugin("learners", name), HoeffdingLearner)
]
"""The learners of the Hoeffding family; the others have none of its axes."""

FORESTS = [
    name for name in registry.names("learners") if issubclass(registry.plugin("learners", name), Forest)
]
"""The learners whose members are trees of that family."""

QUERIES = [
    name for name in registry.names("queries") if not registry.plugin("queries", name)().columns & LEAVES
]
"""The query strategies that go with every learner; the others need a table of leaves, as boct has one."""


def detector_of(plugin):
    """Return a function from the next error to the level of a new detector, and the words of its state."""
    module = importlib.import_module(type(plugin).__module__)
    body = getattr(module.update, "py_func", module.update)
    declared = body.__globals__.get(body.__annotations__.get("state"), Words)
    words = np.array([*plugin.initial(), 0.0])
    p, state = plugin.record().over(np.array([*plugin.constants(), 0.0])), declared.over(words)
    return lambda error: int(module.update(p, state, float(error))), words


def learner_for(query):
    """Return a learner that a query strategy goes with."""
    return "h-tree" if query in QUERIES else "boct"


def schema_of(*kinds, classes=("a", "b")):
    """Return a schema: None is a numeric attribute, a number a nominal one with so many values."""
    attributes = [
        Attribute(f"x{i}") if size is None else Attribute(f"x{i}", "nominal", tuple(map(str, range(size))))
        for i, size in enumerate(kinds)
    ]
    return Schema.of(attributes, classes)


def spec_of(leaf_model="mc", query="always", budget=None, drift="none", evaluation=None, seed=1, **learner):
    """Return a spec; other names are parameters of the learner."""
    return Spec.parse(
        {
            "learner": {"name": "h-tree", "leaf_model": leaf_model, **learner},
            "query": query,
            "budget": budget or {"name": "count"},
            "drift": drift,
            "evaluation": evaluation or {"every": 0},
            "seed": seed,
        }
    )


def table_of(schema, spec=None, models=1):
    """Return a table of new models."""
    table = ModelTable()
    for _ in range(models):
        table.add(Model.create(spec or spec_of(), schema))
    return table


def answer(table, x, label=None, weight=None, mode=LABELLED, model=0):
    """Answer rows of one model; label and weight may be left out."""
    x = np.atleast_2d(np.asarray(x, dtype=np.float64))
    n = len(x)
    label = np.full(n, -1) if label is None else np.asarray(label)
    weight = np.ones(n) if weight is None else np.asarray(weight, dtype=np.float64)
    return table.answer(np.full(n, model, dtype=np.int64), x, label.astype(np.int32), weight, mode)


def halves(n=3000, seed=0, columns=3):
    """Return records whose first column alone decides the class, without noise."""
    x = np.random.default_rng(seed).random((n, columns))
    return x, (x[:, 0] > 0.5).astype(np.int32)
