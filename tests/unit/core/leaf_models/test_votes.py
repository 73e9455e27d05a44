"""What leaves vote, through models of one leaf."""

import math

import numpy as np
import pytest

from core.tree import views
from tests.unit.core.builders import answer, halves, schema_of, spec_of, table_of

ONE = schema_of(None)
WORKED = np.array([[1.0], [2.0], [3.0], [4.0], [3.0], [4.0], [5.0], [6.0]]), [0, 0, 0, 0, 1, 1, 1, 1]


def votes(leaf_model, x, label, asked, schema=ONE, **learner):
    table = table_of(schema, spec_of(leaf_model, **learner))
    answer(table, x, label)
    return answer(table, asked).probability


def test_majority_shares():
    assert votes("mc", [[0.0], [1.0], [2.0]], [0, 1, 1], [[9.0]])[0] == pytest.approx([1 / 3, 2 / 3])


@pytest.mark.parametrize(
    ("learner", "labels", "predicted"),
    [
        ("c-tree", [0, 1], 1),
        ("c-tree", [1, 0], 1),
        ("c-tree", [0, 1, 0], 0),
        ("c-tree", [2, 1, 0], 0),
        ("h-tree", [0, 1], 0),
        ("corrh-tree", [1, 0], 0),
    ],
)
def test_of_two_equal_classes_a_c_tree_predicts_the_second(learner, labels, predicted):
    """CDT predicts 1 where its share is at least ½ [D9]; anything else takes the first of equals."""
    table = table_of(schema_of(None, classes="abc"[: max(labels) + 1]), spec_of(name=learner))
    answer(table, np.zeros((len(labels), 1)), labels)
    answers = answer(table, np.zeros((1, 1)))
    assert answers.prediction[0] == predicted
    assert answers.probability[0].sum() == pytest.approx(1.0)


def test_a_c_tree_that_has_seen_nothing_predicts_the_first_class():
    """No weight is no tie (section 2.8)."""
    assert answer(table_of(ONE, spec_of(name="c-tree")), [[0.0]]).prediction[0] == 0


@pytest.mark.parametrize("compat", [None, "moa"])
def test_the_worked_posterior(compat):
    """Densities 0.266775 and 0.186122 at 3.2, equal priors."""
    shares = votes("nb", *WORKED, [[3.2]], compat=compat)
    assert shares[0] == pytest.approx([0.589040, 0.410960], abs=1e-6)


def test_a_missing_value_leaves_the_prior():
    assert votes("nb", *WORKED, [[math.nan]])[0] == pytest.approx([0.5, 0.5])


def test_many_classes_one_of_which_was_never_seen():
    rng = np.random.default_rng(3)
    label = np.arange(90) % 9
    x = rng.normal(size=(90, 5)) + label[:, None]
    x, label = x[label != 6], label[label != 6]
    shares = votes("nb", x, label, x[:20], schema_of(*[None] * 5, classes=[str(c) for c in range(9)]))
    logs = np.full((20, 9), -np.inf)
    for c in set(label.tolist()):
        own = x[label == c]
        mean, deviation = own.mean(axis=0), own.std(axis=0, ddof=1)
        z = (x[:20] - mean) / deviation
        logs[:, c] = np.log(len(own) / len(x)) - (z * z / 2.0 + np.log(deviation)).sum(axis=1)
    expected = np.exp(logs - logs.max(axis=1, keepdims=True))
    assert shares == pytest.approx(expected / expected.sum(axis=1, keepdims=True), rel=1e-9)
    assert (shares[:, 6] == 0.0).all()


def test_laplace_shares_of_a_nominal_value():
    """(n_vc + 1)/(n_c + |V|): classes 3 and 1 records, three values."""
    schema = schema_of(3)
    shares = votes("nb", [[0.0], [0.0], [1.0], [1.0]], [0, 0, 0, 1], [[1.0], [2.0], [-1.0]], schema)
    one, two = np.array([3 / 4 * 2 / 6, 1 / 4 * 2 / 4]), np.array([3 / 4 * 1 / 6, 1 / 4 * 1 / 4])
    assert shares[0] == pytest.approx(one / one.sum())
    assert shares[1] == pytest.approx(two / two.sum())
    assert shares[2] == pytest.approx([3 / 4, 1 / 4])


@pytest.mark.parametrize("weight", [1.0, 1e-60, 1e9])
def test_shares_of_many_nominal_values_are_multiplied_without_leaving_the_range_of_floats(weight):
    """A hundred attributes of two values; one more whose values nobody has learned says nothing."""
    rng = np.random.default_rng(5)
    x, label = rng.integers(0, 2, (40, 101)).astype(float), np.arange(40) % 2
    x[:, 100] = -1.0
    table = table_of(schema_of(*[2] * 101), spec_of("nb", grace_period=1e12))
    table.answer(np.zeros(40, np.int64), x, label.astype(np.int32), np.full(40, weight))
    asked = rng.integers(0, 2, (10, 101)).astype(float)
    logs = np.zeros((10, 2))
    for c in range(2):
        own = x[label == c][:, :100]
        for i, row in enumerate(asked):
            counts = weight * (own == row[:100]).sum(axis=0)
            logs[i, c] = (np.log(counts + 1.0) - np.log(weight * len(own) + 2.0)).sum()
    expected = np.exp(logs - logs.max(axis=1, keepdims=True))
    expected /= expected.sum(axis=1, keepdims=True)
    assert answer(table, asked).probability == pytest.approx(expected, rel=1e-9, abs=1e-300)


def test_moa_counts_values_up_to_the_largest_seen_with_the_class():
    schema = schema_of(3)
    shares = votes("nb", [[0.0], [0.0], [1.0], [1.0]], [0, 0, 0, 1], [[1.0]], schema, compat="moa")
    expected = np.array([3 / 4 * 2 / 5, 1 / 4 * 2 / 3])
    assert shares[0] == pytest.approx(expected / expected.sum())


def test_densities_do_not_underflow():
    """Two hundred attributes far from both classes: the nearer class still wins."""
    schema = schema_of(*[None] * 200)
    x = np.repeat(np.array([[0.0], [1.0], [10.0], [11.0]]), 200, axis=1)
    shares = votes("nb", x, [0, 0, 1, 1], np.full((1, 200), 30.0), schema)
    assert np.isfinite(shares).all()
    assert shares[0].argmax() == 1


def test_without_deviation_only_the_mean_is_likely():
    x, label = [[1.0], [1.0], [2.0], [2.0]], [0, 0, 1, 1]
    assert votes("nb", x, label, [[1.0], [2.0]]).argmax(axis=1).tolist() == [0, 1]


@pytest.mark.parametrize("compat", [None, "moa"])
def test_a_class_of_one_record_is_likely_there_alone(compat):
    """Its density is 1 at its only value, else 0; that of the other at 5 is 0.0044 (mean 2, deviation 1)."""
    shares = votes("nb", [[1.0], [2.0], [3.0], [5.0]], [0, 0, 0, 1], [[5.0], [4.9], [5.1]], compat=compat)
    one = 0.25 / (0.25 + 0.75 * math.exp(-4.5) / math.sqrt(2.0 * math.pi))
    assert shares[:, 1] == pytest.approx([one, 0.0, 0.0], abs=1e-12)


def score(table):
    model = table.model(0)
    tree = views.tree_view(model.plan, model.ints, model.first)
    leaf = tree.block.leaf(0)
    return [float(leaf.majority_right), float(leaf.bayes_right)]


def test_the_adaptive_model_keeps_both_scores_before_learning():
    """First record: both say class 0. Second: majority 0, Bayes 0 as well, since only class 0 has weight."""
    table = table_of(ONE, spec_of("nba"))
    answer(table, [[1.0], [1.0]], [0, 1])
    assert score(table) == [1.0, 1.0]


def test_the_adaptive_model_follows_the_better_of_the_two():
    x, label = halves(150, columns=1)
    table = table_of(ONE, spec_of("nba"))
    answer(table, x, label)
    majority, bayes = score(table)
    assert bayes > majority
    probability = answer(table, [[0.1], [0.9]]).probability
    assert probability.argmax(axis=1).tolist() == [0, 1]
    # Thirty copies of one noisy attribute: naive Bayes takes them for thirty witnesses.
    noise = np.random.default_rng(0)
    table = table_of(schema_of(*[None] * 30), spec_of("nba"))
    label = (noise.random(150) < 0.3).astype(int)
    answer(table, np.repeat(noise.normal(size=(150, 1)), 30, axis=1), label)
    majority, bayes = score(table)
    assert majority > bayes
    assert answer(table, np.full((1, 30), 9.0)).probability[0, 1] == pytest.approx(label.mean())


def test_late_and_immediate_labels_score_alike():
    """The score of a late label is made when it is learned, by the tree of then."""
    x, label = halves(150, columns=1)
    at_once, late = table_of(ONE, spec_of("nba")), table_of(ONE, spec_of("nba"))
    answer(at_once, x, label)
    zeros = np.zeros(150, dtype=np.int64)
    late.learn(zeros, x, label, np.ones(150), np.full(150, -1, dtype=np.int32), np.zeros(150, dtype=np.bool_))
    assert score(at_once) == score(late)


def test_moa_gives_an_empty_root_to_naive_bayes():
    """No majority in an empty vector, but the first maximum of no votes is class 0."""
    table = table_of(ONE, spec_of("nba", compat="moa"))
    answer(table, [[1.0]], [0])
    assert score(table) == [0.0, 1.0]


def test_relabelling_classes_relabels_votes():
    rng = np.random.default_rng(5)
    schema = schema_of(None, 3, classes="abc")
    x = np.column_stack([rng.normal(size=100), rng.integers(0, 3, 100)])
    label, order = rng.integers(0, 3, 100), np.array([2, 0, 1])
    for leaf_model in ("mc", "nb"):
        plain = votes(leaf_model, x, label, x[:20], schema)
        renamed = votes(leaf_model, x, order[label], x[:20], schema)
        assert renamed[:, order] == pytest.approx(plain, rel=1e-9)


@pytest.mark.parametrize("met", [(0,), (1, 4), (0, 3, 4, 5, 8), (2, 3, 4, 5, 6, 7, 8), tuple(range(9))])
def test_classes_that_a_leaf_has_not_met_change_no_votes(met):
    """Naive Bayes sums up densities of four classes together, those that are possible."""
    draw = np.random.default_rng(len(met))
    label = np.append(draw.integers(len(met), size=200), [0])
    x = draw.normal(label[:, None], 1.0, size=(201, 5))
    shares = []
    for codes in (range(len(met)), met):
        schema = schema_of(*[None] * 5, classes=[str(c) for c in range(9)])
        table = table_of(schema, spec_of("nb", grace_period=1e6))
        answer(table, x, np.asarray(codes)[label])
        shares.append(answer(table, x).probability[:, list(codes)])
    np.testing.assert_array_equal(*shares)
    np.testing.assert_allclose(shares[0].sum(axis=1), 1.0)
