"""Measures per class: figures against oracles, weights, bases, growth by classes, and intervals."""

import json
import math
from pathlib import Path

import numpy as np
import pytest

from core.active.label_account import NOT_SAMPLED, SAMPLED_FOR_EVALUATION
from core.layout.measures import MOST_CLASSES, MeasureSums
from core.model.model import Model
from core.schema.schema import Attribute, Schema
from tests.naive import measures as naive
from tests.unit.core.builders import answer, schema_of, spec_of, table_of

NAMES = "abcdefghij"


def drawn(n, classes, seed=1):
    """Return labels, predictions and class shares that are right more often than not."""
    draw = np.random.default_rng(seed)
    label = draw.integers(0, classes, n)
    scores = draw.normal(size=(n, classes)) + 1.5 * np.eye(classes)[label]
    shares = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    return label, shares.argmax(axis=1), shares


def judged(label, prediction, shares, sampled=None, importance=None, table=None, **evaluation):
    """Return a table whose model learned labels that came later, with its answers of then."""
    classes = shares.shape[1]
    spec = spec_of(query="never", evaluation={"every": 0, **evaluation})
    table = table or table_of(schema_of(None, classes=NAMES[:classes]), spec)
    n = len(label)
    table.learn(
        np.zeros(n, dtype=np.int64),
        np.zeros((n, 1)),
        label.astype(np.int32),
        np.ones(n),
        prediction.astype(np.int32),
        np.zeros(n, dtype=np.bool_),
        sampled,
        importance,
        shares,
    )
    return table


def check(found, label, prediction, shares, weight):
    """Compare all figures with the plain ones; weight: float64[n]."""
    k = shares.shape[1]
    cells = naive.confusion(label, prediction, weight, k)
    assert found.confusion == pytest.approx(cells)
    for c in range(k):
        assert found.classes[c].precision.value == pytest.approx(cells[c, c] / cells[:, c].sum())
        assert found.classes[c].recall.value == pytest.approx(cells[c, c] / cells[c].sum())
        both = cells[:, c].sum() + cells[c].sum()
        assert found.classes[c].f1.value == pytest.approx(2 * cells[c, c] / both)
        exact = naive.auc(label == c, shares[:, c], weight)
        assert abs(found.classes[c].auc.value - exact) <= found.classes[c].auc_error + 1e-12
        assert found.classes[c].auc.value == pytest.approx(exact, abs=0.01)
    total = cells.sum()
    chance = cells.sum(axis=0) @ cells.sum(axis=1) / total**2
    assert found.kappa.value == pytest.approx((cells.trace() / total - chance) / (1 - chance))
    assert found.balanced_accuracy.value == pytest.approx((cells.diagonal() / cells.sum(axis=1)).mean())
    assert found.log_loss.value == pytest.approx(np.average(naive.log_losses(label, shares), weights=weight))
    brier = np.average(naive.brier_scores(label, shares), weights=weight)
    assert found.brier.value == pytest.approx(brier / 2 if k == 2 else brier)
    error = naive.calibration_error(label, prediction, shares, weight)
    assert found.calibration_error.value == pytest.approx(error)
    for figure in (found.kappa, found.balanced_accuracy, found.log_loss, found.brier, found.auc):
        assert figure.low < figure.value < figure.high


@pytest.mark.parametrize("classes", [2, 3, 7])
def test_labels_without_known_chances_count_once(classes):
    label, prediction, shares = drawn(900, classes)
    found = judged(label, prediction, shares).model(0).measures()
    assert found.basis == "labels"
    check(found, label, prediction, shares, np.ones(900))


@pytest.mark.parametrize("classes", [2, 3, 7])
def test_labels_with_known_chances_are_weighted_with_their_importance(classes):
    label, prediction, shares = drawn(900, classes)
    importance = np.random.default_rng(2).choice([1.0, 2.5, 20.0], 900)
    found = judged(label, prediction, shares, importance=importance).model(0).measures()
    assert found.basis == "records"
    check(found, label, prediction, shares, importance)


def test_the_first_known_chance_begins_the_sums_again():
    label, prediction, shares = drawn(600, 3)
    importance = np.where(np.arange(600) < 200, 0.0, 4.0)
    importance[300:350] = 0.0  # not chosen by a strategy with known chances: left out
    found = judged(label, prediction, shares, importance=importance).model(0).measures()
    used = importance > 0
    check(found, label[used], prediction[used], shares[used], importance[used])


def test_with_a_reserved_share_only_reserved_records_count():
    label, prediction, shares = drawn(600, 2)
    sampled = np.where(np.arange(600) % 3 == 0, SAMPLED_FOR_EVALUATION, NOT_SAMPLED).astype(np.int8)
    importance = np.full(600, 7.0)
    table = judged(label, prediction, shares, sampled, importance, share=0.1)
    used = sampled == SAMPLED_FOR_EVALUATION
    check(table.model(0).measures(), label[used], prediction[used], shares[used], np.ones(200))


def test_labels_that_come_with_their_records_count_once():
    draw = np.random.default_rng(3)
    x = draw.random((2000, 3))
    label = (x[:, 0] > 0.5) ^ (draw.random(2000) < 0.2)
    table = table_of(schema_of(None, None, None), spec_of("nba"))
    answers = answer(table, x, label)
    found, ones = table.model(0).measures(), np.ones(2000)
    assert found.basis == "records"
    assert found.confusion == pytest.approx(naive.confusion(label.astype(int), answers.prediction, ones, 2))
    scored = answers.probability.sum(axis=1) > 0
    losses = naive.log_losses(label[scored].astype(int), answers.probability[scored])
    assert found.log_loss.value == pytest.approx(losses.mean())


@pytest.mark.parametrize("classes", [2, 3, 7])
def test_records_with_and_without_labels_of_their_own(classes):
    """Also before the first label, and with all confidences of the answers."""
    draw = np.random.default_rng(4)
    x = draw.random((3000, 3))
    noisy = np.clip(x[:, 0] + 0.3 * draw.normal(size=3000), 0.0, 0.999)
    label, given = (noisy * classes).astype(int), draw.random(3000) < 0.7
    given[:3] = False
    schema = schema_of(None, None, None, classes=NAMES[:classes])
    table = table_of(schema, spec_of("nba", query="never", evaluation={"every": 0}))
    answers = answer(table, x, np.where(given, label, -1))
    model, shares = table.model(0), answers.probability
    claims = np.where(answers.prediction < 0, 0.0, shares[np.arange(3000), answers.prediction])
    judged, used = given & (answers.prediction >= 0), given & (claims > 0.0)
    found, ones = model.measures(), np.ones(3000)
    cells = naive.confusion(label[judged], answers.prediction[judged], ones[judged], classes)
    assert found.confusion == pytest.approx(cells)
    assert found.log_loss.value == pytest.approx(naive.log_losses(label[used], shares[used]).mean())
    brier = naive.brier_scores(label[used], shares[used]).mean()
    assert found.brier.value == pytest.approx(brier / 2 if classes == 2 else brier)
    error = naive.calibration_error(label[used], answers.prediction[used], shares[used], ones[used])
    assert found.calibration_error.value == pytest.approx(error)
    for c in range(classes):
        exact = naive.auc(label[used] == c, shares[used, c], ones[used])
        assert found.classes[c].auc.value == pytest.approx(exact, abs=found.classes[c].auc_error + 1e-12)
    sums = MeasureSums.read(model.ints, model.plan.record.measures)
    assert sums.given == judged.sum()
    assert sums.answered == (claims > 0.0).sum()
    assert sums.confidence == pytest.approx(claims.sum())


def test_an_answer_whose_shares_are_not_known_counts_in_the_matrix_alone():
    label, prediction, shares = drawn(300, 3)
    forgotten = np.arange(300) % 2 == 0
    found = judged(label, prediction, np.where(forgotten[:, None], 0.0, shares)).model(0).measures()
    assert found.confusion.sum() == 300
    losses = naive.log_losses(label[~forgotten], shares[~forgotten])
    assert found.log_loss.value == pytest.approx(losses.mean())


@pytest.mark.parametrize("path", [(2, 3), (1, 2, 5), (2, 4, 9)])
@pytest.mark.parametrize("importance", [0.0, 2.5])
def test_a_class_that_comes_later_was_there_from_the_beginning(path, importance):
    """The words are equal, bit for bit, for any moment at which the schema took in the class."""
    grown = []
    for early in (False, True):
        schema = Schema.of([Attribute("x")])
        for name in NAMES[: path[-1] if early else path[0]]:
            schema = schema.with_class(name)
        table = table_of(schema, spec_of(query="never"))
        for classes in path:
            while not early and schema.n_classes < classes:
                schema = schema.with_class(NAMES[schema.n_classes])
            table.model(0).adopt(schema)
            table.refresh(0)
            label, prediction, shares = drawn(80, classes, seed=classes)
            judged(label, prediction, shares, None, np.full(80, importance), table)
        model = table.model(0)
        grown.append(model.ints[model.plan.record.measures :][: model.plan.record.measure_words])
    assert np.array_equal(*grown)


def test_beyond_the_matrix_the_figures_by_class_go_on():
    n, k = 2000, MOST_CLASSES + 8
    draw = np.random.default_rng(5)
    label = draw.integers(0, k, n).astype(np.int32)
    prediction = np.where(draw.random(n) < 0.7, label, draw.integers(0, k, n)).astype(np.int32)
    table = table_of(schema_of(None, classes=[f"c{c:02}" for c in range(k)]), spec_of(query="never"))
    zeros = np.zeros(n, dtype=np.int64)
    shares = np.full((n, k), 1.0 / k)
    no = np.zeros(n, dtype=np.bool_)
    table.learn(zeros, np.zeros((n, 1)), label, np.ones(n), prediction, no, None, None, shares)
    found = table.model(0).measures()
    assert found.confusion is None and np.isnan([found.log_loss.value, found.auc.value]).all()
    cells = naive.confusion(label, prediction, np.ones(n), k)
    recall = cells.diagonal() / cells.sum(axis=1)
    assert [each.recall.value for each in found.classes] == pytest.approx(recall.tolist())


def test_a_model_without_measures_has_none_and_is_smaller():
    with_them, without = (
        Model.create(spec_of(evaluation={"per_class": keep}), schema_of(None)) for keep in (True, False)
    )
    assert without.measures() is None
    assert 1000 < with_them.nbytes - without.nbytes < 1400


def test_a_model_is_configured_to_keep_measures_and_not_to():
    label, prediction, shares = drawn(100, 2)
    model = judged(label, prediction, shares).model(0)
    model.configure(spec_of(query="never", evaluation={"every": 0, "per_class": False}))
    assert model.measures() is None
    model.configure(spec_of(query="never", evaluation={"every": 0}))
    assert model.measures().confusion.sum() == 0


def test_figures_of_a_model_without_labels_are_not_defined():
    found = Model.create(spec_of(), schema_of(None)).measures()
    assert found is not None
    assert all(np.isnan(figure.value) for figure in (found.kappa, found.log_loss, found.auc, found.brier))
    assert np.isnan(found.classes[0].recall.value)


@pytest.mark.parametrize("classes", [2, 3])
def test_the_auc_is_right_where_shares_are_extreme_as_those_of_naive_bayes(classes):
    """Of two classes a share may be 1, rounded, but the other share tells by how little it is below."""
    draw, n = np.random.default_rng(4), 2000
    label = draw.integers(0, 2, n)
    exponents = np.zeros((n, classes))
    exponents[:, 0] = draw.normal(40.0, 60.0, n) * np.where(label == 0, 1.0, -1.0)
    exponents[:, 2:] = -np.abs(exponents[:, :1]) - 20.0
    shares = np.exp(exponents - exponents.max(axis=1, keepdims=True))
    shares /= shares.sum(axis=1, keepdims=True)
    found = judged(label, shares.argmax(axis=1), shares).model(0).measures()
    order = exponents[:, 0] - exponents[:, 1] if classes == 2 else shares[:, 0]
    exact = naive.auc(label == 0, order, np.ones(n))
    assert exact > 0.6
    assert found.classes[0].auc.value == pytest.approx(exact, abs=0.01)
    assert abs(found.classes[0].auc.value - exact) <= found.classes[0].auc_error < 0.1


ORACLES = json.loads((Path(__file__).parents[3] / "golden" / "measures.json").read_text())
LEAST_OF_RIVER = 1e-15
"""Smallest share in a log-loss of River; the rest of this share is rounded, hence its tolerance."""


def of_the_oracles(name):
    """Return the measures of the answers of a case, and its document (tests/golden/measures.py)."""
    case = ORACLES[name]
    label, prediction, weight = (np.array(case[column]) for column in ("label", "prediction", "weight"))
    importance = None if (weight == 1).all() else weight.astype(float)
    return judged(label, prediction, np.array(case["parts"]) / 4096, importance=importance).model(
        0
    ).measures(), case


def or_nan(values):
    return [math.nan if value is None else value for value in values]


@pytest.mark.parametrize("name", ORACLES)
def test_figures_are_those_of_scikit_learn_with_sample_weights(name):
    found, case = of_the_oracles(name)
    theirs = case["scikit-learn"]
    assert found.confusion.tolist() == theirs["confusion"]
    for figure in ("precision", "recall", "f1"):
        ours = [getattr(of, figure).value for of in found.classes]
        assert ours == pytest.approx(or_nan(theirs[figure]), nan_ok=True), figure
    for figure in ("kappa", "balanced_accuracy", "log_loss", "brier", "calibration_error"):
        assert getattr(found, figure).value == pytest.approx(theirs[figure]), figure
    areas = [
        (of, exact) for of, exact in zip(found.classes, theirs["class_auc"], strict=True) if exact is not None
    ]
    assert [math.isnan(of.auc.value) for of in found.classes] == [
        exact is None for exact in theirs["class_auc"]
    ]
    for of, exact in areas:
        assert abs(of.auc.value - exact) <= of.auc_error + 1e-12
        assert of.auc.value == pytest.approx(exact, abs=0.015)
    assert abs(found.auc.value - theirs["auc"]) <= max(of.auc_error for of, _ in areas)


@pytest.mark.parametrize("name", ORACLES)
def test_figures_are_those_of_river(name):
    found, case = of_the_oracles(name)
    theirs = case["river"]
    assert found.confusion.tolist() == theirs["confusion"]
    for figure in ("precision", "recall", "f1"):  # 0 where they are not defined
        ours = [getattr(of, figure).value for of in found.classes]
        assert np.nan_to_num(ours).tolist() == pytest.approx(theirs[figure]), figure
    for figure in ("kappa", "balanced_accuracy"):
        assert getattr(found, figure).value == pytest.approx(theirs[figure]), figure
    weight, ruled_out = np.array(case["weight"]), np.array(case["parts"])[range(400), case["label"]] == 0
    assert ruled_out.any()
    more = math.log(LEAST_OF_RIVER / naive.LEAST) * weight[ruled_out].sum() / weight.sum()
    assert found.log_loss.value == pytest.approx(theirs["log_loss"] + more, rel=1e-5)
    if "auc" in theirs:
        assert abs(found.auc.value - theirs["auc"]) <= found.classes[0].auc_error + 1e-6


INTERVALS = ("kappa", "balanced_accuracy", "log_loss", "brier", "auc")


def test_intervals_cover_the_figures_of_all_records():
    """95 % nominally; 100 runs may fall short by four standard errors (0.087)."""
    truth = judged(*drawn(100_000, 3, seed=9)).model(0).measures()
    covered = []
    for seed in range(100):
        label, prediction, shares = drawn(1200, 3, seed=seed)
        chance = np.where(shares.max(axis=1) < 0.6, 0.6, 0.2)
        kept = np.random.default_rng(1000 + seed).random(1200) < chance
        importance = 1.0 / chance[kept]
        found = judged(label[kept], prediction[kept], shares[kept], importance=importance).model(0).measures()
        figures = [(getattr(found, name), getattr(truth, name)) for name in INTERVALS]
        for name in ("precision", "recall", "f1"):
            figures += [(getattr(found.classes[c], name), getattr(truth.classes[c], name)) for c in range(3)]
        covered.append([mine.low <= true.value <= mine.high for mine, true in figures])
    assert np.mean(covered, axis=0).min() >= 0.865


def test_a_histogram_is_read_as_its_bins():
    """A hundred answers of 0.9 for the one class, of which 90 are right, and the mirror image."""
    label = np.repeat([0, 1, 1, 0], [90, 10, 90, 10])
    shares = np.where(np.arange(200)[:, None] < 100, [0.9, 0.1], [0.1, 0.9])
    found = judged(label, shares.argmax(axis=1), shares).model(0).measures()
    assert found.auc.value == pytest.approx(naive.auc(label == 1, shares[:, 1], np.ones(200)))
    assert found.calibration_error.value == pytest.approx(0.0)
