"""The learners that are no trees, and the kappas, do what MOA's did: to the digit.

The golden file holds the side of MOA (``python -m tests.golden.renew baselines``).
"""

import json
from pathlib import Path

import numpy as np
import pytest

from benchmarks.datasets import GENERATED, REAL, MissingDatasetError, load
from core.model.model import Model
from core.model_table import ModelTable
from core.schema.schema import Attribute, Schema
from core.spec import Spec
from tests.golden.renew import BASELINES, EVERY, LAST, RECORDS, WINDOW, crc

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "moa_baselines.json").read_text(encoding="utf-8"))
STREAMS = (*GENERATED, *REAL)
KAPPAS = ("accuracy", "kappa", "kappa_temporal", "kappa_m")


def rows_of(stream):
    try:
        return load(stream, RECORDS)
    except MissingDatasetError as error:
        pytest.skip(str(error))


def table_of(rows, learner):
    attributes = [
        Attribute(f"a{i}") if n is None else Attribute(f"a{i}", "nominal", tuple(map(str, range(n))))
        for i, n in enumerate(rows.attributes)
    ]
    schema = Schema.of(attributes, tuple(map(str, range(rows.classes))))
    spec = {"learner": learner, "evaluation": {"window": WINDOW, "every": 0}}
    table = ModelTable()
    table.add(Model.create(Spec.parse(spec), schema))
    return table


@pytest.mark.parametrize("learner", BASELINES)
@pytest.mark.parametrize("stream", STREAMS)
def test_the_answers_of_moa(stream, learner):
    rows, golden = rows_of(stream), GOLDEN[stream][learner]
    name = {"name": learner, "compat": "moa"} if learner == "naive-bayes" else learner
    table, n = table_of(rows, name), len(rows.y)
    answers = table.answer(np.zeros(n, dtype=np.int64), rows.x, rows.y, np.ones(n))
    predictions = answers.prediction.copy()
    if learner == "no-change":  # MOA says class 0 before the first label
        assert predictions[0] == -1
        predictions[0] = 0
    assert crc(predictions) == golden["predictions"]
    assert answers.probability[-LAST:] == pytest.approx(np.array(golden["votes"]), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("learner", BASELINES)
@pytest.mark.parametrize("stream", STREAMS)
def test_the_kappas_of_moa(stream, learner):
    """Over all records and over the window, with its own notion of both baselines."""
    rows, golden = rows_of(stream), GOLDEN[stream][learner]
    name = {"name": learner, "compat": "moa"} if learner == "naive-bayes" else learner
    table = table_of(rows, name)
    for point in golden["measures"]:
        part = slice(int(point[0]) - EVERY, int(point[0]))
        n = len(rows.y[part])
        answers = table.answer(np.zeros(n, dtype=np.int64), rows.x[part], rows.y[part], np.ones(n))
        assert answers.prediction[n - 1] >= 0
        evaluation = table.model(0).evaluation()
        ours = [getattr(evaluation, name + suffix) for suffix in ("", "_windowed") for name in KAPPAS]
        point = np.nan_to_num(point, neginf=0.0).tolist()  # a baseline that is always right: MOA divides by 0
        if learner == "no-change":  # whose first prediction is MOA's alone: it counts one more record
            assert ours == pytest.approx(point[1:], abs=4.0 / point[0])
        else:
            assert ours == pytest.approx(point[1:], rel=1e-9, abs=1e-12)
    assert len(golden["measures"]) == len(rows.y) // EVERY


def test_naive_bayes_with_logarithms_says_the_same_where_nothing_underflows():
    rows = load("sea", RECORDS)
    answers = []
    for compat in (None, "moa"):
        table, n = table_of(rows, {"name": "naive-bayes", "compat": compat}), len(rows.y)
        answers.append(table.answer(np.zeros(n, dtype=np.int64), rows.x, rows.y, np.ones(n)))
    later = slice(100, None)  # at first a class has one value, whose density elsewhere is 0
    assert np.array_equal(answers[0].prediction[later], answers[1].prediction[later])
    assert answers[0].probability[later] == pytest.approx(answers[1].probability[later], abs=1e-6)
