"""What every learner keeps that lets records buy the features of their path."""

import numpy as np
import pytest

from core import registry
from core.active.acquirers.base import ONE_REGION
from core.model.model import Model
from core.model_table import ANSWER_ONLY, ModelTable
from core.spec import Spec
from tests.naive.rows import mixed, two_classes
from tests.unit.core.builders import TREES

LEARNERS = [name for name in registry.names("learners") if registry.plugin("learners", name).has_paths]


def trained(name):
    learner = {"name": name, "grace_period": 25, "delta": 0.1, "tau": 0.2, "leaf_model": "mc"}
    if name == "last":  # splits where the error of a leaf changes: here at every small change
        learner |= {"delta": 1.0, "change_detector": "hddm_a", "change_confidence": 0.9}
    spec = Spec.parse({"learner": learner, "acquire": {"name": "path", "explore": 0.001}})
    stream = two_classes(1200) if spec.learner.max_classes == 2 else mixed(1200)
    table = ModelTable()
    index = table.add(Model.create(spec, stream.schema()))
    table.answer(np.full(len(stream.y), index), stream.x, stream.y, stream.weight)
    return table, index, stream


def bought(model, row, number):
    """Return what a record buys of a row that has everything, or lacks what it lacks."""
    acquirer = model.spec.acquirer
    x, unknown = np.full(len(row), np.nan), np.ones(len(row), dtype=np.bool_)
    words = acquirer.open(model, x, unknown, number, True)
    columns = []
    while (step := acquirer.step(model, words, x, unknown, np.inf)).features:
        (column,) = step.features
        assert unknown[column]
        unknown[column] = False
        x[column] = row[column]
        columns.append(column)
    assert step.stop == ONE_REGION
    return x, columns


def test_the_hoeffding_family_offers_it():
    assert set(LEARNERS) >= set(TREES)


@pytest.mark.parametrize("name", LEARNERS)
def test_what_the_path_buys_leads_where_the_whole_record_leads(name):
    table, index, stream = trained(name)
    model, spent = table.model(index), 0
    assert model.summary().nodes > 1
    for number, row in enumerate(stream.x[:150]):
        x, columns = bought(model, row, number)
        assert model.explain(x) == model.explain(row)
        tested = {branch.attribute for branch in model.explain(row)}
        assert {model.schema.names[column] for column in columns} >= tested
        spent += len(columns)
        whole, part = (
            table.answer(
                np.array([index]),
                cells[np.newaxis].copy(),
                np.array([-1], dtype=np.int32),
                np.ones(1),
                ANSWER_ONLY,
            )
            for cells in (row, x)
        )
        assert whole.prediction.tolist() == part.prediction.tolist()
    assert 0 < spent < 150 * len(stream.x[0]), "it buys something, and not everything"
