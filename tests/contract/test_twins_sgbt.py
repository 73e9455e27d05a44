"""Gradient boosting and its obvious twin, record by record; MOA's own predictions and hits."""

import json

import pytest

from core.learners.sgbt.blocks import boosting_at
from core.learners.sgbt.layout import committees_of
from core.model import validate
from core.model.model import Model
from core.spec import Spec
from tests.contract.test_parity_moa import GOLDEN, rows_of
from tests.golden.renew import SGBT_STREAMS, crc, sgbt_rows
from tests.naive.rows import STREAMS, mixed
from tests.naive.sgbt import Sgbt
from tests.tiers import pairwise
from tests.unit.core.builders import answer, table_of

MOA = json.loads((GOLDEN / "moa_sgbt.json").read_text(encoding="utf-8"))
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


@pytest.mark.parametrize(
    ("stream", "compat", "attributes"),
    pairwise(
        (stream, compat, share) for stream in CLOSED for compat in (None, "moa") for share in (1.0, 0.5)
    ),
)
def test_the_learner_and_its_twin(stream, compat, attributes):
    rows = STREAMS[stream]().first(600)
    spec = boosted(compat=compat, attributes=attributes, learning_rate=0.1, bins=12)
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
    assert model.summary().splits == twin.splits
    assert model.summary().attempts > 0


@pytest.mark.parametrize("stream", SGBT_STREAMS)
def test_the_boosting_of_moa(stream):
    """Every prediction with a criterion that drops rounding; with MOA's own about as many hits.

    The first difference on Agrawal is record 128: a leaf of 25 equal targets, which no test divides, is split
    by a merit of 1e-15.
    """
    rows_of(stream)  # skips without the data
    rows = sgbt_rows(stream)
    table = table_of(rows.schema, boosted(members=10, compat="moa", attributes=1.0, bins=len(rows.y)))
    predictions = answer(table, rows.x, rows.y).prediction
    assert crc(predictions) == MOA[stream]["steady"]
    if stream == "sea":
        assert crc(predictions) == MOA[stream]["predictions"]
    assert (predictions == rows.y).sum() >= MOA[stream]["hits"] - 0.01 * len(rows.y)
    assert table.model(0).summary().splits > 0


def test_a_split_that_needs_room_ends_in_the_same_words():
    rows = mixed(500)
    whole = table_of(rows.schema(), boosted())
    answer(whole, rows.x, rows.y, rows.weight)
    table = table_of(rows.schema(), boosted())
    for row in range(len(rows.y)):
        one = slice(row, row + 1)
        answer(table, rows.x[one], rows.y[one], rows.weight[one])
        if row % 60 == 0:  # a restored model has no room to spare
            restored = Model.restore(table.model(0).snapshot())
            table = table_of(rows.schema(), boosted(), models=0)
            table.add(restored)
    assert table.model(0).snapshot() == whole.model(0).snapshot()
    assert whole.model(0).summary().splits > 8
