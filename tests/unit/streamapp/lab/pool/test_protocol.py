"""The pool protocol: splits, draws, curves; what each system chooses."""

from __future__ import annotations

import numpy as np
import pytest

from core.errors import GroveError
from core.learners.boct import boct
from core.model.pool import survey
from core.numeric.credible import risk_bound
from core.schema.schema import Attribute, Schema
from streamapp.errors import UsageError
from streamapp.lab.pool.pool_models import ModelSystem, riskiest
from streamapp.lab.pool.pool_protocol import Records, System, label_counts, label_pool, pick, split
from streamapp.lab.pool.pool_specs import maker_of

BOCT = '{"learner": "boct", "query": "%s", "seed": 1}'


def records(n: int = 160, seed: int = 0) -> Records:
    """Two numeric attributes; the class is a corner of the square, with one label in ten wrong."""
    rng = np.random.default_rng(seed)
    x = rng.random((n, 2))
    y = ((x[:, 0] > 0.5) & (x[:, 1] > 0.4)) ^ (rng.random(n) < 0.1)
    return Records(Schema.of([Attribute("a"), Attribute("b")], ("no", "yes")), x, y.astype(np.int64))


def halves(data: Records) -> tuple[Records, Records]:
    pool, test = split(len(data.y), 0.5, seed=3)
    return data.part(pool), data.part(test)


class Recorder:
    """A system that writes down what another one chooses and is told."""

    def __init__(self, system: System) -> None:
        self._system = system
        self.rows: list[int] = []
        self.labels: list[int] = []
        self.leaves_before: list[int] = []

    def choose(self, unlabelled, drawn):
        self.leaves_before.append(self._system.leaves)
        self.rows.append(self._system.choose(unlabelled, drawn))
        return self.rows[-1]

    def learn(self, row, label):
        self.labels.append(label)
        self._system.learn(row, label)

    def predict(self, x):
        return self._system.predict(x)

    @property
    def leaves(self):
        return self._system.leaves


def run(spec: str, data: Records, budget: int, seed: int = 3):
    pool, test = halves(data)
    system = Recorder(maker_of(spec)(data.schema, pool.x))
    return system, label_pool(system, pool, test, budget, seed, label_counts(budget)), pool


def model_system(spec: str, data: Records, labels: int) -> tuple[ModelSystem, Records]:
    """A system of a model that has so many labels."""
    pool, test = halves(data)
    system = maker_of(spec)(data.schema, pool.x)
    assert isinstance(system, ModelSystem)
    label_pool(system, pool, test, labels, 3, [labels])
    return system, pool


def test_a_split_is_a_partition_of_the_rows_that_a_seed_decides() -> None:
    pool, test = split(101, 0.3, seed=5)
    assert (len(pool), len(test)) == (71, 30)
    assert sorted([*pool, *test]) == list(range(101))
    assert (np.diff(pool) > 0).all()
    assert (split(101, 0.3, seed=5)[0] == pool).all()
    assert (split(101, 0.3, seed=6)[1] != test).any()


def test_one_of_some_rows_is_picked_evenly() -> None:
    rows = np.array([4, 7, 9])
    assert [pick(rows, u) for u in (0.0, 0.33, 0.34, 0.67, 1 - 2**-53)] == [4, 4, 7, 9, 9]


def test_a_curve_has_all_points_or_a_thousand() -> None:
    assert label_counts(5) == [1, 2, 3, 4, 5]
    counts = label_counts(48_000)
    assert (len(counts), counts[0], counts[-1]) == (1000, 48, 48_000)


ALL = (
    '{"learner": "h-tree", "query": "random"}',
    '{"learner": {"name": "h-tree", "grace_period": 5}, "query": "variable_uncertainty"}',
    '{"learner": "naive-bayes", "query": "selective_sampling"}',
    '{"learner": "h-tree", "query": "conf_tree"}',
    '{"learner": "c-tree", "query": {"name": "rate", "explore": 0.5}}',
    '{"learner": "efdt", "query": "fixed_uncertainty"}',
    "majority-class",
    "c4.5",
    BOCT % "boct_al",
    BOCT % "random",
    BOCT % "conf_tree",
    '{"learner": "boct", "query": {"name": "boct_al", "risk": "mbinomial"}}',
    '{"learner": {"name": "boct", "sizes": "labelled"}}',
    '{"learner": {"name": "boct", "sizes": "stream"}, "query": "boct_al"}',
    '{"learner": {"name": "boct", "bound": "hoeffding"}, "query": "random"}',
)


@pytest.mark.parametrize("spec", ALL)
def test_every_row_is_labelled_once_and_the_same_seed_does_the_same(spec: str) -> None:
    data = records()
    first, curve, pool = run(spec, data, budget=80)
    assert sorted(first.rows) == list(range(80))
    assert first.labels == pool.y[first.rows].tolist()
    assert [point.labels for point in curve] == list(range(1, 81))
    assert all(0.0 <= point.accuracy <= 1.0 for point in curve)
    again, same, _ = run(spec, data, budget=80)
    assert (again.rows, same) == (first.rows, curve)
    other, _, _ = run(spec, data, budget=80, seed=4)
    assert other.rows != first.rows


def test_boct_al_and_boct_are_the_same_until_the_first_split() -> None:
    """BCI, section VI: before the first test there is one subset, and nothing to choose."""
    data = records(240)
    active, curve_active, _ = run(BOCT % "boct_al", data, budget=120)
    passive, curve_passive, _ = run(BOCT % "random", data, budget=120)
    unsplit = sum(leaves == 1 for leaves in active.leaves_before)
    assert 3 < unsplit < 60
    assert active.rows[:unsplit] == passive.rows[:unsplit]
    assert curve_active[: unsplit - 1] == curve_passive[: unsplit - 1]
    assert active.rows != passive.rows


def test_mbinomial_ranks_leaves_by_what_the_other_label_may_be_better_by() -> None:
    """An even leaf of many labels has the largest risk, and none of it to be lowered."""
    sizes, bounds = np.array([10.0, 10.0, 8.0, 4.0]), np.array([0.52, 0.3, 0.6, 0.45])
    assert riskiest(sizes, bounds, "total").tolist() == [0, 2, 1, 3]
    assert riskiest(sizes, bounds, "mbinomial").tolist() == [2, 0, 1, 3]


def test_boct_al_asks_in_the_leaf_with_the_largest_bound_of_risk() -> None:
    system, pool = model_system(BOCT % "boct_al", records(240), 60)
    leaves = boct.leaves(system.model)
    assert len(leaves.node) > 2
    assert leaves.size.sum() == len(pool.y), "W counts all rows of the pool"
    assert leaves.labels.sum() == 60
    risk = leaves.size * risk_bound(leaves.labels.astype(float), leaves.positives.astype(float), 0.05)
    ends = boct.leaf_of(system.model, pool.x)
    everything = np.arange(len(pool.y))
    chosen = {system.choose(everything, np.array([0.5, u])) for u in np.linspace(0, 1, 500, endpoint=False)}
    assert chosen == set(everything[ends == leaves.node[risk.argmax()]])
    # Where it has no row left, the next one is asked [D29].
    rest = everything[ends != leaves.node[risk.argmax()]]
    assert ends[system.choose(rest, np.array([0.5, 0.5]))] == leaves.node[np.argsort(-risk)[1]]


def test_a_score_is_ranked_and_equal_ones_are_drawn() -> None:
    """By its leaf share a tree of one leaf scores all rows alike: rows are drawn as random ones are."""
    data = records()
    by_leaf = '{"learner": "h-tree", "query": {"name": "variable_uncertainty", "score": "leaf_share"}}'
    by_score, _, _ = run(by_leaf, data, budget=20)
    drawn, _, _ = run('{"learner": "h-tree", "query": "random"}', data, budget=20)
    assert by_score.rows == drawn.rows
    system, pool = model_system('{"learner": "naive-bayes", "query": "selective_sampling"}', data, 30)
    score = survey(system.model, pool.x, "selective_sampling").score
    assert score.min() < score.max()
    assert score[system.choose(np.arange(len(pool.y)), np.array([0.5, 0.5]))] == score.max()


def test_a_survey_changes_nothing_and_says_what_the_model_answers() -> None:
    system, pool = model_system('{"learner": "naive-bayes"}', records(), 30)
    before = system.model.snapshot()
    found = survey(system.model, pool.x, "variable_uncertainty")
    assert system.model.snapshot() == before
    answers = [system.model.predict(row.tolist()) for row in pool.x]
    assert [answer.label for answer in answers] == [("no", "yes")[code] for code in found.prediction]
    surest = [max(answer.probabilities.values()) for answer in answers]
    assert found.score == pytest.approx(1.0 - np.array(surest), abs=1e-12)


def test_with_all_labels_c45_has_one_tree_whichever_came_first() -> None:
    pool, test = halves(records())
    ends = [
        label_pool(maker_of("c4.5")(pool.schema, pool.x), pool, test, 80, seed, [80])[0].accuracy
        for seed in (3, 4)
    ]
    assert ends[0] == ends[1]


def test_missing_values_and_constant_attributes_are_learned_around() -> None:
    data = records()
    x = np.concatenate((data.x, np.ones((160, 1))), axis=1)
    x[::7, 0] = np.nan
    schema = Schema.of([Attribute("a"), Attribute("b"), Attribute("constant")], ("no", "yes"))
    for spec in (BOCT % "boct_al", "c4.5", '{"learner": "h-tree", "query": "conf_tree"}'):
        system, curve, _ = run(spec, Records(schema, x, data.y), budget=80)
        assert sorted(system.rows) == list(range(80))
        assert curve[-1].accuracy > 0.5


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (
            '{"query": "never"}',
            "query='never' cannot rank the rows of a pool; known here: always, ask, boct_al",
        ),
        ('{"query": "split"}', "cannot rank"),
        ('{"learner": "boct", "query": "boct_al", "drift": "ddm"}', "drift='ddm' must be 'none'"),
        ('{"learner": "h-tree", "query": "boct_al"}', "boct_al"),
        ('{"learner": {"name": "c4.5", "depth": 3}}', "depth=3 is no parameter of c4.5; known: min_records"),
        (
            '{"learner": {"name": "c4.5", "confidence": 0.9}}',
            "confidence=0.9 must be above 0 and at most 0.5",
        ),
        ('{"learner": {"name": "c4.5", "min_records": 2.5}}', "min_records=2.5 of c4.5 must be of type int"),
        ('{"learner": "c4.5", "query": "conf_tree"}', "query='conf_tree' must be one of always, random"),
        ('{"learner": "c4.5", "drift": "none"}', "drift must be left out with learner 'c4.5'"),
        ("no-such-learner", "unknown learner"),
        ('{"learner": ', "must be a JSON object or the name of a learner"),
        ("@/nowhere/spec.json", "cannot read the file"),
    ],
)
def test_a_spec_that_means_nothing_in_a_pool_is_refused(spec: str, message: str) -> None:
    with pytest.raises((UsageError, GroveError), match=message):
        maker_of(spec)
