"""UFODT and its obvious twin, record by record: what it buys, predicts and has learned."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.kernels import jit
from core.learners.ufodt import words as w
from core.learners.ufodt.account import feature_account, thresholds_of
from core.learners.ufodt.open_episode import OpenEpisode
from core.learners.ufodt.shared import REASONS
from core.model.model import Model
from core.model_table import LABELLED
from core.schema.schema import Attribute, Schema
from core.spec import Spec
from tests.naive.ufodt import Feature, Ufodt
from tests.tiers import examples
from tests.unit.core.builders import answer, table_of

NUMBER, UNDECLARED = "number", "undeclared"
WARM_UP = 9


def schema_of(kinds, costs, classes):
    """Return the schema of nominal features with so many values, of NUMBER: one with a range, and of
    UNDECLARED: one without.
    """
    ranges = {NUMBER: (0.0, 1.0), UNDECLARED: None}
    attributes = [
        Attribute(f"x{i}", range=ranges[kind], cost=cost)
        if kind in ranges
        else Attribute(f"x{i}", "nominal", tuple(map(str, range(kind))), cost=cost)
        for i, (kind, cost) in enumerate(zip(kinds, costs, strict=True))
    ]
    return Schema.of(attributes, tuple(map(str, range(classes))))


def stream_of(kinds, classes, n, seed, missing):
    random = np.random.default_rng(seed)
    columns = [
        random.random(n) if kind in (NUMBER, UNDECLARED) else random.integers(0, kind, n) for kind in kinds
    ]
    x = np.column_stack(columns).astype(np.float64)
    y = ((x[:, 0] > 0.5) + (x[:, -1] > 0.5) * (classes > 2)).astype(np.int32)
    x[random.random(x.shape) < missing] = np.nan
    return x, y


@st.composite
def cases(draw):
    kinds = draw(st.lists(st.sampled_from([2, 2, 3, NUMBER, UNDECLARED]), min_size=1, max_size=4))
    options = {
        "criterion": draw(st.sampled_from(w.CRITERIA)),
        "hypotheses": draw(st.integers(1, 12)),
        "enumerate": draw(st.booleans()),
        "discount": draw(st.sampled_from([0.0, 0.05, 0.5])),
        "thresholds": draw(st.sampled_from(["exp3", "exhaustive"])),
        "exp3_rate": draw(st.sampled_from([0.01, 0.7])),
        "record_budget": draw(st.sampled_from([0.0, 1.0, 2.5])),
        "prediction": draw(st.sampled_from(["posterior", "posterior", "bayes", "region"])),
        "answer": draw(st.sampled_from(w.ANSWERS)),
        "prior": draw(st.sampled_from(["uniform", "counts"])),
        "n_thresholds": 3,
        "warm_up": WARM_UP,
    }
    costs = draw(st.lists(st.sampled_from([0.5, 1.0, 2.0]), min_size=len(kinds), max_size=len(kinds)))
    return (
        kinds,
        costs,
        draw(st.integers(2, 3)),
        options,
        draw(st.integers(1, 99)),
        draw(st.sampled_from([0.0, 0.2])),
    )


def feature_of(kind, cost):
    """Return the twin's feature of a kind."""
    if kind == NUMBER:
        return Feature(thresholds=[0.25, 0.5, 0.75], cost=cost)
    return Feature(warm_up=WARM_UP, cuts=3, cost=cost) if kind == UNDECLARED else Feature(kind, cost=cost)


def run_both(kinds, costs, classes, options, seed, missing, n=30):
    schema = schema_of(kinds, costs, classes)
    features = [feature_of(kind, cost) for kind, cost in zip(kinds, costs, strict=True)]
    twin = Ufodt(features, classes, seed, **options)
    spec = Spec.parse({"learner": {"name": "ufodt", **options}, "seed": seed, "evaluation": {"every": 0}})
    table = table_of(schema, spec)
    x, y = stream_of(kinds, classes, n, seed, missing)
    cost, bought, reasons = 0.0, np.zeros(len(kinds), int), dict.fromkeys(REASONS, 0)
    for row, (record, label) in enumerate(zip(x, y.tolist(), strict=True)):
        expected = twin.play(record)
        cost += twin.cost
        bought[twin.bought] += 1
        reasons[twin.reason] += 1
        ours = answer(table, record, [label], mode=LABELLED).prediction[0]
        account = feature_account(table.model(0))
        assert (row, list(account.by_feature.values())) == (row, bought.tolist())
        assert (row, ours) == (row, expected)
        twin.learn(label)
    assert feature_account(table.model(0)).cost == pytest.approx(cost)
    assert feature_account(table.model(0)).stopped == reasons
    assert feature_account(table.model(0)).replayed == 0
    return table.model(0), twin


@given(cases())
@settings(max_examples=examples(25))
def test_the_learner_and_its_twin(case):
    kinds, _, classes, *_ = case
    model, twin = run_both(*case)
    cuts = {i: f.thresholds or () for i, f in enumerate(twin.features) if f.is_numeric}
    assert list(thresholds_of(model).values()) == [pytest.approx(own) for own in cuts.values()]
    arrays = model.plan.blocks.named(model.ints, model.block_places[0])
    values = k = 0
    for i, kind in enumerate(kinds):
        for c in range(classes):
            counts = np.array(twin.counts[c][i])
            if kind in (NUMBER, UNDECLARED):
                assert arrays["below"][c, k : k + 3] == pytest.approx(counts[:, 0])
                assert arrays["above"][c, k : k + 3] == pytest.approx(counts[:, 1])
                assert arrays["used"][c, k : k + 3] == pytest.approx(twin.used[c][i])
                assert arrays["gains"][k : k + 3] == pytest.approx(twin.gains[i])
            else:
                assert arrays["nominal"][c, values : values + kind] == pytest.approx(counts[0])
        values, k = (values, k + 3) if kind in (NUMBER, UNDECLARED) else (values + kind, k)


def test_a_snapshot_in_the_middle_goes_on_alike():
    """Run 1..T equals run 1..s, save, load, s+1..T; and a run in one piece."""
    kinds, classes = (2, NUMBER, 3, UNDECLARED), 2
    x, y = stream_of(kinds, classes, 40, 7, 0.1)
    learner = {"name": "ufodt", "discount": 0.05, "feature_selection": True, "warm_up": WARM_UP}
    spec = Spec.parse({"learner": learner})
    whole = table_of(schema_of(kinds, (1.0, 2.0, 1.0, 1.0), classes), spec)
    answer(whole, x, y)
    for cut in (1, 17, 39):
        table = table_of(schema_of(kinds, (1.0, 2.0, 1.0, 1.0), classes), spec)
        answer(table, x[:cut], y[:cut])
        copy = Model.restore(table.model(0).snapshot())
        assert copy.snapshot() == table.model(0).snapshot()
        other = table_of(copy.schema, spec, models=0)
        other.add(copy)
        answer(other, x[cut:], y[cut:])
        assert copy.snapshot() == whole.model(0).snapshot()


@pytest.mark.skipif(jit.DISABLED, reason="a matter of memory, and slow")
def test_a_workspace_of_megabytes_is_alive_while_it_is_used():
    """A page of it that was given back early would end the process."""
    d = 24
    options = {"name": "ufodt", "hypotheses": 30_000, "enumerate": False}
    table = table_of(schema_of([2] * d, [1.0] * d, 2), Spec.parse({"learner": options}))
    x, y = stream_of([2] * d, 2, 3, 5, 0.0)
    answer(table, x, y)
    assert 3 <= feature_account(table.model(0)).bought <= 3 * d
    episode = OpenEpisode.begin(table.model(0), np.full(d, np.nan))
    while (feature := episode.next_feature().feature) is not None:
        episode.observe(feature, x[0, feature])
    assert 0 < episode.cost < d
    assert episode.finish(table.model(0))[1].sum() == pytest.approx(1.0)
