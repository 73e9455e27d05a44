"""Strategies of Žliobaitė et al. 2014 and CDT, by formula, and through a model whose leaf is given."""

import numpy as np
import pytest

from core.active.queries import conf_tree, selective_sampling
from core.kernels.records import offset
from core.layout.tree import LEAF_FIELDS, NODE_FIELDS, Leaf, Tree
from core.model_table import ON_REQUEST
from core.numeric import rng
from core.numeric.consistency import epsilon
from core.spec import Spec
from tests.naive.queries import ConfTree, Place, normal
from tests.unit.core.builders import QUERIES, answer, schema_of, spec_of, table_of

ONE = schema_of(None)
TEN = schema_of(None, classes=[str(c) for c in range(10)])


def asked(query, limit, n=400, seed=1, labels=None, mode=0):
    """Return for which of n records a label was asked."""
    table = table_of(ONE, spec_of(query=query, budget={"name": "count", "limit": limit}, seed=seed))
    return answer(table, np.zeros((n, 1)), labels, mode=mode).asked


def at_a_leaf(query, counts, *, first=1, n=1, limit=0.1, seed=1, inherited=None):
    """Return a model whose one leaf has seen these labels, and what it asked of records first, first + 1, ….

    Each record meets an open budget. inherited: class masses of the node beside those its leaf has seen.
    """
    table = table_of(
        ONE if len(counts) == 2 else TEN, spec_of(query=query, budget={"limit": limit}, seed=seed)
    )
    model = table.model(0)
    node = Tree(model.ints, model.floats, model.first).node(0).start + NODE_FIELDS
    leaf = Tree(model.ints, model.floats, model.first).leaf(0).start
    model.floats[node : node + len(counts)] = np.add(counts, 0.0 if inherited is None else inherited)
    model.floats[leaf + LEAF_FIELDS : leaf + LEAF_FIELDS + len(counts)] = counts
    model.floats[leaf + offset(Leaf, "observed")] = sum(counts)
    found = []
    for t in range(first, first + n):
        model.header.records = t - 1
        model.header.requests = 0
        found.append(bool(answer(table, np.zeros((1, 1))).asked[0]))
    return model, found


def draws(seed, first, n, stream=rng.QUERY_DECISION):
    key = rng.stream_key(seed, stream)
    return np.array([rng.uniform(key, t << rng.DRAW_BITS) for t in range(first, first + n)])


# -- all


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("limit", [0.05, 0.1, 0.37, 0.9, 1.0])
def test_the_budget_is_never_overdrawn(query, limit):
    requests = np.cumsum(asked(query, limit, 2000))
    t = np.arange(1, 2001)
    assert (requests < limit * t + 1).all()
    assert requests[-1] > 0 or query == "never"


@pytest.mark.parametrize("query", QUERIES)
def test_only_a_label_that_was_asked_for_has_an_importance(query):
    """Half of the records meet a closed budget, and are represented by others: both ways of reckoning."""
    table = table_of(ONE, spec_of(query=query, budget={"name": "count", "limit": 0.5}))
    found = answer(table, np.random.default_rng(1).random((400, 1)), np.arange(400) % 2, mode=ON_REQUEST)
    assert 0 < found.asked.sum() < 400 or query == "never"
    assert not found.importance[~found.asked].any()


@pytest.mark.parametrize("query", ["variable_uncertainty", "randomised_uncertainty", "split"])
def test_a_closed_budget_leaves_the_strategy_as_it_is(query):
    """[D20]: θ moves on the records where the gate is open, and on no others."""
    table = table_of(ONE, spec_of(query=query, budget={"name": "count", "limit": 0.25}))
    model = table.model(0)
    theta = int(model.plan.record.query_state)
    for t in range(1, 60):
        before, is_open = model.floats[theta], model.header.requests / t < 0.25
        answer(table, np.zeros((1, 1)))
        if not is_open:
            assert model.floats[theta] == before
        elif query != "split":
            assert model.floats[theta] != before
    assert model.summary().refused > 20


def test_always_is_paced_by_the_budget():
    assert asked("always", 0.5, 6).tolist() == [True, False, True, False, True, False]
    assert (np.flatnonzero(asked("always", 0.1, 60)) + 1).tolist() == [1, 11, 21, 31, 41, 51]


def test_never():
    assert not asked("never", 1.0).any()


# -- Rnd


def test_random_depends_on_seed_and_record_number_alone():
    """The draw of record t, whatever was asked before."""
    wanted = draws(3, 1, 400) < 0.4
    found = asked("random", 0.4, seed=3)
    requests, expected = 0, []
    for t, want in enumerate(wanted.tolist(), 1):
        expected.append(want and requests / t < 0.4)
        requests += expected[-1]
    assert found.tolist() == expected
    assert asked("random", 0.4, seed=4).tolist() != expected


def test_random_keeps_its_rate():
    share = asked("random", 0.3, 20_000).mean()
    assert 0.28 < share <= 0.3 + 1 / 20_000


def test_replays_with_training_left_out_decide_alike():
    """Decisions of random depend on t only, not on what was learned."""
    labels = np.arange(400) % 2
    assert asked("random", 0.4, labels=labels, mode=ON_REQUEST).tolist() == asked("random", 0.4).tolist()


# -- FixedUn, VarUn, RndVar


def test_a_fixed_threshold():
    for counts, expected in (((89, 11), True), ((90, 10), False), ((0, 0), True)):
        assert at_a_leaf("fixed_uncertainty", counts)[1] == [expected]


def test_a_new_leaf_asks_whatever_its_shares_are():
    """A pure leaf below 30 labels of its own; what it inherited does not count."""
    for counts, inherited, expected in (
        ((29, 0), None, True),
        ((30, 0), None, False),
        ((0, 29), (500, 0), True),
        ((0, 30), (500, 0), False),
    ):
        assert at_a_leaf("fixed_uncertainty", counts, inherited=inherited)[1] == [expected]
    for cold_start, expected in ((0, False), (1, False), (2, True), (1.5, True)):
        query = {"name": "fixed_uncertainty", "cold_start": cold_start}
        assert at_a_leaf(query, (1, 0))[1] == [expected]


@pytest.mark.parametrize("limit", [0.1, 0.5, 1.0])
@pytest.mark.parametrize("threshold", [0.9, 0.0, 1.0])
def test_fixed_uncertainty_goes_on_asking(threshold, limit):
    """Of noisy records more than the one label after which the root is pure.

    Threshold 0 is 0.55 at a limit of 0.1: a leaf of 30 labels looks sure there before it is due for a split.
    """
    draw = np.random.default_rng(0)
    x = draw.random((6000, 1))
    labels = ((x[:, 0] > 0.6) ^ (draw.random(6000) < 0.15)).astype(int)
    query = {"name": "fixed_uncertainty", "threshold": threshold}
    table = table_of(ONE, spec_of(query=query, budget={"name": "count", "limit": limit}, delta=0.01, tau=0.1))
    answers = answer(table, x, labels, mode=ON_REQUEST)
    assert answers.asked.sum() >= 30
    if threshold > 0.0:
        assert (answers.prediction[4000:] == labels[4000:]).mean() > max(labels.mean(), 1 - labels.mean())


def test_a_threshold_from_classes_and_budget():
    """1/K + B·(1 - 1/K): 0.55 for two classes and B = 0.1, 0.19 for ten."""
    query = {"name": "fixed_uncertainty", "threshold": 0}
    for counts, expected in (((54, 46), True), ((56, 44), False)):
        assert at_a_leaf(query, counts)[1] == [expected]
    assert at_a_leaf(query, (18, *[9] * 8, 10))[1] == [True]
    assert at_a_leaf(query, (20, *[9] * 8, 8))[1] == [False]


def test_the_trace_of_variable_uncertainty():
    table = table_of(ONE, spec_of(query="variable_uncertainty"))
    model = table.model(0)
    masses = Tree(model.ints, model.floats, model.first).node(0).start + NODE_FIELDS
    answers, thetas = [], []
    for share in (1, 1, 0.6, 0.9, 0.95, 0.999, 0.7, 0.99):
        model.floats[masses : masses + 2] = share, 1 - share
        model.header.requests = 0
        answers.append(int(answer(table, np.zeros((1, 1))).asked[0]))
        thetas.append(model.floats[int(model.plan.record.query_state)])
    assert answers == [0, 1, 1, 1, 1, 0, 1, 0]
    expected = [1.01, 0.9999, 0.989901, 0.980002, 0.970202, 0.979904, 0.970105, 0.979806]
    assert thetas == pytest.approx(expected, abs=1e-6)


def test_variable_uncertainty_is_neutral_a_little_below_one_half():
    """θ stays where it is if 0.4975 of the records are asked for: 0.6 is never reached (section 9.2).

    A leaf of one in four each is as sure as θ allows half of the time: its share 0.75 lies where θ moves to.
    """
    model, found = at_a_leaf("variable_uncertainty", (3, 1), n=20_000, limit=0.6)
    assert np.mean(found[2000:]) == pytest.approx(0.4975, abs=1e-3)
    assert model.floats[int(model.plan.record.query_state)] == pytest.approx(0.75, rel=0.011)


def test_the_leaf_share_is_the_leaf_s_whatever_predicts():
    """With 3 of 4 labels in one class the share is 0.75, also under naive Bayes."""
    for leaf_model in ("mc", "nb", "nba"):
        query = {"name": "variable_uncertainty", "step": 0.24, "score": "leaf_share"}
        table = table_of(ONE, spec_of(leaf_model, query=query))
        answer(table, [[0.0], [1.0], [0.2], [0.9]], [0, 0, 0, 1])
        # θ = 1: asked at 0.75, then θ = 0.76: asked, then θ = 0.5776: not asked.
        assert answer(table, np.zeros((3, 1))).asked.tolist() == [True, True, False]


def test_a_shaken_threshold_is_multiplied():
    """[D21]: p < θ·η with η from N(1, 1), drawn by record; a negative η never asks."""
    _, found = at_a_leaf("randomised_uncertainty", (7, 3), n=3000, seed=4)
    theta, expected, negative = 1.0, [], 0
    for t in range(1, 3001):
        eta = 1.0 + normal(4, rng.RANDOMISED_THRESHOLD, t << rng.DRAW_BITS)
        expected.append(theta * eta > 0.7)
        negative += eta < 0.0
        theta *= 0.99 if expected[-1] else 1.01
    assert found == expected
    assert negative / 3000 == pytest.approx(0.158655, abs=4 * (0.159 * 0.841 / 3000) ** 0.5)


# -- Sel-Samp


def test_selective_sampling():
    """Margin 0.4 and B = 0.1: 0.2."""
    assert selective_sampling.probability(0.1, 0.9, 2.0) == pytest.approx(0.2)
    assert at_a_leaf("selective_sampling", (90, 10), n=500)[1] == (draws(1, 1, 500) < 0.2).tolist()
    wanted = 0.1 / (0.1 + 0.4)  # a share of one half among ten classes
    assert at_a_leaf("selective_sampling", (5, 5, *[0] * 8), n=500)[1] == (draws(1, 1, 500) < wanted).tolist()


# -- ConfTree


@pytest.mark.parametrize(
    ("m", "t", "classes", "expected"),
    [
        (10, 100, 2, 0.703686),
        (100, 1000, 2, 0.269339),
        (1000, 10_000, 2, 0.097759),
        (100, 1000, 10, 0.283885),
    ],
)
def test_epsilon(m, t, classes, expected):
    assert epsilon(float(m), t, float(classes), 0.0) == pytest.approx(expected, abs=6e-7)
    assert epsilon(float(m), t, float(classes), 1 / t) == pytest.approx(expected, abs=6e-7)
    twin, place = ConfTree(0), Place([m], [m], classes)
    assert twin.epsilon(place, t) == pytest.approx(expected, abs=6e-7)


@pytest.mark.parametrize(
    ("t", "smallest"), [(1, 2), (10, 11), (100, 20), (1000, 30), (10**4, 39), (10**5, 48), (10**6, 57)]
)
def test_the_smallest_pure_consistent_leaf(t, smallest):
    """One label less, and every record is asked for; from there on some are not."""
    for m, consistent in ((smallest - 1, False), (smallest, True)):
        found = at_a_leaf("conf_tree", (m, 0), first=t, n=1, seed=seed_that_refuses(t))[1]
        assert found == [not consistent]
        assert ConfTree(0).is_consistent(Place([m], [m, 0], 2), t) == consistent


def seed_that_refuses(t):
    """Return a seed whose draw of record t is high: a leaf that may refuse does."""
    return next(seed for seed in range(1, 1000) if draws(seed, t, 1)[0] > 0.9)


@pytest.mark.parametrize("off", [-1e-3, -1e-4, -1e-9, 1e-9, 1e-4, 1e-3])
@pytest.mark.parametrize("t", [1, 37, 10_000, 10**7])
def test_how_near_a_decision_is_makes_no_difference(t, off):
    """A gap of 2ε, and a draw of the wanted probability, but for a little."""
    seed = seed_that_refuses(t)
    m = 4e6
    width = epsilon(m, t, 2.0, 0.0)
    lead = m * 2.0 * width * (1.0 + off)
    counts = ((m + lead) / 2.0, (m - lead) / 2.0)
    assert at_a_leaf("conf_tree", counts, first=t, limit=1e-6, seed=seed)[1] == [off < 0.0]
    u, gap = draws(seed, t, 1)[0], 4.0 * width
    limit = u * gap / (2.0 - 2.0 * u) - width  # where the wanted probability is u
    assert 0.0 < limit < 1.0
    counts = (m * (1.0 + gap) / 2.0, m * (1.0 - gap) / 2.0)
    found = at_a_leaf("conf_tree", counts, first=t, limit=limit * (1.0 + off), seed=seed)[1]
    assert found == [off > 0.0]


@pytest.mark.parametrize("delta", [5e-324, 1e-300, 0.3])
def test_any_delta_of_conf_tree(delta):
    """Also one whose logarithm takes more than the range of floats: such a leaf is never consistent."""
    found = at_a_leaf({"name": "conf_tree", "delta": delta}, (900, 100), first=10**6, n=40)[1]
    twin = ConfTree(1, delta)
    place = Place([900, 100], [900, 100], 2)
    assert found == [twin.decide(t, place, 0.1) == "yes" for t in range(10**6, 10**6 + 40)]


@pytest.mark.parametrize(
    ("counts", "probability"), [((90, 10), 0.480073), ((70, 30), None), ((360, 40), 0.369751)]
)
def test_the_probability_of_conf_tree(counts, probability):
    """B = 0.1, t = 1000; 70 of 100 is not consistent."""
    decisions = []
    for seed in range(1, 60):
        found = at_a_leaf("conf_tree", counts, first=1000, seed=seed)[1][0]
        wanted = probability is None or draws(seed, 1000, 1)[0] < probability
        assert found == wanted
        decisions.append(found)
    assert all(decisions) == (probability is None)
    if probability is not None:
        gap = (counts[0] - counts[1]) / sum(counts)
        width = epsilon(float(sum(counts)), 1000, 2.0, 0.0)
        assert conf_tree.probability(0.1, width, gap) == pytest.approx(probability, abs=5e-7)
        assert 0.1 / 0.6 < probability < (0.1 + width) / (0.1 + 2 * width)


def test_inherited_mass_proves_nothing():
    """[D23]: a child with many inherited labels and none of its own is in doubt."""
    for counts, expected in (((0, 0), True), ((3, 0), True), ((400, 0), False)):
        found = at_a_leaf("conf_tree", counts, first=1000, inherited=(500, 0), seed=seed_that_refuses(1000))
        assert found[1] == [expected]


def test_a_fixed_delta():
    """With δ = 0.5 and t = 1000 the pure leaf of 17 labels is in doubt (ln 4000 / 34 ≥ ¼), 18 are enough."""
    query, seed = {"name": "conf_tree", "delta": 0.5}, seed_that_refuses(1000)
    smallest = next(m for m in range(1, 100) if np.log(2 * 1000 / 0.5) / (2 * m) < 0.25)
    assert at_a_leaf(query, (smallest - 1, 0), first=1000, seed=seed)[1] == [True]
    assert at_a_leaf(query, (smallest, 0), first=1000, seed=seed)[1] == [False]


def test_half_the_gap_is_the_margin_of_many_classes():
    """A leaf with two classes of equal shares among ten is never consistent."""
    seed = seed_that_refuses(1000)
    assert at_a_leaf("conf_tree", (5000, 5000, *[0] * 8), first=1000, seed=seed)[1] == [True]
    assert at_a_leaf("conf_tree", (9000, 1000, *[0] * 8), first=1000, seed=seed)[1] == [False]


def test_a_consistent_leaf_is_rarely_wrong():
    """Theorem 5 with δ = 0.1 and P(Y=1) = 0.55, 4000 runs: consistent and wrong with a probability ≤ δ."""
    draw = np.random.default_rng(0)
    for m in (20, 50, 200):
        hits = draw.binomial(m, 0.55, 4000)
        width = epsilon(float(m), m, 2.0, 0.1)
        assert np.mean(hits / m < 0.5 - width) <= 0.1


# -- Split


@pytest.mark.parametrize(
    ("query", "branch"), [("split", "variable_uncertainty"), ("split_conf_tree", "conf_tree")]
)
def test_a_coin_decides_who_decides(query, branch):
    """The random branch asks as Rnd does; with ν = 1 it decides alone."""
    coin = draws(1, 1, 600, rng.SPLIT_COIN) < 0.2
    _, found = at_a_leaf(query, (999, 1), n=600)
    assert np.array_equal(np.array(found)[coin], (draws(1, 1, 600) < 0.1)[coin])
    _, alone = at_a_leaf({"name": query, "random": 1}, (999, 1), n=600)
    assert alone == (draws(1, 1, 600) < 0.1).tolist()
    if branch == "conf_tree":
        assert np.array_equal(np.array(found)[~coin], np.array(at_a_leaf(branch, (999, 1), n=600)[1])[~coin])


def test_who_draws_at_random_says_so():
    """The evaluation may rest on these alone."""
    for query, limit, expected in (
        ("always", 1.0, {1}),
        ("always", 0.5, {0}),  # picked by their places
        ("random", 0.5, {1}),
        ("conf_tree", 0.5, {0}),
        ("split", 0.5, {0, 1}),
        ("rate", 0.5, {0, 1}),
    ):
        table = table_of(ONE, spec_of(query=query, budget={"limit": limit}))
        answers = answer(table, np.zeros((500, 1)))
        assert set(answers.sampled[answers.asked].tolist()) == expected
        assert not answers.sampled[~answers.asked].any()


def test_their_detectors_see_labels_drawn_at_random_alone():
    assert Spec.parse({"query": "split"}).query.sampled_detection
    assert Spec.parse({"query": "split_conf_tree"}).query.sampled_detection
    assert not Spec.parse({"query": "conf_tree"}).query.sampled_detection


def test_no_delta_is_too_small():
    """K·t/δ overflows for the smallest floats: no leaf would ever be consistent."""
    smallest = epsilon(1e4, 10**4, 2.0, 5e-324)
    assert smallest == pytest.approx(np.sqrt((np.log(2e4) + 744.4400719213812) / 2e4))
    _, found = at_a_leaf({"name": "conf_tree", "delta": 5e-324}, (100_000, 0), first=1000, n=200)
    assert sum(found) < 100
