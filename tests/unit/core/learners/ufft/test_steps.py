"""Deviations of attributes with few values: naive Bayes knows the step between them
(core/learners/ufft/steps.py).
"""

import json
from pathlib import Path

import numpy as np
import pytest

from core.errors import SnapshotError
from core.learners.ufft.blocks import forest_at
from core.learners.ufft.reading import node_rows
from core.model import snapshot, upgrade, validate
from core.model.model import Model
from core.model_table import ANSWER_ONLY, ModelTable
from core.schema.schema import Attribute, Schema
from core.spec import Spec
from core.streams import open_generator
from tests.unit.core.builders import answer, schema_of, table_of

GOLDEN = Path(__file__).parents[4] / "golden"


def ufft(**learner):
    return Spec.parse({"learner": {"name": "ufft", "drift": "none", **learner}, "evaluation": {"every": 0}})


def trained(spec, x, y, classes=2):
    """Return a table with a model of the records, and the share of answers that were right."""
    table = table_of(schema_of(*[None] * x.shape[1], classes=tuple(map(str, range(classes)))), spec)
    answers = answer(table, x, y)
    return table, float((answers.prediction == y).mean())


def rare_bits(n, columns=40, seed=3):
    """Return columns of 0 and 1 whose ones are rare, a little less so in the second class."""
    draw = np.random.default_rng(seed)
    y = (draw.random(n) < 0.4).astype(np.int32)
    ones = np.where(y[:, np.newaxis] == 1, 0.10, 0.02)
    return (draw.random((n, columns)) < ones).astype(np.float64), y


def steps_of(table):
    model = table.model(0)
    return model.plan.blocks.steps(model.ints, model.first).smallest.tolist()


def test_digits_that_differ_in_one_bit_are_told_apart():
    """A bit that a class has never had is no proof: with one label in ten wrong it comes all the same."""
    digits = [0, 6, 8, 9]
    x, y = open_generator("led", seed=1).take(1200)
    rows = np.isin(y, digits)
    x, y = np.ascontiguousarray(x[rows][:400]), np.searchsorted(digits, y[rows][:400]).astype(np.int32)
    _, without = trained(ufft(step_share=0.0), x, y, classes=4)
    _, right = trained(ufft(), x, y, classes=4)
    assert without < 0.5 < 0.6 < right


@pytest.mark.parametrize(("scale", "offset"), [(255.0, 0.0), (2.0, -1.0), (1e-6, 0.0), (64.0, 4096.0)])
def test_the_unit_of_the_attribute_and_its_zero_do_not_matter(scale, offset):
    """Values of 0 and 255, or of -1 and 1, are answered as those of 0 and 1."""
    x, y = rare_bits(600)
    one, _ = trained(ufft(), x, y)
    other, _ = trained(ufft(), x * scale + offset, y)
    ours, theirs = (
        answer(table, records, mode=ANSWER_ONLY).probability
        for table, records in ((one, x), (other, x * scale + offset))
    )
    assert ours == pytest.approx(theirs, abs=1e-6)
    assert steps_of(other) == pytest.approx([scale] * x.shape[1])


def test_a_nominal_attribute_of_two_values_is_answered_as_a_column_of_0_and_1():
    x, y = rare_bits(600, columns=8)
    numbers, _ = trained(ufft(), x, y)
    table = table_of(schema_of(*[2] * 8, classes=("0", "1")), ufft())
    answer(table, x, y)
    # Two columns a value, one the mirror of the other: their scores count twice.
    ours = answer(numbers, x, mode=ANSWER_ONLY).prediction
    assert (ours == answer(table, x, mode=ANSWER_ONLY).prediction).mean() > 0.9


def test_numbers_without_a_step_are_answered_as_before():
    """The smallest difference of n draws falls as 1/n: a class far narrower than the other stays narrow."""
    draw = np.random.default_rng(0)
    y = draw.integers(0, 2, 1500).astype(np.int32)
    x = draw.normal(size=(1500, 1)) * np.where(y == 1, 1.0, 0.001)[:, np.newaxis] + y[:, np.newaxis] * 0.01
    tables = [trained(ufft(step_share=share), x, y)[0] for share in (0.0, 1.0 / 6.0)]
    ours, theirs = (answer(table, x, mode=ANSWER_ONLY).probability for table in tables)
    assert ours.tolist() == theirs.tolist()
    assert 0.0 < steps_of(tables[1])[0] < 1e-4


def test_rounding_is_no_step_and_missing_values_are_left_out():
    x = np.array([[0.1 + 0.2], [0.3], [np.nan], [np.inf], [0.7], [0.3], [0.3]])
    table, _ = trained(ufft(), x, np.array([0, 1, 0, 1, 0, 1, 0], dtype=np.int32))
    assert steps_of(table) == [pytest.approx(0.4)]
    assert steps_of(trained(ufft(), np.full((9, 1), 3.0), np.arange(9, dtype=np.int32) % 2)[0]) == [0.0]


def test_steps_belong_to_the_state():
    """They come along with a snapshot and with a schema that grows."""
    x, y = rare_bits(300, columns=3)
    whole, _ = trained(ufft(), x, y)
    table, _ = trained(ufft(), x[:150], y[:150])
    restored = Model.restore(table.model(0).snapshot())
    table.vacate(0)
    table.occupy(0, restored)
    answer(table, x[150:], y[150:])
    assert table.model(0).snapshot() == whole.model(0).snapshot()
    small = Schema.of([Attribute("x0"), Attribute("x1"), Attribute("x2")], ("0", "1"), open_attributes=True)
    grown = table_of(small, ufft(delta=1e-12))
    answer(grown, x, y)
    before = steps_of(grown)
    grown.model(0).adopt(small.with_attributes([Attribute("x3")]))
    grown.refresh(0)
    assert steps_of(grown) == [*before, 0.0]
    answer(grown, [[0.0, 0.0, 0.0, 5.0], [0.0, 0.0, 0.0, 7.0]], [0, 1])
    assert steps_of(grown) == [*before, 2.0]
    validate.check(grown.model(0))


def test_a_wrong_step_is_found():
    table, _ = trained(ufft(), *rare_bits(50, columns=3))
    model = table.model(0)
    model.plan.blocks.steps(model.ints, model.first).smallest[2] = -1.0
    assert "attribute 2" in " ".join(validate.problems(model))
    assert "smallest must be a number of at least 0 (the step" in " ".join(validate.problems(model))


def test_a_forest_of_state_version_7_goes_on_as_it_was():
    """``ufft-7.bin`` was written by a release of that version: two forests of pairs, and what it answered."""
    golden = json.loads((GOLDEN / "ufft-7.json").read_text())
    model = Model.restore((GOLDEN / "ufft-7.bin").read_bytes())
    assert model.spec.learner.step_share == 0.0
    assert len(model.block_places) == 2
    validate.check(model)
    table = ModelTable()
    table.add(model)
    answers = answer(table, golden["records"], mode=ANSWER_ONLY)
    assert answers.probability == pytest.approx(np.array(golden["shares"]), rel=1e-12, abs=1e-15)
    answer(table, golden["records"], np.arange(len(golden["records"])) % 3)
    model = table.model(0)
    validate.check(model)
    assert Model.restore(model.snapshot()).snapshot() == model.snapshot()
    assert steps_of(table)[0] == 1.0


@pytest.mark.parametrize("cut", [100, 800, 1000])
def test_words_of_version_7_that_were_cut_off_are_refused(cut):
    model = Model.restore((GOLDEN / "ufft-7.bin").read_bytes())
    old = (GOLDEN / "ufft-7.bin").read_bytes()
    words = np.frombuffer(old[-4 - 8 * snapshot.describe(old).words : -4], dtype="<i8")[:cut]
    with pytest.raises(SnapshotError, match="put together wrongly"):
        snapshot.check_words(model.plan, upgrade.upgraded(model.plan, words, 7))


@pytest.mark.parametrize("given", [{"tau": 0.1}, {"delta": 0.05, "tau": 0.05}])
def test_a_forest_with_early_ties_grows_no_chains(given):
    """Cuts beyond all records, and leaves evaluated with what they replayed, made them thousands deep."""
    x, y = open_generator("sea", seed=1, noise=0.1).take(6000)
    table, _ = trained(ufft(**given), x, y)
    model = table.model(0)
    assert 2 <= model.summary().leaves <= 60
    assert model.summary().depth <= 25
    assert_records_on_both_sides(model)


def nodes_of(model):
    """Return the node records ever used, with the fields of PairNode as columns."""
    count = forest_at(model.ints, model.first).nodes
    return node_rows(model.plan.blocks.nodes_of(model.ints, model.first)[:count])


def assert_records_on_both_sides(model):
    nodes = nodes_of(model)
    inner = nodes[nodes.left >= 0]
    assert (nodes.routed[inner.left] > 0.0).all()
    assert (nodes.routed[inner.right] > 0.0).all()


def test_a_new_leaf_is_evaluated_a_hundred_records_after_its_replay():
    """Whether its memory made it large or small; so does a node that began anew after a drift."""
    x, y = open_generator("sea", seed=1, noise=0.1).take(3000)
    table = table_of(schema_of(None, None, None, classes=("0", "1")), ufft(tau=0.3, delta=0.3))
    splits = 0
    for row in range(len(x)):
        answer(table, x[row], y[row : row + 1])
        model = table.model(0)
        if forest_at(model.ints, model.first).splits > splits:
            splits += 1
            children = nodes_of(model)[-2:]
            assert (children.due == children.first_weight + children.second_weight + 100.0).all()
    assert splits > 3


def test_a_cut_beyond_all_records_is_no_split():
    """Normal densities of two classes may be equal only where no record lies."""
    draw = np.random.default_rng(5)
    y = (np.arange(4000) % 5 == 0).astype(np.int32)
    x = draw.random((4000, 1)) * 10.0
    x[y == 1] = 2.0 + 6.0 * draw.random((int(y.sum()), 1))
    for memory in (1000, 50):
        table, _ = trained(ufft(tau=0.3, delta=0.3, memory=memory), x, y)
        assert_records_on_both_sides(table.model(0))


def test_without_memory_each_side_must_be_expected_to_have_had_a_record():
    x, y = open_generator("sea", seed=1, noise=0.1).take(6000)
    table, _ = trained(ufft(tau=0.1, memory=0), x, y)
    assert table.model(0).summary().leaves <= 60
