"""Online boosting and its obvious twin, record by record; with MOA's rules, MOA's own predictions."""

import json

import numpy as np
import pytest

from core.model import validate
from core.model.model import Model
from core.model_table import ModelTable
from core.spec import Spec
from tests.contract.test_parity_moa import GOLDEN, rows_of
from tests.golden.renew import BOOST_STREAMS, crc
from tests.naive.boosting import OzaBoost
from tests.naive.compare import tree_options
from tests.naive.rows import STREAMS, mixed
from tests.tiers import pairwise
from tests.unit.core.builders import answer, table_of

BOOST = json.loads((GOLDEN / "moa_boost.json").read_text(encoding="utf-8"))
MEMBER = {"name": "h-tree", "grace_period": 40, "delta": 0.05}


def boosted(mean, compat=None, members=4, **options):
    learner = {"name": "ozaboost", "members": members, "poisson": mean, "compat": compat, "member": MEMBER}
    return Spec.parse({"learner": learner | options, "evaluation": {"every": 0}})


def weights_of(model):
    """Return the sums of right and wrong weights of each member."""
    blocks = model.plan.blocks
    members = (blocks.record(model.ints, model.first, i) for i in range(blocks.members))
    return [(state.right, state.wrong) for state in (member.boosted(blocks.boosted_at) for member in members)]


@pytest.mark.parametrize(
    ("stream", "mean", "compat"),
    pairwise(
        (stream, mean, compat) for stream in STREAMS for mean in (0.0, 1.0, 3.0) for compat in (None, "moa")
    ),
)
def test_the_learner_and_its_twin(stream, mean, compat):
    rows = STREAMS[stream]().first(900)
    spec = boosted(mean, compat)
    records = {
        "attributes": list(rows.attributes),
        "open": frozenset(rows.open_values),
        "classes": 0 if rows.open_classes else rows.classes,
    }
    twin = OzaBoost(tree_options(spec.learner.member.to_dict(), records), 4, mean)
    table = table_of(rows.schema(known=rows.classes), spec)
    answers = answer(table, rows.x, rows.y, rows.weight)
    for row, (x, label, weight) in enumerate(zip(rows.x, rows.y.tolist(), rows.weight.tolist(), strict=True)):
        predicted, shares = twin.predict(x, weight)
        assert answers.prediction[row] == predicted, row
        assert answers.probability[row, : len(shares)] == pytest.approx(shares, abs=1e-9), row
        twin.learn(x, label, weight)
    model = table.model(0)
    validate.check(model)
    sums = list(zip(twin.right, twin.wrong, strict=True))
    assert np.array(weights_of(model)) == pytest.approx(np.array(sums), rel=1e-9)
    assert model.summary().splits == sum(tree.splits for tree in twin.trees) > 0


@pytest.mark.parametrize(("stream", "leaf_model"), BOOST_STREAMS)
def test_the_boosting_of_moa(stream, leaf_model):
    """Every prediction, without chance (MOA's pureBoost)."""
    rows = rows_of(stream)
    member = {"name": "h-tree", "grace_period": 50, "delta": 0.01, "leaf_model": leaf_model}
    table = ModelTable()
    table.add(Model.create(boosted(0.0, "moa", members=10, member=member), rows.schema))
    n = BOOST_STREAMS[stream, leaf_model]
    answers = answer(table, rows.x[:n], rows.y[:n])
    assert crc(answers.prediction) == BOOST[stream]
    assert table.model(0).summary().splits > 0


def test_a_split_that_needs_room_ends_in_the_same_words():
    """A member votes after its split, whether compiled code made it or Python, which gives trees room."""
    rows = mixed(1200)
    spec = boosted(1.0)
    whole = table_of(rows.schema(), spec)
    answer(whole, rows.x, rows.y, rows.weight)
    table = table_of(rows.schema(), spec)
    for row in range(len(rows.y)):
        one = slice(row, row + 1)
        answer(table, rows.x[one], rows.y[one], rows.weight[one])
        if row % 60 == 0:  # a restored model has no room to spare
            restored = Model.restore(table.model(0).snapshot())
            table = ModelTable()
            table.add(restored)
    assert table.model(0).snapshot() == whole.model(0).snapshot()
    assert whole.model(0).summary().splits > 8
