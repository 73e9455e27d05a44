"""Small models, one for each plug-in there is and some that meet others: what is mutated."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from core import registry
from core.layout.learning import LEAVES
from core.learners.hoeffding.learner import AXES, HoeffdingLearner
from core.model.model import Model
from core.model_table import ModelTable
from core.schema.schema import Attribute, Schema
from core.spec import Spec

ROWS = 160
UFFT = {"name": "ufft", "delta": 0.5, "tau": 0.5}
EAGER = {"grace_period": 20, "delta": 0.3, "tau": 0.3}
PATIENT = {"grace_period": 10, "delta": 1e-7, "tau": 0.0}
"""Attempts that fail: schedules have something to keep."""
FITTING = {"mcdiarmid": {"criterion": "gini"}}
"""What a plug-in goes with better than with the defaults."""

SIZES = {
    "exact": {"capacity": 8},
    "histogram": {"bins": 4, "warm_up": 10},
    "gaussian": {"candidates": 3},
}
"""Parameters that keep the models small."""

MEETINGS: dict[str, dict[str, Any]] = {
    "moa": {"learner": {**EAGER, "compat": "moa", "leaf_model": "nba"}, "drift": "ddm"},
    "moa-efdt": {"learner": {"name": "efdt", **EAGER, "compat": "moa", "revisit_period": 15}},
    "imac-nba": {"learner": {"name": "imac", **EAGER, "check_period": 10, "leaf_model": "nba"}},
    "imac-waits": {"learner": {"name": "imac", **PATIENT, "check_period": 6}},
    "imac-code-waits": {"learner": {"name": "imac", **PATIENT, "check_period": 6, "compat": "imac"}},
    "efdt-imac-waits": {"learner": {"name": "efdt_imac", **PATIENT, "delta": 1e-3, "check_period": 6}},
    "efdt-imac-watches": {
        "learner": {"name": "efdt_imac", **EAGER, "watched_nodes": "both", "check_period": 6}
    },
    "osm-waits": {"learner": {"name": "osm", **PATIENT}},
    "efdt-adwin": {"learner": {"name": "efdt", **EAGER, "revisit_period": 15}, "drift": "adwin"},
    "binary": {"learner": {**EAGER, "binary_splits": True, "leaf_model": "nb"}, "drift": "eddm"},
    "hat-adapts": {
        "learner": {"name": "hat", **EAGER, "drift_confidence": 0.9, "switch_records": 10},
        "drift": "ddm",
    },
    "arf-of-hats": {
        "learner": {
            "name": "arf",
            "members": 3,
            "member": {"name": "hat", **EAGER, "drift_confidence": 0.9, "switch_records": 10},
        }
    },
    "share": {
        "learner": EAGER,
        "query": "split",
        "budget": {"name": "window", "limit": 0.5, "window": 10, "respend": True},
        "evaluation": {"share": 0.2, "window": 12, "every": 7},
        "drift": {"name": "adwin", "clock": 4, "reaction": "reset"},
    },
    "curve": {"learner": EAGER, "evaluation": {"window": 9, "every": 0, "worth": 0.005}},
    "sets": {"learner": EAGER, "calibration": "platt", "conformal": {"alpha": 0.2}, "drift": "ddm"},
    "sets-isotonic": {
        "learner": EAGER,
        "calibration": "isotonic",
        "conformal": {"alpha": 0.2, "may_be_empty": False},
        "query": "set_size",
    },
    "explains": {"learner": EAGER, "explain": True, "query": {"name": "conf_tree"}},
    "halves": {"learner": {**EAGER, "leaf_model": "nba"}, "drift": "ddm"},
    "numeric": {"learner": {**EAGER, "leaf_model": "nba"}, "drift": "page_hinkley"},
    "boct-few-rows": {"learner": {"name": "boct", "capacity": 12}, "drift": "ddm", "query": "boct_al"},
    "boct-pool": {"learner": {"name": "boct", "sizes": "pool", "delta": 0.4}, "query": "boct_al"},
    "ufft-grows": {"learner": {**UFFT, "drift": {"name": "ddm", "drift": 2.2}}, "drift": "ddm"},
    "ufft-units": {"learner": {**UFFT, "leaf_model": "idbd", "memory": 30, "drift": "adwin"}},
    "ufft-no-bytes": {"learner": {**UFFT, "leaf_model": "mc", "max_bytes": 40_000}},
}
"""Plug-ins that meet; `halves` and `numeric` have schemas whose records are routed ahead."""


PARTS = {"query": "queries", "budget": "budgets", "drift": "drift", "calibration": "calibrators"}
"""Parts of a spec with plug-ins besides the learner, and their families."""


@functools.cache
def specs() -> dict[str, dict[str, Any]]:
    """Return, by name, a spec for each plug-in, all else default but eager to split; then the meetings."""
    specs: dict[str, dict[str, Any]] = {}
    for family in registry.FAMILIES:
        for name in registry.names(family):
            given = EAGER | FITTING.get(name, {}) | SIZES.get(name, {})
            axes = [axis for axis, its_family in AXES.items() if its_family == family]
            if family == "observers":
                axes = [f"{registry.plugin(family, name).kind}_observer"]
            for axis in axes:
                specs[f"{axis}={name}"] = {"learner": given | {axis: name}}
            if family == "learners":
                is_tree = issubclass(registry.plugin(family, name), HoeffdingLearner)
                specs[f"learner={name}"] = {"learner": (given if is_tree else {}) | {"name": name}}
            for part, its_family in PARTS.items():
                if family == its_family:
                    leafy = part == "query" and registry.plugin(family, name)().columns & LEAVES
                    specs[f"{part}={name}"] = {"learner": {"name": "boct"} if leafy else EAGER, part: name}
    return specs | MEETINGS


def schema_of(name: str, max_classes: int) -> Schema:
    """Return the schema of a combination: numbers between nominal attributes, an open one among them."""
    if name == "halves":
        return Schema.of([Attribute(f"h{i}", "nominal", ("no", "yes")) for i in range(4)], "ab")
    if name == "numeric":
        return Schema.of([Attribute("a"), Attribute("b")], "ab", classes_open=True)
    limits = (0.0, 1.0) if name == "learner=ufodt" else None
    attributes = [Attribute("c", "nominal", ("0", "1", "2")), Attribute("x", range=limits)]
    attributes += [
        Attribute("o", "nominal", open=True),
        Attribute("z"),
        Attribute("b", "nominal", ("0", "1")),
    ]
    schema = Schema.of(attributes, "ab", classes_open=True, max_classes=max_classes)
    return schema.with_values([(2, "0")]).with_values([(2, "1")]).with_values([(2, "2")])


def rows_of(schema: Schema, n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return records, with missing values, whose first two columns decide the class."""
    draw = np.random.default_rng(seed)
    x = np.empty((n, schema.n_attributes))
    for i, attribute in enumerate(schema.attributes):
        size = len(attribute.values)
        x[:, i] = draw.random(n) if attribute.kind == "numeric" else draw.integers(0, size, n)
    score = (x[:, 0] > 0.5).astype(np.int32) ^ (x[:, 1] > 0.6).astype(np.int32)
    x[draw.random(x.shape) < 0.05] = np.nan
    return x, score.astype(np.int32)


def make(name: str, rows: int = ROWS) -> Model:
    """Return the model of a combination after so many records, the last third of another concept."""
    body = {"evaluation": {"window": 9, "every": 0}} | specs()[name]
    spec = Spec.parse(body)
    schema = schema_of(name, spec.max_classes)
    table = ModelTable()
    index = table.add(Model.create(spec, schema))
    x, y = rows_of(schema, rows, 1)
    y[2 * rows // 3 :] ^= 1
    y[::3] = np.where(np.arange(len(y[::3])) % 2, y[::3], -1)
    table.answer(np.full(rows, index), x, y, np.ones(rows))
    return table.model(index)
