"""Gradient boosting and its obvious twin, record by record; MOA's own predictions and hits."""

import json
from pathlib import Path

import pytest

from benchmarks.datasets import MissingDatasetError
from core.learners.sgbt.blocks import boosting_at
from core.learners.sgbt.layout import committees_of
from core.model import validate
from core.model.model import Model
from core.spec import Spec
from tests.golden.renew import SGBT_EAGER, SGBT_STREAMS, crc, sgbt_rows
from tests.naive.rows import STREAMS, mixed
from tests.naive.sgbt import Sgbt
from tests.tiers import pairwise
from tests.unit.core.builders import answer, table_of

GOLDEN = Path(__file__).parents[1] / "golden"
MOA = json.loads((GOLDEN / "moa_sgbt.json").read_text(encoding="utf-8"))
EAGER = {"drift_threshold": 10.0, "switch_period": 50.0, "drop_period": 300.0}
"""SGBT_EAGER as a spec has it."""
CLOSED = [name for name in STREAMS if not STREAMS[name]().open_classes and not STREAMS[name]().open_values]


def boosted(members=5, compat=None, **options):
    learner = {"name": "sgbt", "members": members, "compat": compat} | options
    return Spec.parse({"learner": learner, "evaluation": {"every": 0}})


def subsets_of(model):
    """Return the attributes that each tree sees, by committee."""
    blocks = model.plan.blocks
    boosting = boosting_at(model.ints, model.first)
    trees = [
        [a for a in range(blocks.dims.attributes) if boosting.entry(model.plan.record, number).sees(a)]
        for number in range(blocks.trees_of(blocks.dims.classes))
    ]
    return [trees[i : i + blocks.members] for i in range(0, len(trees), blocks.members)]


def sgbt_data(stream):
    try:
        return sgbt_rows(stream)
    except MissingDatasetError as error:
        pytest.skip(str(error))


def twins(rows, spec):
    """Return the model, and its twin that has answered and learned the same rows with the same shares."""
    table = table_of(rows.schema(), spec)
    answers = answer(table, rows.x, rows.y, rows.weight)
    model = table.model(0)
    validate.check(model)
    seen = subsets_of(model)
    assert len(seen) == committees_of(rows.classes)
    twin = Sgbt(rows.attributes, rows.classes, seen, spec.learner.to_dict())
    for row, (x, label, weight) in enumerate(zip(rows.x, rows.y.tolist(), rows.weight.tolist(), strict=True)):
        shares = twin.shares(x)
        if shares is not None:
            assert answers.probability[row] == pytest.approx(shares, abs=1e-9), row
        twin.learn(x, label, weight)
    assert model.summary().splits == twin.count("splits")
    return model, twin


@pytest.mark.parametrize(
    ("stream", "compat", "attributes"),
    pairwise(
        (stream, compat, share) for stream in CLOSED for compat in (None, "moa") for share in (1.0, 0.5)
    ),
)
def test_the_learner_and_its_twin(stream, compat, attributes):
    rows = STREAMS[stream]().first(600)
    spec = boosted(compat=compat, attributes=attributes, learning_rate=0.1, bins=12)
    model, _ = twins(rows, spec)
    assert model.summary().attempts > 0


@pytest.mark.parametrize(("stream", "n"), [("mixed", 800), ("numeric", 1400)])
def test_alternate_trees_and_those_of_the_twin(stream, n):
    """After half of the rows the classes change places; alternate trees begin, take over and are dropped."""
    rows = STREAMS[stream]().first(n)
    rows.y[n // 2 :] = (rows.y[n // 2 :] + 1) % rows.classes
    learner = EAGER | {"learning_rate": 0.1, "bins": 12, "drift_threshold": 4.0}
    model, twin = twins(rows, boosted(**learner))
    assert twin.count("taken") > 3
    assert twin.count("dropped") > 0
    boosting = boosting_at(model.ints, model.first)
    open_trees = twin.count("begun") - twin.count("taken") - twin.count("dropped")
    assert boosting.alternates <= open_trees  # others went with the subtree around them
    without, twin = twins(rows, boosted(**learner, alternates=False))
    assert twin.count("begun") == 0
    assert without.summary().nodes > model.summary().nodes


def test_alternate_trees_follow_a_drift():
    rows = STREAMS["numeric"]().first(4000)
    rows.y[2000:] = 1 - rows.y[2000:]
    options = {"members": 20, "learning_rate": 0.0125, "drift_threshold": 10.0}
    hits = {}
    for alternates in (True, False):
        table = table_of(rows.schema(), boosted(**options, alternates=alternates))
        answers = answer(table, rows.x, rows.y)
        hits[alternates] = (answers.prediction == rows.y)[2000:].mean()
    assert hits[True] > hits[False] + 0.02


@pytest.mark.parametrize("stream", SGBT_STREAMS)
def test_the_boosting_of_moa(stream):
    """Every prediction with MOA's trees without their faults; with MOA's own about as many hits.

    The first difference from MOA's own on Agrawal is record 128: a leaf of 25 equal targets, which no test
    divides, is split by a merit of 1e-15. On the drifting streams alternate trees begin early and end soon.
    """
    rows = sgbt_data(stream)
    eager = EAGER if stream in SGBT_EAGER else {}
    options = {"members": 10, "compat": "moa", "attributes": 1.0, "bins": len(rows.y)}
    table = table_of(rows.schema, boosted(**options, **eager))
    predictions = answer(table, rows.x, rows.y).prediction
    assert crc(predictions) == MOA[stream]["steady"]
    if stream == "sea":
        assert crc(predictions) == MOA[stream]["predictions"]
    least = 0.04 if eager else 0.01
    assert (predictions == rows.y).sum() >= MOA[stream]["hits"] - least * len(rows.y)
    model = table.model(0)
    assert model.summary().splits > 0
    validate.check(model)
    if eager:
        without = table_of(rows.schema, boosted(**options, alternates=False))
        assert crc(answer(without, rows.x, rows.y).prediction) != MOA[stream]["steady"]


def test_a_split_that_needs_room_ends_in_the_same_words():
    rows = mixed(900)
    rows.y[400:] = (rows.y[400:] + 1) % rows.classes
    whole = table_of(rows.schema(), boosted(**EAGER))
    answer(whole, rows.x, rows.y, rows.weight)
    table = table_of(rows.schema(), boosted(**EAGER))
    for row in range(len(rows.y)):
        one = slice(row, row + 1)
        answer(table, rows.x[one], rows.y[one], rows.weight[one])
        if row % 60 == 0:  # a restored model has no room to spare
            restored = Model.restore(table.model(0).snapshot())
            table = table_of(rows.schema(), boosted(**EAGER), models=0)
            table.add(restored)
    assert table.model(0).snapshot() == whole.model(0).snapshot()
    assert whole.model(0).summary().splits > 8
    boosting = boosting_at(whole.model(0).ints, whole.model(0).first)
    assert boosting.live_nodes < boosting.nodes or boosting.alternates > 0
