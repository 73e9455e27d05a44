"""A limit of bytes leaves a tree of an older release the room that it had.

``capped-8.bin`` was written by a release of state version 8: a tree under ``max_bytes`` after 60 records. In
``capped-8.json`` is what that release made of it after 400.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from core.errors import SchemaError
from core.model import validate
from core.model.model import Model
from core.model_table import ModelTable
from core.spec import Spec
from tests.unit.core.builders import answer, schema_of, table_of

GOLDEN = Path(__file__).parents[3] / "golden"
THEN: dict[str, Any] = json.loads((GOLDEN / "capped-8.json").read_text())
X = np.array([[(7 * i) % 40 / 40, (11 * i) % 40 / 40] for i in range(THEN["records"])])
LABEL = ((4 * X[:, 0]).astype(int) + (X[:, 1] > 0.5)) % 2


def capped(max_bytes: float) -> dict[str, Any]:
    learner = {"name": "h-tree", "leaf_model": "mc", "grace_period": 20, "delta": 0.1, "tau": 0.3}
    return {"learner": {**learner, "max_bytes": max_bytes}, "query": "always", "evaluation": {"every": 0}}


def leaves_at_the_end(table: ModelTable, start: int) -> tuple[int, bool]:
    answer(table, X[start:], LABEL[start:])
    model = table.model(0)
    validate.check(model)
    return model.summary().leaves, model.evaluation().growth_stopped


def test_a_tree_of_version_8_grows_to_its_limit_as_it_did() -> None:
    model = Model.restore((GOLDEN / "capped-8.bin").read_bytes())
    assert not model.spec.evaluation.per_class
    table = ModelTable()
    table.add(model)
    assert leaves_at_the_end(table, THEN["trained"]) == (THEN["leaves"], True)


def test_so_does_a_tree_that_a_journal_of_version_8_creates() -> None:
    spec = Spec.parse(capped(THEN["max_bytes"]), 8)
    assert leaves_at_the_end(table_of(schema_of(None, None), spec), 0) == (THEN["leaves"], True)


def test_a_model_that_version_8_could_just_hold_is_not_refused() -> None:
    least = 8 * table_of(schema_of(None, None), Spec.parse(capped(4000.0), 8)).model(0).ints.size
    for version in range(4, 9):
        table_of(schema_of(None, None), Spec.parse(capped(least + 100.0), version))
    rule = r"max_bytes=\d+ must be at least \d+, .* set evaluation.per_class to false, which saves \d+$"
    with pytest.raises(SchemaError, match=rule):
        table_of(schema_of(None, None), Spec.parse(capped(least + 100.0)))


def test_a_spec_of_version_8_keeps_the_measures_it_names_or_has_room_for() -> None:
    named = capped(1e5) | {"evaluation": {"per_class": True}}
    assert Spec.parse(named, 8).evaluation.per_class
    assert Spec.parse(capped(float(1 << 30)), 8).evaluation.per_class
    assert Spec.parse({"learner": "h-tree"}, 8).evaluation.per_class
    assert Spec.parse(capped(1e5)).evaluation.per_class
