"""UFFT: planting, fusion, splits with memory, drifts of nodes, bytes and bounds of the work (section 22)."""

import dataclasses
import json
import math

import numpy as np
import pytest

from core.errors import ParameterError, SchemaError
from core.events import Drift, GrowthStopped, Split
from core.layout.plan import PlanRecord
from core.learners.ufft.blocks import forest_at
from core.learners.ufft.layout import (
    FREED,
    PairForestParameters,
    pair_number,
    pair_of,
)
from core.learners.ufft.reading import node_rows
from core.learners.ufft.waiting import next_due
from core.model import validate
from core.model.model import Model
from core.model_table import ANSWER_ONLY
from core.schema.schema import Attribute, Schema
from core.spec import Spec
from tests.unit.core.builders import answer, schema_of, table_of

EAGER = {"delta": 0.01, "tau": 0.05}


def ufft(**learner):
    return Spec.parse({"learner": {"name": "ufft", **learner}, "evaluation": {"every": 0, "window": 10}})


def blobs(n, classes=3, columns=4, seed=0, spread=2.0):
    """Return records of classes that lie around centres of their own."""
    draw = np.random.default_rng(seed)
    y = draw.integers(0, classes, n)
    return draw.normal(0.0, 1.0, (n, columns)) + spread * np.eye(max(classes, columns))[y, :columns], y


def lone(n, columns=4, seed=0):
    """Return records of two classes of which the first column alone knows."""
    draw = np.random.default_rng(seed)
    y = draw.integers(0, 2, n)
    x = draw.normal(0.0, 1.0, (n, columns))
    x[:, 0] += 3.0 * y
    return x, y


def model_of(spec, x, y, classes="abc", kinds=None):
    table = table_of(schema_of(*(kinds or [None] * x.shape[1]), classes=tuple(classes)), spec)
    return table, answer(table, x, y)


def forest_of(model):
    return forest_at(model.ints, model.first)


def nodes_of(model):
    """Return the records of nodes of trees, int64[node, word]."""
    records = model.plan.blocks.nodes_of(model.ints, model.first)[: forest_of(model).nodes]
    return records[node_rows(records).left != FREED]


def weights_of(model):
    """Return the weights of the nodes of trees, float64[node, class of the pair]."""
    nodes = node_rows(nodes_of(model))
    return np.column_stack([nodes.first_weight, nodes.second_weight])


def test_pairs_are_numbered_so_that_a_class_appends():
    numbers = [int(pair_number(i, j)) for j in range(12) for i in range(j)]
    assert numbers == list(range(66))
    assert [pair_of(number) for number in numbers] == [(i, j) for j in range(12) for i in range(j)]


def test_two_classes_have_one_tree_and_fusion_is_the_identity():
    x, y = blobs(400, 2)
    table, _ = model_of(ufft(leaf_model="mc", delta=1e-9), x, y, "ab")
    model = table.model(0)
    assert forest_of(model).trees == 1
    weights = weights_of(model)[0]
    shares = answer(table, x[:1], mode=ANSWER_ONLY).probability[0]
    assert shares.tolist() == (weights / weights.sum()).tolist()


def test_fusion_is_the_sum_of_the_shares():
    """Section 22.1: (.7,.3), (.4,.6), (.2,.8) are 1.1, 0.5 and 1.4, and class 2 wins."""
    table = table_of(schema_of(None, classes=("a", "b", "c")), ufft(leaf_model="mc", drift="none"))
    answer(table, np.zeros((3, 1)), [0, 1, 2])
    model = table.model(0)
    nodes = node_rows(model.plan.blocks.nodes_of(model.ints, model.first)[: forest_of(model).nodes])
    for number, pair in enumerate(map(pair_of, nodes.pair.tolist())):
        share = {(0, 1): 0.7, (0, 2): 0.4, (1, 2): 0.2}[pair]
        nodes.first_weight[number], nodes.second_weight[number] = 10 * share, 10 * (1 - share)
    found = answer(table, np.zeros((1, 1)), mode=ANSWER_ONLY)
    assert found.probability[0] * 3 == pytest.approx([1.1, 0.5, 1.4])
    assert found.prediction.tolist() == [2]


def test_a_class_that_was_never_met_scores_halves_only():
    x, y = blobs(300, 3)
    table, _ = model_of(ufft(), x, y, "abcde")
    shares = answer(table, x[:20], mode=ANSWER_ONLY).probability * 10
    assert (shares[:, 3:] == 0.5 * 4).all()
    assert forest_of(table.model(0)).trees == 3


def test_one_class_has_no_tree_and_is_predicted():
    table = table_of(schema_of(None, classes=("a", "b", "c")), ufft())
    answer(table, np.zeros((5, 1)), [2] * 5)
    found = answer(table, [[1.0]])
    assert found.prediction.tolist() == [2]
    assert found.probability.tolist() == [[0.0, 0.0, 1.0]]
    assert forest_of(table.model(0)).nodes == 0


def test_frozen_models_are_not_written_to():
    x, y = blobs(300)
    table, _ = model_of(ufft(leaf_model="idbd", **EAGER), x, y)
    before = table.model(0).ints.copy()
    answer(table, x, mode=ANSWER_ONLY)
    assert np.array_equal(table.model(0).ints, before)


def parameters_of_model(spec):
    plan = PlanRecord.over(table_of(schema_of(None), spec).model(0).plan.ints)
    return PairForestParameters(plan.ints, plan.floats, plan.learner_at)


def test_an_evaluation_is_due_as_hoeffding_says():
    """Section 22.4: δ = 5e-6; g = 0.1 gives 644.961, g = 0.05 2579.844; the wait is from 100 to 2,000."""
    p = parameters_of_model(ufft())
    needed = np.log(2 / 5e-6)
    assert needed / (2 * 0.1**2) == pytest.approx(644.9610, abs=1e-4)
    assert needed / (2 * 0.05**2) == pytest.approx(2579.8440, abs=1e-4)
    assert next_due(p, 100.0, 0.1) == 645.0
    assert next_due(p, 600.0, 0.1) == 700.0
    assert next_due(p, 100.0, 0.05) == 2100.0
    assert next_due(p, 700.0, 0.05) == 2580.0
    assert next_due(p, 100.0, 0.0) == 2100.0
    assert next_due(parameters_of_model(ufft(nmin="slide")), 100.0, 0.1) == 365.0


def test_children_begin_with_what_the_memory_holds_of_their_node():
    """The two children's counts add up to the records of the memory that reach the split node."""
    x, y = lone(120)
    table = table_of(schema_of(None, None, None, None), ufft(memory=60, drift="none", **EAGER))
    splits = []
    for row in range(len(x)):
        splits += [e for e in answer(table, x[row], y[row : row + 1]).events if isinstance(e, Split)]
        if splits:
            break
    model = table.model(0)
    root, left, right = weights_of(model)
    assert root.sum() == 100
    assert (left + right).sum() == 60
    last = y[row - 59 : row + 1]
    assert (left + right).tolist() == [(last == 0).sum(), (last == 1).sum()]
    assert splits[0].pair == (0, 1)
    assert splits[0].depth == 0


def test_without_memory_children_begin_empty_and_their_node_answers():
    x, y = lone(120)
    table = table_of(schema_of(*[None] * 4), ufft(memory=0, drift="none", leaf_model="mc", **EAGER))
    rows = iter(zip(x, y, strict=True))
    while not any(
        isinstance(event, Split) for event in answer(table, *map(np.atleast_1d, next(rows))).events
    ):
        pass
    model = table.model(0)
    weights = weights_of(model)
    assert weights[1:].sum() == 0.0
    shares = answer(table, x[:5], mode=ANSWER_ONLY).probability
    assert shares.tolist() == [(weights[0] / weights[0].sum()).tolist()] * 5


@pytest.mark.parametrize("drift", ["none", {"name": "ddm", "drift": 1e300, "warning": 1e300}])
def test_nothing_is_pruned_with_an_infinite_alpha(drift):
    x, y = lone(1500)
    y = np.where(np.arange(1500) > 700, 1 - y, y)
    table, found = model_of(ufft(drift=drift, **EAGER), x, y, "ab")
    assert forest_of(table.model(0)).restarts == 0
    assert not [event for event in found.events if isinstance(event, Drift)]
    assert forest_of(table.model(0)).splits > 0
    _, drifting = model_of(ufft(**EAGER), x, y, "ab")
    assert "subtree pruned" in {e.action for e in drifting.events if isinstance(e, Drift)}


def test_a_drift_names_pair_node_and_depth():
    x, y = blobs(2000, 3)
    y = np.where(np.arange(2000) > 900, (y + 1) % 3, y)
    table, found = model_of(ufft(**EAGER), x, y)
    drifts = [event for event in found.events if isinstance(event, Drift)]
    assert drifts
    assert {drift.pair for drift in drifts} == {(0, 1), (0, 2), (1, 2)}
    assert all(drift.level == "drift" and drift.detector == "ddm" for drift in drifts)
    assert all((drift.node or 0) >= 1 and 0.0 < drift.error_rate <= 1.0 for drift in drifts)
    roots = {d.node for d in drifts if d.depth == 0}
    assert roots <= {1, 2, 3}
    validate.check(table.model(0))


def test_integer_weights_are_repeated_records():
    x, y = blobs(90, 2)
    weight = np.random.default_rng(1).integers(1, 4, 90)
    table, _ = model_of(ufft(drift="none", leaf_model="nb", delta=1e-12), x[:0], y[:0], "ab")
    other = table_of(table.model(0).schema, table.model(0).spec)
    answer(table, x, y, weight.astype(float))
    answer(other, np.repeat(x, weight, axis=0), np.repeat(y, weight))
    one, two = (t.model(0).plan.blocks.statistics(nodes_of(t.model(0))) for t in (table, other))
    assert one == pytest.approx(two, rel=1e-9)
    ours, theirs = (answer(t, x, mode=ANSWER_ONLY).probability for t in (table, other))
    assert ours == pytest.approx(theirs, rel=1e-9)


def test_equal_attributes_have_no_candidate():
    y = np.arange(900) % 2
    table, found = model_of(ufft(**EAGER, drift="none"), np.full((900, 3), 7.0), y, "ab")
    assert forest_of(table.model(0)).attempts > 0
    assert not found.events


def test_nominal_attributes_are_columns():
    draw = np.random.default_rng(0)
    x = np.column_stack([draw.integers(0, 3, 600), draw.normal(size=600)])
    y = (x[:, 0] == 1).astype(int)
    table, found = model_of(ufft(**EAGER), x, y, "ab", kinds=(3, None))
    (split,) = [event for event in found.events if isinstance(event, Split)][:1]
    assert (split.attribute, split.test, split.value) == (0, "category", 1.0)
    model = table.model(0)
    assert [str(branch) for branch in model.explain(np.array([1.0, 0.0]))][:1] == ["x0 = 1"]
    assert [str(branch) for branch in model.explain(np.array([2.0, 0.0]))][:1] == ["x0 != 1"]
    assert answer(table, [[1.0, 0.0], [2.0, 0.0], [0.0, 0.0]], mode=ANSWER_ONLY).prediction.tolist() == [
        1,
        0,
        0,
    ]


def test_values_that_a_class_has_never_had_leave_what_the_others_say():
    """Two scores of 1e18, one against each class, cancel; the small scores beside them are not lost."""
    table = table_of(schema_of(2, 2, None), ufft(drift="none", delta=1e-12))
    answer(table, [[0.0, 0.0, 0.0]], [0])  # the tree is planted with the next one
    x = [each for i in range(4) for each in ([i % 2, 0.0, 3.0 + i], [0.0, i == 0, 0.5 * i])]
    answer(table, x, [1, 0] * 4)
    (node,) = nodes_of(table.model(0))
    mean, m2 = table.model(0).plan.blocks.statistics(node[np.newaxis])[0, :, :, 1:].transpose(2, 0, 1)
    sd = np.maximum(np.sqrt(m2 / 3.0), 1e-9)
    values = np.array([2.5, 0.0, 1.0, 0.0, 1.0])  # the number, then the columns of both nominal attributes
    terms = [
        sign * term
        for side, sign in ((0, 1.0), (1, -1.0))
        for column in range(5)
        for term in (
            -math.log(sd[column, side]),
            -0.5 * ((values[column] - mean[column, side]) / sd[column, side]) ** 2,
        )
    ]
    expected = 1.0 / (1.0 + math.exp(-math.fsum(terms)))
    assert 0.001 < expected < 0.999
    assert answer(table, [[1.0, 1.0, 2.5]], mode=ANSWER_ONLY).probability[0, 0] == pytest.approx(expected)


def test_a_binary_nominal_attribute_does_not_rival_itself():
    """Its two columns are mirror images; best and second best are of two attributes [D5]."""
    y = np.arange(300) % 2
    x = np.where(np.arange(300) % 10 == 0, 1 - y, y)[:, np.newaxis].astype(float)
    _, found = model_of(ufft(delta=0.001, tau=0.0, drift="none"), x, y, "ab", kinds=(2,))
    splits = [event for event in found.events if isinstance(event, Split)]
    assert splits[0].n == 100.0
    assert splits[0].merits[1] == 0.0


def test_schemas_grow():
    """A class, a value and an attribute that come later are as if they had been there from the beginning."""
    draw = np.random.default_rng(2)
    x = np.column_stack([draw.integers(0, 3, 200), draw.normal(size=200), np.full(200, np.nan)])
    y = draw.integers(0, 2, 200)
    colour = Attribute("c", "nominal", ("0", "1"), open=True)
    whole = Schema.of([colour, Attribute("x"), Attribute("z")], "ab", classes_open=True)
    whole = whole.with_values([(0, "2")]).with_values([(0, "3")]).with_values([(0, "4")]).with_class("c")
    finals = []
    for leaf_model, grows in (("nb", True), ("nb", False), ("idbd", True)):
        small = Schema.of([colour, Attribute("x")], "ab", classes_open=True)
        spec = ufft(leaf_model=leaf_model, delta=1e-12, drift="none", memory=50)
        table = table_of(small.with_values([(0, "2")]) if grows else whole, spec)
        columns = 2 if grows else 3
        answer(table, x[:, :columns], y)
        table.model(0).adopt(whole)
        table.refresh(0)
        answer(table, [[4.0, 0.5, 1.0]] * 30, [2] * 30)
        answer(table, x, y)
        model = table.model(0)
        validate.check(model)
        shares = answer(table, x, mode=ANSWER_ONLY).probability
        assert np.isfinite(shares).all()
        finals.append((model.snapshot(), shares.tolist()))
    assert finals[0] == finals[1]


def test_snapshots_go_on_as_if_nothing_had_been():
    x, y = blobs(900, 3, seed=5)
    y = np.where(np.arange(900) > 450, (y + 1) % 3, y)
    whole, _ = model_of(ufft(**EAGER, memory=70), x, y)
    for cut in (1, 100, 333, 600):
        table, _ = model_of(ufft(**EAGER, memory=70), x[:cut], y[:cut])
        restored = Model.restore(table.model(0).snapshot())
        table.vacate(0)
        table.occupy(0, restored)
        for row in range(cut, 900, 37):
            answer(table, x[row : row + 37], y[row : row + 37])
        assert table.model(0).snapshot() == whole.model(0).snapshot()


def test_growth_stops_at_the_bytes_of_the_spec():
    """Wherever it was saved and loaded: room to spare is no state."""
    x, y = lone(3000)
    y = (x[:, 0] > 1.0).astype(int) ^ (x[:, 1] > 0.5) ^ (x[:, 2] > 0.9)
    spec = ufft(max_bytes=18_000, delta=0.3, tau=0.3, memory=100, drift="none")
    table, found = model_of(spec, x, y, "ab")
    model = table.model(0)
    assert 16_500 < model.nbytes <= 18_000
    assert len([event for event in found.events if isinstance(event, GrowthStopped)]) == 1
    assert model.summary().growth_stopped
    validate.check(model)
    again = table_of(model.schema, spec)
    for row in range(0, 3000, 111):
        answer(again, x[row : row + 111], y[row : row + 111])
        restored = Model.restore(again.model(0).snapshot())
        again.vacate(0)
        again.occupy(0, restored)
    assert again.model(0).snapshot() == model.snapshot()


def test_too_few_bytes_are_refused():
    with pytest.raises(SchemaError, match="max_bytes=5000 must be at least"):
        Model.create(ufft(max_bytes=5000), schema_of(*[None] * 40))


def test_sixty_four_classes_take_about_twenty_megabytes():
    """2,016 trees and rings of 1,000 rows a class, where a ring a tree would take 645 MB (issue 12)."""
    classes = tuple(f"c{i}" for i in range(64))
    table = table_of(schema_of(*[None] * 40, classes=classes), ufft(delta=1e-12))
    model = table.model(0)
    blocks, room = model.plan.blocks, (2016, 64 * 63)
    assert blocks.words(room) * 8 / 1e6 == pytest.approx(26.0, abs=1.5)
    assert 64 * 63 * blocks.page_words * 8 / 1e6 == pytest.approx(21.7, abs=0.2)
    draw = np.random.default_rng(0)
    answer(table, draw.normal(size=(64, 40)), np.arange(64))
    model = table.model(0)
    assert forest_of(model).trees == 2016
    assert model.nbytes < 9e6
    assert answer(table, draw.normal(size=(1, 40)), mode=ANSWER_ONLY).probability.sum() == pytest.approx(1.0)


def test_a_new_class_plants_trees_and_replays_nothing():
    """The record that meets a class touches one node for each class before it, and no row of a ring."""
    classes = tuple(f"c{i}" for i in range(20))
    table = table_of(schema_of(None, None, classes=classes), ufft(delta=1e-12))
    x, _ = blobs(400, 2, columns=2)
    for newest in range(20):
        before = (forest_of(table.model(0)).visits, forest_of(table.model(0)).replays)
        answer(table, x[newest], [newest])
        model = table.model(0)
        assert forest_of(model).visits - before[0] == newest
        assert forest_of(model).replays == before[1]
        answer(table, x[:40], np.arange(40) % (newest + 1))
    assert forest_of(table.model(0)).trees == 190


def test_the_work_for_a_record_does_not_grow():
    """Nodes visited and rows replayed a record, in the first and in the last fifth of a stationary stream."""
    x, y = lone(10_000, columns=2)
    table = table_of(schema_of(None, None), ufft(delta=1e-3, tau=0.0, drift="none"))
    work = []
    for first in range(0, 10_000, 2000):
        answer(table, x[first : first + 2000], y[first : first + 2000])
        work.append((forest_of(table.model(0)).visits, forest_of(table.model(0)).replays))
    visits = np.diff([0, *(found for found, _ in work)]) / 2000
    depth = table.model(0).summary().depth
    assert visits[-1] <= depth + 1
    looks = forest_of(table.model(0)).splits + forest_of(table.model(0)).attempts
    assert forest_of(table.model(0)).replays <= 1000 * looks


def test_parameters():
    spec = ufft(leaf_model="mc", drift={"name": "ddm", "drift": 2.5})
    body = spec.to_dict()["learner"]
    assert body["drift"] == {"name": "ddm", "warm_up": 30, "warning": 2.0, "drift": 2.5, "min_errors": 0}
    assert Spec.parse(json.loads(spec.to_json())) == spec
    assert ufft().to_dict()["learner"]["delta"] == 5e-6
    for given, says in (
        ({"drift": {"name": "ddm", "reaction": "reset"}}, "reaction='reset' is no parameter of a node's"),
        ({"drift": 3}, "drift=3 of 'ufft' must be a name"),
        ({"drift": "dmd"}, "unknown drift detector 'dmd'"),
        ({"leaf_model": "nba"}, "leaf_model='nba' must be one of"),
        ({"memory": -1}, "memory=-1 must be at least 0"),
        ({"grace_period": 3}, "grace_period=3 is no parameter of 'ufft'"),
    ):
        with pytest.raises((ParameterError, Exception), match=says):
            ufft(**given)
    assert dataclasses.is_dataclass(spec.learner)


@pytest.mark.parametrize(
    ("word", "value"),
    [("left", 77), ("parent", 2), ("depth", 5), ("column", 9), ("pair", 3)],
)
def test_wrong_links_are_found(word, value):
    x, y = lone(600)
    table, _ = model_of(ufft(**EAGER, drift="none"), x, y, "ab")
    model = table.model(0)
    validate.check(model)
    nodes = node_rows(model.plan.blocks.nodes_of(model.ints, model.first))
    getattr(nodes, word)[np.flatnonzero(nodes.left >= 0)[0]] = value
    assert list(validate.problems(model))


def test_the_outline_names_the_pairs():
    x, y = blobs(900, 3, spread=3.0)
    table, _ = model_of(ufft(**EAGER), x, y)
    nodes = list(table.model(0).plan.blocks.outline(table.model(0), table.model(0).first, None))
    assert nodes[0].test == "class pair"
    assert [str(node.branch) for node in nodes if node.depth == 1] == [
        "class in a | b",
        "class in a | c",
        "class in b | c",
    ]
    assert len(nodes) == table.model(0).summary().nodes + 1
    below = list(table.model(0).plan.blocks.outline(table.model(0), table.model(0).first, 1))
    assert sum(node.leaves_below or 1 for node in below[1:]) == table.model(0).summary().leaves


def test_wrong_words_are_found_and_named():
    """Each word of the header, a class, its ring, a row, a pair and a node is changed alone."""
    x, y = lone(200)
    table, _ = model_of(ufft(**EAGER, drift="none"), x, y, "ab")
    model = table.model(0)
    validate.check(model)
    forest, plan = forest_of(model), PlanRecord.over(model.plan.ints)
    pair, label = forest.pair(0), forest.class_entry(plan, 0)
    row = forest.row(plan, label.pages[0], 0)
    cases = [
        (forest, "arrivals", -1, "arrivals must be from 0 to 2**53"),
        (forest, "visits", -1, "visits must be from 0 to 2**53"),
        (forest, "learned_node", 0, "a learned node record must be from 1"),
        (forest, "events", 1, "events must be 0"),
        (forest, "nodes", 10**6, "nodes must be from 0 to node_capacity"),
        (forest, "pages", 10**6, "pages must be from 0 to page_capacity"),
        (forest, "stopped", 2, "stopped must be from 0 to 1"),
        (forest, "live", 9, "free nodes"),
        (forest, "trees", 0, "free nodes"),
        (label, "weight", math.nan, "weight must be a number of at least 0 (weight of the class's labels)"),
        (label, "records", -1, "records must be at least 0"),
        (label, "records", 10**6, "labels of a class"),
        (label, "ring_pages", 10**6, "each page in use"),
        (label, "ring_rows", 10**6, "rows of a ring"),
        (label, "ring_next", 10**6, "rows of a ring"),
        (row, "arrival", 10**6, "rows must have arrived"),
        (row, "weight", 0.0, "rows must have arrived"),
        (pair, "root", 10**6, "a root must be"),
        (pair, "planted", 10**6, "a root must be"),
        (forest.node(plan, 0), "first_weight", -1.0, "first_weight must be a number of at least 0"),
        (forest.node(plan, 0), "errors", 10**6, "errors must be from 0 to inputs"),
        (forest.node(plan, 0), "warning", 10**6, "a warning must have begun"),
    ]
    for record, name, value, rule in cases:
        kept = getattr(record, name)
        setattr(record, name, value)
        assert rule in " ".join(validate.problems(model)), rule
        setattr(record, name, kept)
    page = label.pages[0]
    label.pages[0] = 10**6
    assert "each page in use" in " ".join(validate.problems(model))
    label.pages[0] = page
    validate.check(model)
