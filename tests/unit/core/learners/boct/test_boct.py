"""BOCT: values that were computed apart, records that are hard, and what a model must keep."""

import math
from dataclasses import replace

import numpy as np
import pytest

from core.active.queries.boct_al import ChancesState
from core.errors import ParameterError, SchemaError, SnapshotError
from core.events import GrowthStopped, Split
from core.layout.model import ModelHeader
from core.learners.boct import boct
from core.learners.hoeffding.blocks import tree_at
from core.learners.protocol import build
from core.model import validate
from core.model.model import Model
from core.model_table import ANSWER_ONLY, ModelTable
from core.numeric.credible import heterogeneity_bounds
from core.schema.schema import Attribute, Schema
from core.spec import Spec
from tests.fuzz import mutate
from tests.unit.core.builders import schema_of

KINDS = ["entropy", "variance", "stddev"]


def table_of(schema=None, query="never", **learner):
    """Return a table with one model of the learner."""
    spec = Spec.parse({"learner": {"name": "boct", **learner}, "query": query, "evaluation": {"every": 0}})
    table = ModelTable()
    table.add(Model.create(spec, schema or schema_of(None)))
    return table


def answer(table, x, y=None, mode=0):
    x = np.atleast_2d(np.asarray(x, dtype=np.float64))
    label = np.full(len(x), -1) if y is None else np.asarray(y)
    zeros = np.zeros(len(x), dtype=np.int64)
    return table.answer(zeros, x, label.astype(np.int32), np.ones(len(x)), mode)


def learn(table, x, y):
    x = np.atleast_2d(np.asarray(x, dtype=np.float64))
    n = len(x)
    unknown, unasked = np.full(n, -1, dtype=np.int32), np.zeros(n, dtype=np.bool_)
    return table.learn(
        np.zeros(n, dtype=np.int64), x, np.asarray(y, dtype=np.int32), np.ones(n), unknown, unasked
    )


def first_split(pairs, **learner):
    """Return after how many pairs, one label of each class on each side of a perfect cut, the leaf splits."""
    table = table_of(**learner)
    for n in range(1, pairs + 1):
        answer(table, [[0.0], [1.0]], [0, 1])
        if table.model(0).summary().leaves > 1:
            return n
    return None


@pytest.mark.parametrize("heterogeneity", KINDS)
@pytest.mark.parametrize(("delta", "labels"), [(0.2, 4), (0.1, 6), (0.05, 9), (0.01, 14), (0.001, 22)])
def test_a_perfect_cut(delta, labels, heterogeneity):
    """Pure halves of n labels: installed first at n, whatever the heterogeneity."""
    assert first_split(30, delta=delta, heterogeneity=heterogeneity, sizes="labelled") == labels
    for n in (labels - 1, labels):
        lower = heterogeneity_bounds(2 * n, n, delta, heterogeneity)[1]
        assert (heterogeneity_bounds(n, 0, delta, heterogeneity)[0] < lower) == (n == labels)


@pytest.mark.parametrize(
    ("heterogeneity", "lower", "score"),
    [
        ("entropy", 67.446118, 61.899202),
        ("variance", 24.071534, 21.384840),
        ("stddev", 49.062750, 46.243746),
    ],
)
def test_a_split_of_a_hundred(heterogeneity, lower, score):
    """Parent 50/100, children 40/50 and 10/50: the bounds by number, and the event that carries them."""
    expected = 100.0 * heterogeneity_bounds(100, 50, 0.05, heterogeneity)[1]
    branches = sum(50.0 * heterogeneity_bounds(50, k, 0.05, heterogeneity)[0] for k in (40, 10))
    assert (expected, branches) == (pytest.approx(lower, rel=1e-6), pytest.approx(score, rel=1e-6))
    table = table_of(delta=0.05, heterogeneity=heterogeneity, sizes="pool")
    x = np.repeat([[0.0], [1.0]], 50, axis=0)
    y = np.array(([0] * 10 + [1] * 40) + ([1] * 10 + [0] * 40))
    answer(table, x)
    order = np.random.default_rng(3).permutation(100)
    splits = []
    for i in order:
        splits += [e for e in learn(table, x[i : i + 1], y[i : i + 1]) if isinstance(e, Split)]
    assert splits[0].value == 0.5
    assert splits[0].merits[0] > splits[0].merits[1]
    found = boct.leaves(table.model(0))
    assert found.size[:2].sum() == 100.0


@pytest.mark.parametrize(("delta", "labels"), [(0.2, 2), (0.1, 2), (0.05, 2), (0.01, 3), (0.001, 4)])
def test_hoeffding(delta, labels):
    """The first number of labels at which a perfect cut gains more than the bound [D31]."""
    table = table_of(bound="hoeffding", delta=delta, sizes="labelled")
    for n in range(1, labels + 1):
        answer(table, [[(n - 1) % 2]], [(n - 1) % 2])
        assert (table.model(0).summary().leaves > 1) == (n == labels)


def test_three_intervals_are_wider():
    """The leaf's interval, and each branch's: a perfect cut needs 1 - ε(T) > Σ W ε(T_c)."""
    for delta in (0.2, 0.05, 0.001):
        found = 2 * first_split(80, bound="three-interval", delta=delta, sizes="labelled")

        def width(labels, delta=delta):
            return math.sqrt(math.log(1.0 / delta) / (2.0 * labels))

        assert 1.0 - width(found) > width(found / 2)
        assert 1.0 - width(found - 2) <= width(found / 2 - 1)


def test_constant_attributes_never_split():
    table = table_of(schema_of(None, 3))
    answer(table, np.tile([2.5, 1.0], (500, 1)), np.arange(500) % 2)
    answer(table, np.full((500, 2), np.nan), np.arange(500) % 2)
    assert table.model(0).summary().leaves == 1
    validate.check(table.model(0))


def noisy(n=400, d=3, seed=0, noise=0.1):
    draw = np.random.default_rng(seed)
    x = draw.random((n, d)).round(2)
    return x, ((x[:, 0] > 0.5) ^ (draw.random(n) < noise)).astype(np.int32)


def test_swapped_labels_mirror_predictions_and_keep_the_tree():
    x, y = noisy()
    one, other = table_of(schema_of(None, None, None)), table_of(schema_of(None, None, None))
    splits = [
        [(e.node, e.attribute, e.value) for e in answer(t, x, z).events]
        for t, z in ((one, y), (other, 1 - y))
    ]
    assert splits[0] == splits[1]
    assert len(splits[0]) > 2
    found, mirrored = boct.leaves(one.model(0)), boct.leaves(other.model(0))
    assert (found.labels - found.positives == mirrored.positives).all()
    draw = np.random.default_rng(7).random((300, 3))
    predictions = [answer(t, draw, mode=ANSWER_ONLY).prediction for t in (one, other)]
    ties = 2 * found.positives == found.labels
    if not ties.any():
        assert (predictions[0] == 1 - predictions[1]).all()


def test_half_of_the_labels_is_enough_for_class_1():
    table = table_of()
    assert answer(table, [[0.0]]).prediction.tolist() == [0]
    learn(table, [[0.0]], [0])
    assert answer(table, [[0.0]]).prediction.tolist() == [0]
    learn(table, [[0.0]], [1])
    found = answer(table, [[0.0]])
    assert found.prediction.tolist() == [1]
    assert found.probability.tolist() == [[0.5, 0.5]]


def test_both_branches_are_looked_at_at_once():
    """Labels of four quarters that are known all at once: the root's branches split with it."""
    table = table_of(schema_of(None), sizes="labelled", delta=0.2, exhaustive=True)
    x = np.repeat([[0.0], [1.0], [2.0], [3.0]], 40, axis=0)
    y = np.repeat([0, 1, 0, 1], 40)
    order = np.random.default_rng(0).permutation(160)
    events = [e for e in answer(table, x[order], y[order]).events if isinstance(e, Split)]
    rows = [e.row for e in events]
    assert len(rows) == 3
    assert len(set(rows)) < 3, "a branch split with the label that split its leaf"
    assert table.model(0).evaluation().accuracy > 0.5


@pytest.mark.parametrize("sizes", ["stream", "labelled", "pool"])
@pytest.mark.parametrize("capacity", [2, 5, 2000])
def test_a_snapshot_at_any_record_changes_nothing(sizes, capacity):
    x, y = noisy(160, seed=4)
    x[np.random.default_rng(1).random(x.shape) < 0.1] = np.nan
    y[::3] = -1
    schema = schema_of(None, None, None)
    whole = table_of(schema, sizes=sizes, capacity=capacity, query="boct_al")
    answer(whole, x, y)
    table = table_of(schema, sizes=sizes, capacity=capacity, query="boct_al")
    for i in range(len(x)):
        answer(table, x[i : i + 1], y[i : i + 1])
        data = table.model(0).snapshot()
        again = ModelTable()
        again.add(Model.restore(data))
        assert again.model(0).snapshot() == data
        table = again
    assert table.model(0).snapshot() == whole.model(0).snapshot()
    validate.check(whole.model(0))


def test_attributes_values_and_classes_may_come_late():
    """What a schema takes in later is as if it had been there from the beginning."""
    x, y = noisy(300, 3, seed=5)
    x[:, 2] = np.where(np.arange(300) < 120, x[:, 2] > 0.5, np.floor(3 * x[:, 2]))
    x[:40, 1] = np.nan
    y[:60] = 0
    first = Schema.of([Attribute("a")], classes_open=True, max_classes=2, open_attributes=True)
    names = [Attribute("a"), Attribute("b"), Attribute("c", "nominal", ("0", "1"), open=True)]
    wide = first.with_attributes([names[1], replace(names[2], values=())])
    late = table_of(first.with_class("0"), delta=0.01)
    early_schema = (
        wide.with_values([(2, "0")])
        .with_values([(2, "1")])
        .with_values([(2, "2")])
        .with_class("0")
        .with_class("1")
    )
    early = table_of(early_schema, delta=0.01)
    x[:40, 2] = np.nan
    for start, schema in (
        (0, first.with_class("0")),
        (40, wide.with_values([(2, "0")]).with_values([(2, "1")]).with_class("0")),
        (60, wide.with_values([(2, "0")]).with_values([(2, "1")]).with_class("0").with_class("1")),
        (120, early_schema),
    ):
        model = late.model(0)
        if schema is not model.schema:
            model.adopt(schema)
            late.refresh(0)
        end = {0: 40, 40: 60, 60: 120, 120: 300}[start]
        answer(late, x[start:end, : model.schema.n_attributes], y[start:end])
    answer(early, x, y)
    assert late.model(0).summary() == early.model(0).summary()
    assert late.model(0).summary().leaves > 1
    assert late.model(0).snapshot() == early.model(0).snapshot()


def test_bytes_bound_rows_and_growth():
    """A model of few bytes keeps few rows, samples its labels, and stops; restored, it does the same."""
    x, y = noisy(3000, 3, seed=6, noise=0.3)
    most = 40_000
    finals = []
    for cut in (3000, 250):
        table = table_of(schema_of(None, None, None), max_bytes=most, delta=0.3)
        events = []
        for start in range(0, 3000, cut):
            events += answer(table, x[start : start + cut], y[start : start + cut]).events
            table2 = ModelTable()
            table2.add(Model.restore(table.model(0).snapshot()))
            table = table2
            assert table.model(0).nbytes <= most
        validate.check(table.model(0))
        finals.append(table.model(0).snapshot())
        assert any(isinstance(e, GrowthStopped) for e in events) == table.model(0).summary().growth_stopped
    assert finals[0] == finals[1]
    assert boct.leaves(table.model(0)).labels.sum() < 3000
    with pytest.raises(SchemaError, match="max_bytes=500 must be at least"):
        table_of(max_bytes=500)


def test_leaves_are_bounded():
    x, y = noisy(2000, 3, seed=6)
    table = table_of(schema_of(None, None, None), max_leaves=3, delta=0.4)
    events = answer(table, x, y).events
    assert [type(e) for e in events] == [Split, Split, GrowthStopped]
    assert table.model(0).summary().leaves == 3
    assert table.model(0).summary().growth_stopped


def test_a_leaf_beyond_its_capacity_keeps_a_uniform_sample_of_its_labels():
    """The mean position of those kept is that of all; T and k count the rows kept."""
    positions = []
    for seed in range(30):
        spec = Spec.parse(
            {
                "learner": {"name": "boct", "capacity": 20},
                "query": "never",
                "seed": seed,
                "evaluation": {"every": 0},
            }
        )
        table = ModelTable()
        table.add(Model.create(spec, schema_of(None)))
        n = 400
        answer(table, np.arange(n)[:, None], np.zeros(n))
        found = boct.leaves(table.model(0))
        assert found.labels.tolist() == [20]
        t = table.model(0).first
        blocks = table.model(0).plan.blocks
        positions += blocks.rows_of(table.model(0).ints, t).values[:20, 0].tolist()
    assert np.mean(positions) == pytest.approx(199.5, abs=4 * 400 / math.sqrt(12 * 600))


def kept_positions(model):
    """Return for each leaf, by node, the first attribute of the labelled rows that it keeps."""
    blocks, kept = model.plan.blocks, []
    tree, rows = blocks.view(model.ints, model.first), blocks.rows_of(model.ints, model.first)
    for number in boct.leaves(model).node.tolist():
        leaf = blocks.leaf_of(tree.block, tree.block.node(number))
        first = int(leaf.first)
        kept.append(rows.values[first : first + int(leaf.labels), 0].tolist())
    return kept


def split_when_full(seed, label_after):
    """Let a leaf of 40 rows get 100 labels of one class, then split at about 0.5; labels after it are given.

    Return when it split, and the records, by number, that branches keep then, after ten more and at last.
    """
    table = table_of(capacity=40, max_leaves=2, delta=0.2)
    x = np.random.default_rng(seed).random((3000, 1))
    number = {value: i for i, value in enumerate(x[:, 0].tolist())}
    first, kept = len(x), []
    for i in range(len(x)):
        known = 0 if i < 100 else x[i, 0] > 0.5 if i <= first else label_after(i)
        answer(table, x[i : i + 1], [int(known)])
        if first == len(x) and table.model(0).summary().leaves == 2:
            first = i
        if i in (first, first + 10, first + 200):
            kept.append([{number[value] for value in leaf} for leaf in kept_positions(table.model(0))])
        if i == first + 200:
            break
    return first, kept


def test_which_rows_a_branch_keeps_does_not_depend_on_labels():
    """Other labels after the split, the same rows; what comes while a branch has room is kept, all of it."""
    for seed in range(2):
        first, kept = split_when_full(seed, lambda i: i % 2)
        assert first > 100, "the leaf was full"
        assert split_when_full(seed, lambda i: (i // 3) % 2) == (first, kept)
        at_first, soon, late = (set.union(*leaves) for leaves in kept)
        assert len(at_first) == 40
        assert soon == at_first | set(range(first + 1, first + 11)), "ten of the next ten"
        assert max(map(len, kept[2])) == 40
        assert len(late) > 60


def test_a_pool_is_labelled_row_by_row():
    """Rows enter without label; W is exact; a label goes to a row that is there, not to a new one."""
    x, y = noisy(300, 2, seed=8)
    table = table_of(schema_of(None, None), sizes="pool", delta=0.3)
    answer(table, x)
    assert boct.leaves(table.model(0)).size.tolist() == [300.0]
    order = np.random.default_rng(0).permutation(300)
    for i in order:
        learn(table, x[i : i + 1], y[i : i + 1])
    found = boct.leaves(table.model(0))
    assert len(found.node) > 1
    assert found.labels.sum() == found.size.sum() == 300
    ends = boct.leaf_of(table.model(0), x)
    assert [int((ends == node).sum()) for node in found.node] == found.labels.tolist()
    assert [int(y[ends == node].sum()) for node in found.node] == found.positives.tolist()


def test_the_toy_problem_has_one_test_a_node():
    """Cells are halved along x₁, x₂, x₁, …, down to 64 of them; W is that of the cell."""
    table = table_of(schema_of(None, None), sizes="toy", delta=0.35)
    draw = np.random.default_rng(0)
    cells = (draw.integers(0, 8, (6000, 2)) + 0.5) / 8
    chance = 1.0 / (1.0 + np.exp(-5.0 * (cells[:, 1] - np.sqrt(cells[:, 0]))))
    events = answer(table, cells, draw.random(6000) < chance).events
    splits = [e for e in events if isinstance(e, Split)]
    assert splits[0].attribute == 0 and splits[0].value == 0.5
    assert {e.value * 8 % 1 for e in splits} == {0.0}
    found = boct.leaves(table.model(0))
    assert len(found.node) > 8
    assert found.size.sum() == 1.0
    assert table.model(0).summary().depth <= 6


@pytest.mark.parametrize(
    ("parameters", "rule"),
    [
        ({"delta": 0.5}, "delta=0.5 must be below 0.5 with bound 'credible'"),
        ({"delta": 0.0}, "delta=0.0 must be above 0.0"),
        ({"delta": 9e-26}, "delta=9e-26 must be at least 1e-25 .*; take 1e-25 or more"),
        ({"bound": "hoeffding", "heterogeneity": "variance"}, "heterogeneity='variance' must be 'entropy'"),
        ({"sizes": "volume"}, "sizes='volume' must be one of"),
    ],
)
def test_parameters_that_mean_nothing(parameters, rule):
    with pytest.raises(ParameterError, match=rule):
        build({"name": "boct", **parameters})


def test_hoeffding_takes_any_delta():
    assert build({"name": "boct", "bound": "hoeffding", "delta": 1e-60}).delta == 1e-60
    assert build({"name": "boct", "bound": "hoeffding", "delta": 0.9}).delta == 0.9


@pytest.mark.parametrize("kinds", [(None,), (None, None, None), (None, 2)])
def test_the_toy_problem_is_that_of_the_unit_square(kinds):
    with pytest.raises(SchemaError, match=r"sizes='toy' must go with two numeric attributes.*take 'stream'"):
        table_of(schema_of(*kinds), sizes="toy")


def test_ties_go_to_the_first_attribute_and_the_smallest_cut():
    """Two columns that are the same, and two cuts that are mirror images of each other."""
    table = table_of(schema_of(None, None), sizes="labelled", delta=0.2)
    x = np.repeat([[0.0], [1.0]], 6, axis=0)
    events = answer(table, np.hstack((x, x)), np.repeat([0, 1], 6)).events
    assert [(e.attribute, e.value) for e in events if isinstance(e, Split)] == [(0, 0.5)]
    table = table_of(schema_of(None), sizes="pool", delta=0.2)
    x, y = np.repeat([[0.0], [1.0], [2.0]], 12, axis=0), np.repeat([0, 1, 0], 12)
    answer(table, x)
    found = [
        e for i in np.random.default_rng(2).permutation(36) for e in learn(table, x[i : i + 1], y[i : i + 1])
    ]
    assert found[0].value in (0.5, 1.5)
    mirrored = table_of(schema_of(None), sizes="pool", delta=0.2, exhaustive=True)
    answer(mirrored, x)
    again = [
        e
        for i in np.random.default_rng(2).permutation(36)
        for e in learn(mirrored, x[i : i + 1], y[i : i + 1])
    ]
    assert [e.value for e in again] == [e.value for e in found]


def test_duplicates_infinities_and_missing_values_are_records_as_others():
    """The same record many times, with either label, beside it NaN and ±∞: all of them are counted."""
    table = table_of(schema_of(None, None), delta=0.3)
    x = np.tile([[1.0, 2.0], [1.0, 2.0], [np.nan, np.inf], [-np.inf, np.nan], [5.0, 2.0]], (40, 1))
    answer(table, x, np.tile([0, 1, 1, 1, 0], 40))
    model = table.model(0)
    validate.check(model)
    found = boct.leaves(model)
    assert (found.labels.sum(), found.positives.sum(), model.summary().labels) == (200, 120, 200)


def test_two_classes_at_most():
    assert Spec.parse("boct").max_classes == 2
    with pytest.raises(SchemaError, match=r"classes=3 must be at most 2 with 'boct'.*take h-tree"):
        table_of(schema_of(None, classes=("a", "b", "c")))


def test_weights_are_refused_by_row_value_and_rule():
    table = table_of()
    weights = np.array([1.0, 2.0])
    for label in ([-1, -1], [0, 1]):
        with pytest.raises(SchemaError, match=r"row 1: weight=2.0 must be 1 with 'boct'.*h-tree"):
            table.answer(np.zeros(2, dtype=np.int64), np.zeros((2, 1)), np.array(label, np.int32), weights)
    assert table.model(0).summary().records == 0


def test_a_label_of_an_unknown_class_is_refused():
    table = table_of()
    with pytest.raises(SchemaError, match=r"label=2 of row 0 must be below 2"):
        answer(table, [[0.0]], [2])


@pytest.fixture(scope="module")
def grown():
    """Return a model with some leaves."""
    x, y = noisy(200, 2, seed=3)
    table = table_of(schema_of(None, None), delta=0.3, query="boct_al")
    answer(table, x, y)
    assert table.model(0).summary().leaves > 2
    return table.model(0)


@pytest.mark.parametrize(
    ("record", "word", "value", "rule"),
    [
        ("header", "used", -1, "used must be from 0 to capacity"),
        ("header", "tidy", 2, "tidy must be from 0 to 1"),
        ("header", "limit", -1, "limit must be from 0 to 2\\*\\*53"),
        ("header", "live", 1, "the number of rows must be the sum of the leaves' rows"),
        ("leaf", "first", -1, "first must be at least 0"),
        ("leaf", "first", 10**9, "extents of rows must lie inside of the block"),
        ("leaf", "room", 10**9, "extents of rows must lie inside of the block"),
        ("leaf", "count", 10**9, "count must be at most room"),
        ("leaf", "labels", 10**9, "labels must be at most count"),
        ("leaf", "positives", 10**9, "positives must be from 0 to labels"),
        ("leaf", "positives", 0, "labelled rows come first, .* their number"),
        ("leaf", "horizon", -1, "horizon must be from 0 to 2\\*\\*53"),
        ("leaf", "gone", 1 << 60, "gone must be from 0 to 2\\*\\*53"),
        ("query", "due", -1, "due must be from 0 to 2\\*\\*53"),
    ],
)
def test_a_foreign_word_is_refused_by_name_and_rule(grown, record, word, value, rule):
    words = mutate.words_of(grown)
    t, blocks = ModelHeader.over(words).first, grown.plan.blocks
    tree = tree_at(words, t)
    last = tree.node(tree.nodes - 1)
    records = {
        "header": blocks.header_of(words, t),
        "leaf": blocks.leaf_of(tree, last),
        "query": ChancesState(words, words.view(np.float64), grown.plan.record.query_state),
    }
    assert getattr(records[record], word) != value
    setattr(records[record], word, value)
    with pytest.raises(SnapshotError, match=rule):
        Model.restore(mutate.wrapped(grown, words))
