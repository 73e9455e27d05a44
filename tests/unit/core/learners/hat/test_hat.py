"""HAT: alternate trees begin, take places and go; what grows beside a tree grows as a tree of its own."""

import dataclasses
import itertools

import numpy as np
import pytest

from core.errors import ParameterError, SnapshotError
from core.events import Drift, GrowthStopped, Split
from core.export.importance import decreases, importances
from core.export.outline import answering
from core.export.text import to_text
from core.layout.model import ModelHeader
from core.layout.tree import LEAF
from core.learners.hoeffding.blocks import tree_at
from core.learners.hoeffding.growth.alternates import alternate_root, main_tree
from core.learners.protocol import build
from core.model import snapshot, validate
from core.model.model import Model
from core.model_table import ANSWER_ONLY, ModelTable
from core.spec import Spec
from core.tree import allocation, outline
from tests.naive.rows import late_classes, mixed, open_values
from tests.unit.core.builders import FORESTS, answer, table_of

EAGER = {"grace_period": 25, "delta": 0.1, "drift_confidence": 0.05, "switch_records": 60}
CALM = {"drift_confidence": 1e-300, "bootstrap": False}
MIXES = [mixed, late_classes, open_values]


def adaptive(**learner):
    return Spec.parse({"learner": {"name": "hat", **learner}, "evaluation": {"every": 0}})


def plain(**learner):
    return Spec.parse({"learner": {"name": "h-tree", **learner}, "evaluation": {"every": 0}})


def grown(spec, stream):
    table = table_of(stream.schema(known=stream.classes), spec)
    return table, answer(table, stream.x, stream.y, stream.weight)


def turning(n=6000, turns=(0.5,), seed=0):
    """Return records of three attributes; which of them decides changes at these shares of the records."""
    draw = np.random.default_rng(seed)
    x = draw.random((n, 3))
    concept = np.searchsorted([int(n * turn) for turn in turns], np.arange(n), side="right")
    first = np.where(concept % 2 == 0, x[:, 0] > 0.5, x[:, 1] > 0.3)
    y = np.where(x[:, 2] > 0.7, first, ~first).astype(np.int32)
    rows = dataclasses.replace(mixed(n), x=x, attributes=(None, None, None), classes=2)
    return dataclasses.replace(rows, y=y, weight=np.ones(n))


def drifts(answers):
    return [event for event in answers.events if isinstance(event, Drift)]


def view(model):
    return model.plan.blocks.view(model.ints, model.first)


@pytest.mark.parametrize(
    ("stream", "compat"), [*((stream, None) for stream in MIXES), (mixed, "moa"), (late_classes, "moa")]
)
def test_where_no_error_rises_it_is_the_hoeffding_tree(stream, compat):
    rows = stream(1500)
    if compat == "moa":  # which keeps silent where values are missing
        rows = dataclasses.replace(rows, x=np.maximum(np.nan_to_num(rows.x), 0.0))
    same = {"grace_period": 25, "delta": 0.1, "compat": compat}
    adapting, own = grown(adaptive(**same, **CALM), rows)
    trees, theirs = grown(plain(**same), rows)
    if compat is None:
        assert own.events == theirs.events
        assert own.events
    assert np.array_equal(own.prediction, theirs.prediction)
    assert np.array_equal(own.probability, theirs.probability)
    one, other = view(adapting.model(0)), view(trees.model(0))
    n = int(other.block.slots)
    assert np.array_equal(one.leaf_ints[:n], other.leaf_ints[:n])
    assert adapting.model(0).summary() == trees.model(0).summary()


def test_an_alternate_tree_is_the_tree_that_learns_from_then_on():
    """What took over at the root answers as a tree does that was planted when the alternate tree began."""
    rows = turning(6000)
    decides = np.where(np.arange(6000) < 3000, rows.x[:, 0] > 0.5, rows.x[:, 1] > 0.5)
    rows = dataclasses.replace(rows, y=decides.astype(np.int32))
    given = {"grace_period": 50, "delta": 0.01}
    _, answers = grown(adaptive(**given, bootstrap=False), rows)
    at_root = [event for event in drifts(answers) if event.node == 0]
    last = max(i for i, event in enumerate(at_root) if event.action == "alternate tree took over")
    started, taken = at_root[last - 1], at_root[last]
    assert started.action == "alternate tree started"
    assert taken.level == "drift"
    assert taken.depth == 0
    until = next((e.row for e in drifts(answers) if e.row > taken.row and "over" in e.action), len(rows.y))
    table = table_of(rows.schema(), plain(**given))
    part = slice(started.row, until)
    theirs = answer(table, rows.x[part], rows.y[part], rows.weight[part])
    assert until - taken.row > 500
    after = slice(taken.row + 1, until)
    assert np.array_equal(answers.prediction[after], theirs.prediction[taken.row + 1 - started.row :])
    assert np.array_equal(answers.probability[after], theirs.probability[taken.row + 1 - started.row :])


def test_after_a_drift_the_subtree_is_replaced_and_alerts_name_node_and_depth():
    rows = turning()
    table, answers = grown(adaptive(**EAGER), rows)
    found = drifts(answers)
    levels = {
        "alternate tree started": "warning",
        "alternate tree took over": "drift",
        "alternate tree dropped": "in-control",
    }
    assert {event.action for event in found} == set(levels)
    assert all(event.level == levels[event.action] for event in found)
    assert all(event.detector == "adwin" and 0.0 < event.error_rate < 1.0 for event in found)
    assert {event.depth > 0 for event in found} == {False, True}
    assert all((event.node == 0) == (event.depth == 0) for event in found)
    _, theirs = grown(plain(grace_period=25, delta=0.1), rows)
    right, theirs_right = answers.prediction == rows.y, theirs.prediction == rows.y
    assert right[3000:4000].mean() > theirs_right[3000:4000].mean() + 0.02
    assert right[4000:].mean() > theirs_right[4000:].mean() - 0.005
    validate.check(table.model(0))


@pytest.mark.parametrize("compat", [None, "moa"])
@pytest.mark.parametrize("seed", range(3))
def test_the_same_bytes_in_any_cut_of_the_run(compat, seed):
    """A restored model has no room to spare: Python makes splits that compiled code made elsewhere."""
    rows = turning(3000, (0.3, 0.6), seed)
    spec = dataclasses.replace(adaptive(**EAGER, compat=compat), seed=seed)
    whole, answers = grown(spec, rows)
    assert drifts(answers)
    table = table_of(rows.schema(known=rows.classes), spec)
    events, cuts = [], [0, 1, *range(40, 3000, 37), 3000]
    for first, end in itertools.pairwise(cuts):
        part = slice(first, end)
        got = answer(table, rows.x[part], rows.y[part], rows.weight[part])
        events += [dataclasses.replace(event, row=event.row + first) for event in got.events]
        restored = Model.restore(table.model(0).snapshot())
        validate.check(restored)
        table = ModelTable()
        table.add(restored)
    assert events == answers.events
    assert table.model(0).snapshot() == whole.model(0).snapshot()


@pytest.mark.parametrize("stream", MIXES, ids=lambda s: s.__name__)
@pytest.mark.parametrize("compat", [None, "moa"])
def test_weights_missing_values_nominal_attributes_and_late_classes(stream, compat):
    rows = stream(2500)
    half = len(rows.y) // 2
    turned = np.where(np.arange(len(rows.y)) < half, rows.y, rows.classes - 1 - rows.y).astype(np.int32)
    rows = dataclasses.replace(rows, y=turned)
    spec = adaptive(**EAGER, compat=compat)
    table, answers = grown(spec, rows)
    assert "alternate tree took over" in {event.action for event in drifts(answers)}
    validate.check(table.model(0))
    other = Model.restore(table.model(0).snapshot())
    assert other.snapshot() == table.model(0).snapshot()


def test_alternate_trees_have_alternate_trees():
    deepest = 0
    for seed in range(4):
        rows = turning(6000, (0.2, 0.35, 0.5, 0.65, 0.8), seed)
        given = EAGER | {"switch_records": 2000, "switch_confidence": 1e-12}
        table = table_of(rows.schema(known=2), adaptive(**given))
        for first in range(0, 6000, 500):
            part = slice(first, first + 500)
            answer(table, rows.x[part], rows.y[part], rows.weight[part])
            tree = view(table.model(0))
            for root in np.flatnonzero(tree.subtree_states.beside).tolist():
                beside = int(tree.subtree_states.beside[root]) - 1
                deepest = max(deepest, 1 + (alternate_root(tree, beside) >= 0))
            validate.check(table.model(0))
    assert deepest == 2


def test_the_labels_of_late_records_teach_the_same_as_at_once():
    rows = turning(2500)
    spec = adaptive(**EAGER)
    at_once, answers = grown(spec, rows)
    table = table_of(rows.schema(known=2), spec)
    one = np.zeros(1, dtype=np.int64)
    for i in range(len(rows.y)):
        given = answer(table, rows.x[i])
        assert given.prediction[0] == answers.prediction[i]
        row = slice(i, i + 1)
        table.learn(one, rows.x[row], rows.y[row], rows.weight[row], given.prediction, given.asked)
    mine, theirs = view(table.model(0)), view(at_once.model(0))
    n = int(theirs.block.nodes)
    assert np.array_equal(mine.node_ints[:n], theirs.node_ints[:n])


def test_a_frozen_model_answers_alike_and_is_not_written_to():
    rows = mixed(2000)
    table, _ = grown(adaptive(**EAGER), rows)
    before = table.model(0).ints.copy()
    frozen = answer(table, rows.x[:300], mode=ANSWER_ONLY)
    assert np.array_equal(before, table.model(0).ints)
    for row in (0, 7, 100, 250):
        one = answer(table, rows.x[row])
        assert one.prediction[0] == frozen.prediction[row]
        assert np.array_equal(one.probability[0], frozen.probability[row])


def test_bytes_and_leaves_are_those_of_alternate_trees_too():
    rows = turning(6000, (0.2, 0.4, 0.6, 0.8))
    free, _ = grown(adaptive(**EAGER), rows)
    sections = free.model(0).plan.section_bytes(2)
    limit = sections + 40_000
    table, answers = grown(adaptive(**EAGER, max_bytes=limit), rows)
    assert [event for event in answers.events if isinstance(event, GrowthStopped)]
    assert "none" in {event.action for event in drifts(answers)}
    assert len(table.model(0).snapshot()) < limit + 2000
    few, _ = grown(adaptive(**EAGER, max_leaves=3), rows)
    assert view(few.model(0)).block.leaves <= 3


def test_alternate_trees_are_drawn_beside_their_nodes():
    rows = turning(3200)
    table, _ = grown(adaptive(**EAGER | {"switch_records": 5000}), rows)
    model = table.model(0)
    tree = view(model)
    nodes = list(model.plan.blocks.outline(model, model.first, None))
    numbers = [node.number for node in nodes]
    assert sorted(numbers) == list(range(tree.block.nodes))
    roots = [node for node in nodes if node.branch is not None and node.branch.attribute == "alternate tree"]
    assert len(roots) == np.count_nonzero(tree.subtree_states.alternate) > 0
    by_number = {node.number: node for node in nodes}
    for node in nodes[1:]:
        above = by_number[node.parent]
        assert node.number in above.children
        assert node.depth == above.depth + 1
    assert all(f"of {int(model.summary().records)}" not in str(node.branch) for node in roots)
    assert "error 0." in str(roots[0].branch)
    answering = main_tree(tree)
    summary = model.summary()
    assert len(answering) == summary.nodes < len(nodes)
    assert summary.leaves == sum(tree.nodes.kind[answering] == LEAF)
    top = list(model.plan.blocks.outline(model, model.first, 0))
    assert [(node.number, node.leaves_below) for node in top] == [(0, summary.leaves)]


def test_alternate_trees_have_no_part_in_importances_and_are_named_in_texts():
    rows = turning(3200)
    table, _ = grown(adaptive(**EAGER | {"switch_records": 5000}), rows)
    model = table.model(0)
    nodes = list(model.plan.blocks.outline(model, model.first, None))
    answer_alone = answering(nodes)
    assert [node.number for node in answer_alone] == main_in_order(model)
    assert len(answer_alone) < len(nodes)
    assert sum(importances(model).values()) == pytest.approx(1.0)
    columns = {"a0": 0, "a1": 1, "a2": 2}
    (decreased,) = decreases(answer_alone, columns)
    assert list(importances(model).values()) == pytest.approx((decreased / decreased.sum()).tolist())
    assert "alternate tree : error 0." in to_text(model)


def main_in_order(model):
    """Return the numbers of the nodes that answer, parents first, children from left to right."""
    tree = view(model)
    return [
        node.number
        for node in outline.of_tree(model.plan, model.schema, model.ints, tree, None)
        if alternate_root(tree, node.number) < 0
    ]


def test_an_explanation_is_the_way_through_the_tree_that_answers():
    rows = turning(3200)
    table, _ = grown(adaptive(**EAGER), rows)
    model = table.model(0)
    for row in range(20):
        path = model.explain(rows.x[row])
        assert {branch.attribute for branch in path} <= {"a0", "a1", "a2"}
        for branch in path:
            value = rows.x[row, int(branch.attribute[1])]
            assert (value <= branch.value) == (branch.operator == "<=")


@pytest.mark.parametrize("name", FORESTS)
@pytest.mark.parametrize("compat", [None, "moa"])
def test_a_member_of_a_forest(name, compat):
    rows = turning(3000)
    body = {"name": name, "members": 3, "compat": compat, "member": {"name": "hat", **EAGER}}
    spec = Spec.parse({"learner": body, "evaluation": {"every": 0}})
    assert spec.learner.member.compat == compat
    whole, answers = grown(spec, rows)
    of_nodes = [event for event in drifts(answers) if event.node is not None]
    assert {event.member for event in of_nodes} <= {0, 1, 2}
    assert "alternate tree started" in {event.action for event in of_nodes}
    assert {event.member for event in answers.events if isinstance(event, Split)} == {0, 1, 2}
    table = table_of(rows.schema(known=2), spec)
    for first, end in itertools.pairwise([0, 1, *range(100, 3000, 293), 3000]):
        part = slice(first, end)
        answer(table, rows.x[part], rows.y[part], rows.weight[part])
        restored = Model.restore(table.model(0).snapshot())
        validate.check(restored)
        table = ModelTable()
        table.add(restored)
    assert table.model(0).snapshot() == whole.model(0).snapshot()
    assert len(list(restored.plan.blocks.outline(restored, restored.first, None))) > 3


def test_one_member_that_learns_each_record_once_is_its_tree():
    rows = turning(3000)
    calm = {"poisson": 0.0, "leaf_attributes": 100, "drift_confidence": 0, "warning_confidence": 0}
    body = {"name": "arf", "members": 1, "member": {"name": "hat", **EAGER}, **calm}
    forests, theirs = grown(Spec.parse({"learner": body, "evaluation": {"every": 0}}), rows)
    trees, own = grown(adaptive(**EAGER), rows)
    assert np.array_equal(theirs.prediction, own.prediction)
    assert [dataclasses.replace(event, member=None) for event in theirs.events] == own.events
    model, tree = forests.model(0), trees.model(0)
    forest = model.plan.blocks
    mine, other = forest.trees.view(model.ints, forest.tree_at(model.ints, model.first, 0)), view(tree)
    n, slots = other.block.nodes, other.block.slots
    assert np.array_equal(mine.node_ints[:n], other.node_ints[:n])
    assert np.array_equal(mine.leaf_ints[:slots], other.leaf_ints[:slots])


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"drift_confidence": 0}, r"^drift_confidence=0.0 must be above 0"),
        ({"switch_confidence": 1}, r"^switch_confidence=1.0 must be below 1"),
        ({"switch_records": -1}, r"^switch_records=-1 must be at least 0"),
        ({"bootstrap": 1}, r"^bootstrap=1 must be true or false"),
        ({"compat": "imac"}, r"^compat='imac' must be one of null, 'moa' for 'hat'"),
        ({"switch_record": 3}, r"^switch_record=3 is no parameter of 'hat'"),
    ],
)
def test_what_is_refused(given, words):
    with pytest.raises(ParameterError, match=words):
        adaptive(**given)


def test_it_has_other_names():
    assert build({"name": "hoeffding-adaptive-tree"}).to_dict()["name"] == "hat"


def test_words_that_no_tree_has_are_refused():
    rows = turning(3200)
    table, _ = grown(adaptive(**EAGER | {"switch_records": 5000}), rows)
    model = table.model(0)
    plan, tree = model.plan, view(model)
    sound = snapshot.trim(plan, model.ints)
    snapshot.check_words(plan, sound)
    beside = int(np.flatnonzero(tree.subtree_states.alternate)[0])
    root = int(tree.subtree_states.alternate[beside])
    leaf = int(np.flatnonzero(tree.nodes.kind[: root + 1] == LEAF)[0])
    for number, name, value in (
        (beside, "alternate", 0),
        (beside, "alternate", 1 << 40),
        (beside, "alternate", beside),
        (leaf, "alternate", root),
        (root, "beside", 0),
        (root, "beside", 1 << 40),
        (root, "beside", leaf + 1),
        (root, "parent", leaf),
        (root, "depth", 40),
        (0, "due", -1),
        (0, "next", root),
        (leaf, "draws", 1 << 48),
        (leaf, "detector", -1.0),
    ):
        wrong = allocation.aligned_words(len(sound))
        wrong[:] = sound
        block = tree_at(wrong, int(ModelHeader.over(wrong).first))
        node = block.node(number)
        subtree = block.subtree(model.plan.record, node)
        if name == "detector":
            subtree.detector[0] = value
        else:
            setattr(node if name in ("parent", "depth") else subtree, name, value)
        with pytest.raises(SnapshotError):
            snapshot.check_words(plan, wrong)
