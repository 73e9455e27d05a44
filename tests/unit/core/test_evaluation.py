import numpy as np
import pytest

from core.numeric.proportions import wilson
from core.schema.schema import Attribute, Schema
from tests.naive.evaluation import Evaluation as NaiveEvaluation
from tests.unit.core.builders import spec_of, table_of


def judge(pairs, window=1000, classes=2):
    """Return the evaluation of (label, prediction) pairs."""
    names = [str(c) for c in range(classes)]
    schema = Schema.of([Attribute("x")], names, max_classes=max(classes, 64))
    table = table_of(schema, spec_of(evaluation={"window": window}))
    feed(table, pairs)
    return table.model(0).evaluation()


def feed(table, pairs):
    label, predicted = np.array(pairs, dtype=np.int32).T
    n = len(label)
    zeros = np.zeros(n, dtype=np.int64)
    table.learn(zeros, np.zeros((n, 1)), label, np.ones(n), predicted, np.zeros(n, dtype=np.bool_))


def test_accuracy_is_the_running_mean():
    """Outcomes 1, 0, 1, 1 give 0.75."""
    assert judge([(1, 1), (0, 1), (1, 1), (0, 0)]).accuracy == 0.75


def test_f1_of_the_rarer_class():
    """TP=30, FP=20, FN=10 give 0.666667."""
    pairs = [(1, 1)] * 30 + [(0, 1)] * 20 + [(1, 0)] * 10 + [(0, 0)] * 40
    assert judge(pairs).f1_rarer == pytest.approx(2 / 3)


def test_kappa():
    pairs = [(0, 0)] * 20 + [(0, 1)] * 5 + [(1, 0)] * 10 + [(1, 1)] * 15
    assert judge(pairs).kappa == pytest.approx(0.4)
    assert judge([(0, 0)] * 9).kappa == 0.0


@pytest.mark.parametrize("classes", [2, 3, 4, 5, 17, 300])
@pytest.mark.parametrize("window", [1, 7, 64, 100])
def test_the_window_forgets_exactly(classes, window):
    rng = np.random.default_rng(classes)
    label = rng.integers(0, classes, 250)
    prediction = np.where(rng.random(250) < 0.5, label, rng.integers(0, classes, 250))
    found = judge(np.column_stack([label, prediction]), window, classes)
    naive = NaiveEvaluation(window)
    for pair in zip(label.tolist(), prediction.tolist(), strict=True):
        naive.judge(*pair)
    for measure in ("accuracy", "kappa", "kappa_m", "kappa_temporal", "f1_rarer"):
        assert getattr(found, measure) == pytest.approx(getattr(naive, measure)(), abs=1e-12)
        assert getattr(found, f"{measure}_windowed") == pytest.approx(
            getattr(naive, measure)(True), abs=1e-12
        )


def test_the_window_survives_new_classes():
    """From two classes to seventeen a code grows from one bit to two, four and eight."""
    schema = Schema.of([Attribute("x")]).with_class("0").with_class("1")
    table = table_of(schema, spec_of(evaluation={"window": 50}))
    rng = np.random.default_rng(1)
    pairs = []
    for classes in (2, 3, 5, 17):
        while schema.n_classes < classes:
            schema = schema.with_class(str(schema.n_classes))
        table.model(0).adopt(schema)
        table.refresh(0)
        pairs.append(rng.integers(0, classes, (40, 2)))
        feed(table, pairs[-1])
        expected = judge(np.concatenate(pairs), 50, classes)
        assert table.model(0).evaluation() == expected


@pytest.mark.parametrize("n", [1, 7, 2000, 123_457])
def test_an_interval_holds_its_own_share(n):
    for hits in (0, 1, n // 3, n):
        low, high = wilson(hits, n)
        assert 0.0 <= low <= hits / n <= high <= 1.0
