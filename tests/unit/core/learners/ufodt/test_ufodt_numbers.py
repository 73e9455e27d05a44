"""UFODT's arithmetic, by numbers that were reckoned outside of it."""

from functools import cache
from itertools import permutations, product

import numpy as np
import pytest

from core.errors import SchemaError
from core.learners.ufodt import words as w
from core.learners.ufodt.account import feature_account
from core.learners.ufodt.open_episode import OpenEpisode, hand_in
from core.learners.ufodt.shared import REASONS
from core.model.model import Model
from core.schema.schema import Attribute, Schema
from core.spec import Spec
from tests.naive.ufodt import Feature, Ufodt, potential
from tests.unit.core.builders import answer, schema_of, table_of


def spec_of(**learner):
    return Spec.parse({"learner": {"name": "ufodt", **learner}, "evaluation": {"every": 0}})


def begun(model, theta=None):
    """Return an episode that knows nothing, under a theta [class][feature] = P(1), None: that of its own."""
    d = model.schema.n_attributes
    episode = OpenEpisode.begin(model, np.full(d, np.nan))
    if theta is not None:
        shares = arrays_of(model, episode)["p_nominal"]
        for c, row in enumerate(theta):
            shares[c, 1::2] = row
            shares[c, 0::2] = 1.0 - np.array(row)
    return episode


def arrays_of(model, episode):
    return model.plan.blocks.episode_arrays(episode.words)


def block_of(model):
    return model.plan.blocks.named(model.ints, model.first)


def teach(table, episode, label):
    """Let the model learn a label for an episode, as a run learns one."""
    model = table.model(0)
    if episode.header.state == w.OPEN:
        episode.finish(model)
    hand_in(model, episode)
    one = np.zeros(1, dtype=np.int64)
    x = episode.observed().reshape(1, -1)
    table.learn(one, x, np.array([label], np.int32), np.ones(1), np.array([-1], np.int32), np.zeros(1, bool))


def test_scores_and_posteriors_of_two_bits():
    """θ (feature, class) [[.9, .2], [.3, .6]]: W, EC2's scores and the posteriors on the way."""
    model = Model.create(spec_of(prediction="bayes"), schema_of(2, 2))
    episode = begun(model, [[0.9, 0.3], [0.2, 0.6]])
    question = episode.next_feature()
    assert question.feature == 0
    assert question.utilities == pytest.approx((0.2475, 0.18705), rel=1e-6)
    episode.observe(0, 1.0)
    assert episode.predict()[1] == pytest.approx([0.818182, 0.181818], rel=1e-5)
    episode.observe(1, 0.0)
    best, shares = episode.finish(model)
    assert shares == pytest.approx([0.887324, 0.112676], rel=1e-5)
    assert best == 0


@pytest.mark.parametrize(
    ("criterion", "scores"),
    [
        ("ec2", (0.25, 0.16, 0.18)),
        ("ig", (1.0, 0.034852, 0.395816)),
        ("us", (1.0, 0.881291, 0.881291)),
    ],
)
def test_scores_of_four_hypotheses(criterion, scores):
    """The twin's, which core follows record by record (tests/contract/test_twins_ufodt.py)."""
    weight = {(0, 0, 1): 0.4, (0, 1, 1): 0.1, (1, 0, 0): 0.3, (1, 1, 1): 0.2}
    region = {h: h[0] for h in weight}
    theta = [[0.0, 0.2, 1.0], [1.0, 0.4, 0.4]]
    twin, rho = Ufodt([Feature()] * 3, 2, criterion=criterion), np.array([0.5, 0.5])
    most = potential(criterion, list(weight), region, weight, rho)
    if criterion == "ec2":
        assert most == pytest.approx(0.25)
    scored = [
        twin.score(i, np.array([[1 - p[i], p[i]] for p in theta]), list(weight), region, weight, rho, most)
        for i in range(3)
    ]
    assert scored == pytest.approx(scores, abs=1e-6)


def test_the_bandit_of_thresholds():
    """S = (0, 2, 5), η = 0.01: chances; a gain of 0.3 of the second threshold, and the chances after it."""
    schema = Schema.of([Attribute("x", thresholds=(1.0, 2.0, 3.0))], "ab")
    table = table_of(schema, spec_of())
    gains = block_of(table.model(0))["gains"]
    gains[:] = 0.0, 2.0, 5.0

    def chances():
        chance_of: dict[int, tuple[float, OpenEpisode]] = {}
        while len(chance_of) < 3:
            episode = begun(table.model(0))
            drawn = arrays_of(table.model(0), episode)
            chance_of[int(drawn["threshold"][0])] = float(drawn["chance"][0]), episode
        return chance_of

    chance_of = chances()
    assert [chance_of[k][0] for k in range(3)] == pytest.approx([0.325577, 0.332154, 0.342269], abs=1e-6)
    episode = chance_of[1][1]
    arrays_of(table.model(0), episode)["gain"][0] = 0.3
    teach(table, episode, 0)
    assert gains.tolist() == pytest.approx([0.0, 2.903196, 5.0], abs=1e-6)
    chance_of = chances()
    assert [chance_of[k][0] for k in range(3)] == pytest.approx([0.324599, 0.334160, 0.341241], abs=1e-6)


def known(model, value):
    """Return a finished episode that was given its only feature."""
    episode = OpenEpisode.begin(model, np.array([value]))
    episode.finish(model)
    return episode


def test_forgetting():
    """Outcomes 1, 1, 0, 1; then a cell that is never seen goes back to where it began."""
    table = table_of(schema_of(2), spec_of(discount=0.05))
    for value in (1.0, 1.0, 0.0, 1.0):
        teach(table, known(table.model(0), value), 0)
    below, above = block_of(table.model(0))["nominal"][0]
    assert (above, below) == pytest.approx((3.759875, 1.95), rel=1e-9)
    assert above / (above + below) == pytest.approx(0.658486, abs=1e-6)
    assert block_of(table.model(0))["nominal"][1].tolist() == [1.0, 1.0]
    for _ in range(20):
        teach(table, known(table.model(0), 1.0), 1)
    assert block_of(table.model(0))["nominal"][0] - 1.0 == pytest.approx(
        np.array([below - 1.0, above - 1.0]) * 0.95**20
    )


@pytest.mark.parametrize("discount", [0.0, 0.05])
def test_the_order_of_labels(discount):
    """Several episodes are open; without forgetting it does not matter whose label comes first."""
    finals = []
    for order in permutations(range(3)):
        table = table_of(schema_of(2, 2), spec_of(discount=discount))
        x = np.array([[0.0, 1.0], [1.0, 1.0], [1.0, 0.0]])
        episodes = []
        for record in x:
            episode = begun(table.model(0))
            while (feature := episode.next_feature().feature) is not None:
                assert episode.observe(feature, record[feature])
            episode.finish(table.model(0))
            episodes.append(episode)
        for i in order:
            teach(table, episodes[i], i % 2)
        finals.append(block_of(table.model(0))["nominal"].tolist())
    assert (len({str(final) for final in finals}) == 1) == (discount == 0.0)


def test_features_that_are_selected():
    """n = 10, Bf = 4, ε = 0.2: features with a weight are selected in 0.88 of the episodes, others 0.08."""
    table = table_of(schema_of(*[2] * 10), spec_of(feature_selection=True, selected=4, criterion="random"))
    model = table.model(0)
    block = block_of(model)
    block["begun"][:] = 1
    block["weights"][1, [0, 3, 5, 9]] = 0.5, -0.7, 0.1, -0.2
    n, selected = 1200, np.zeros(10)
    for _ in range(n):
        arrays = arrays_of(model, begun(model))
        selected += arrays["status"] != w.LEFT_OUT
        assert arrays["exploited"].tolist() == [1, 0, 0, 1, 0, 1, 0, 0, 0, 1]
    expected = np.where([1, 0, 0, 1, 0, 1, 0, 0, 0, 1], 0.88, 0.08)
    assert selected / n == pytest.approx(expected, abs=0.035)


def test_ten_times_the_cost_decides_nothing():
    bought = []
    for factor in (1.0, 10.0):
        attributes = [
            Attribute(f"x{i}", "nominal", ("0", "1"), cost=factor * cost)
            for i, cost in enumerate((1.0, 2.0, 0.5))
        ]
        table = table_of(Schema.of(attributes, "ab"), spec_of())
        x = np.random.default_rng(1).integers(0, 2, (60, 3)).astype(np.float64)
        answer(table, x, x[:, 1].astype(np.int32))
        account = feature_account(table.model(0))
        bought.append(account.by_feature)
        costs = [attribute.cost for attribute in attributes]
        assert account.cost == pytest.approx(np.dot(costs, list(account.by_feature.values())))
    assert bought[0] == bought[1]


def test_greedy_edge_cutting_is_near_the_best_policy():
    """Expected cost at most 2 ln(1/p_min) + 1 times the optimum, on 300 instances of 3 bits and 3 classes."""
    random = np.random.default_rng(7)
    model = Model.create(spec_of(), schema_of(2, 2, 2, classes="abc"))
    strings = list(product((0, 1), repeat=3))
    worst = 0.0
    for _ in range(300):
        theta = random.random((3, 3))
        joint = {
            h: [np.prod([p if bit else 1 - p for p, bit in zip(row, h, strict=True)]) / 3 for row in theta]
            for h in strings
        }
        weight = {h: float(sum(joint[h])) for h in strings}
        region = {h: int(np.argmax(joint[h])) for h in strings}

        def cost(choose, alive, weight=weight, region=region):
            """Return the cost times the weight of these strings, under a policy."""
            if len({region[h] for h in alive}) <= 1:
                return 0.0
            return choose(alive)

        def greedy(observed, alive, theta=theta, cost=cost, weight=weight):
            episode = begun(model, theta)
            for feature, value in observed:
                episode.observe(feature, value)
            feature = episode.next_feature().feature
            here = sum(weight[h] for h in alive)
            for value in (0, 1):
                rest = tuple(h for h in alive if h[feature] == value)
                here += cost(lambda a, t=[*observed, (feature, float(value))]: greedy(t, a), rest)
            return here

        @cache
        def best(alive, cost=cost, weight=weight):
            here = sum(weight[h] for h in alive)
            costs = []
            for feature in range(3):
                parts = [tuple(h for h in alive if h[feature] == value) for value in (0, 1)]
                if all(parts):
                    costs.append(sum(cost(best, part) for part in parts))
            return here + min(costs)

        optimum = cost(best, tuple(strings))
        if optimum > 0.0:
            bound = 2.0 * np.log(1.0 / min(weight.values())) + 1.0
            ratio = cost(lambda alive: greedy([], alive), tuple(strings)) / optimum
            assert 1.0 - 1e-9 <= ratio <= bound
            worst = max(worst, ratio / bound)
    assert worst < 0.3


def test_an_episode_is_its_words():
    """At every question a copy from bytes asks the same, and ends the same."""
    schema = Schema.of([Attribute("a", "nominal", ("x", "y", "z")), Attribute("b", range=(0.0, 1.0))], "ab")
    table = table_of(schema, spec_of(thresholds="exhaustive", enumerate=False, hypotheses=4))
    model = table.model(0)
    for record in np.column_stack([np.arange(12) % 3, np.linspace(0.0, 1.0, 12)]):
        episode = begun(model)
        while True:
            copy = OpenEpisode.resume(model.plan, episode.to_bytes())
            question = episode.next_feature()
            assert question == copy.next_feature() == episode.next_feature()
            assert copy.to_bytes() == episode.to_bytes()
            if question.feature is None:
                break
            assert episode.observe(question.feature, record[question.feature])
        assert question.reason == episode.reason in REASONS
        assert episode.predict()[1].tolist() == copy.predict()[1].tolist()
        teach(table, episode, int(record[1] > 0.5))
    account = feature_account(model)
    assert account.episodes == sum(account.stopped.values()) == 12
    assert account.replayed == 0


def test_what_is_missing_costs_nothing_and_a_budget_is_kept():
    table = table_of(schema_of(2, 2, 2), spec_of(record_budget=1.0, criterion="random"))
    answer(table, np.full((20, 3), np.nan), np.arange(20) % 2)
    account = feature_account(table.model(0))
    assert (account.bought, account.cost) == (0, 0.0)
    assert account.unavailable > 0
    x = np.random.default_rng(2).integers(0, 2, (40, 3)).astype(np.float64)
    answer(table, x, x[:, 0].astype(np.int32))
    after = feature_account(table.model(0))
    assert 0 < after.cost <= 40.0
    assert after.stopped["budget"] > account.stopped["budget"]


def test_an_episode_outlives_a_schema_that_grows():
    """What it knows and asks is the same under the schema with a value and a class more."""
    attributes = [Attribute("a", "nominal", ("x", "y"), open=True), Attribute("b", range=(0.0, 1.0))]
    schema = Schema.of(attributes, "ab", classes_open=True)
    model = Model.create(spec_of(prediction="bayes"), schema)
    episode = begun(model)
    first = episode.next_feature()
    for value in "zuvw":
        schema = schema.with_values([(0, value)])
    model.adopt(schema.with_class("c"))
    carried = episode.carry(model.plan)
    assert carried.next_feature() == first
    carried.observe(1, 0.4)
    episode.observe(1, 0.4)
    assert carried.finish(model)[1][:2].tolist() == episode.predict()[1].tolist()


def test_refusals():
    with pytest.raises(SchemaError, match=r"^cost=0.0 of attribute 'a' must be a number above 0"):
        Attribute("a", cost=0.0)
    with pytest.raises(
        SchemaError, match=r"^thresholds=\(2.0, 1.0\) of attribute 'a' must be finite numbers"
    ):
        Attribute("a", thresholds=(2.0, 1.0))
    model = Model.create(spec_of(), schema_of(2, 2))
    episode = begun(model)
    with pytest.raises(SchemaError, match="must be finished before its label"):
        hand_in(model, episode)
    feature = episode.next_feature().feature
    episode.observe(feature, 1.0)
    with pytest.raises(
        SchemaError, match=f"feature={feature} must be one that the episode may still ask for"
    ):
        episode.observe(feature, 1.0)


def test_a_schema_with_costs_and_thresholds_survives_json():
    schema = Schema.of([Attribute("a", cost=2.5, thresholds=(0.5, 1.5)), Attribute("b")], "xy")
    assert Schema.from_json(schema.to_json()) is schema
    assert '"cost"' not in Schema.of([Attribute("b")], "xy").to_json()
