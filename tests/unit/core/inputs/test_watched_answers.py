"""The rows of the answer that an input detector watches are those of the answer that is published."""

import numpy as np
import pytest

from core.inputs.input.rows import CLASS, LARGEST
from core.layout.inputs import COUNTING, FIRST_ROW, SAMPLING, FeatureRow, row_words
from core.spec import Spec
from tests.unit.core.builders import answer, schema_of, table_of

BINS, CATEGORIES = 5, 4 * 5
SAMPLE = 8 * BINS


def row_of(model, number):
    """Return a row of the answer."""
    state = model.header.input_state(model.plan.record)
    return FeatureRow(state.ints, state.floats, state.start + FIRST_ROW + number * row_words(BINS))


@pytest.mark.parametrize("calibration", [None, "platt", "isotonic"])
@pytest.mark.parametrize("are_cut", [False, True])
def test_the_probability_and_the_class_of_the_answer_are_watched(calibration, are_cut):
    """Labels of one record in three are wrong, and a class is rare: calibration changes the answers."""
    random = np.random.default_rng(3)
    n = 600
    x = random.normal(size=(n, 2))
    y = np.where(random.random(n) < 0.35, random.integers(0, 3, n), (x[:, 0] > 0.3).astype(int))
    spec = {"learner": "naive-bayes", "evaluation": {"every": 0}}
    if calibration:
        spec["calibration"] = calibration
    plain = Spec.parse(spec)
    watched = {"name": "input", "scores": True, "bins": BINS, "window": 60, "reference": 150}
    table = table_of(schema_of(None, None, classes=("a", "b", "c")), plain)
    model = table.model(0)
    answer(table, x, y)
    model.configure(Spec.parse(spec | {"drift": [watched]}))
    table.refresh(0)
    x = random.normal(size=(SAMPLE + 100, 2))
    ends = [*range(1, SAMPLE + 1), len(x)] if are_cut else [SAMPLE, len(x)]
    first, largest, classes = 0, [], []
    for end in ends:
        answers = answer(table, x[first:end])
        predictions = answers.prediction
        shares = answers.probability[:, :3]
        assert (shares.argmax(axis=1) == predictions).all()
        largest += shares.max(axis=1).tolist()
        classes += predictions.tolist()
        first = end
        if end == SAMPLE:
            state = model.header.input_state(model.plan.record)
            assert (state.phase, state.records) == (SAMPLING, SAMPLE)
            row = row_of(model, LARGEST)
            assert row.values == SAMPLE
            assert row.numbers[:SAMPLE].tolist() == largest
    assert model.header.input_state(model.plan.record).phase == COUNTING
    counts = row_of(model, CLASS).counts[1:CATEGORIES].tolist()
    assert counts[:3] == np.bincount(classes[SAMPLE:], minlength=3).tolist()
    row = row_of(model, LARGEST)
    edges = row.numbers[: BINS - 1].tolist()
    cells = np.searchsorted(edges, largest[SAMPLE:])
    assert row.counts[BINS - 1 : 2 * BINS - 1].tolist() == np.bincount(cells, minlength=BINS).tolist()
