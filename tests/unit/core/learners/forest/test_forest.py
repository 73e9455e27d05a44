"""Forests: members, background trees, votes, what is drawn, and that one member alone is its tree."""

import dataclasses
import math
from itertools import pairwise

import numpy as np
import pytest

from core.errors import ParameterError, SnapshotError
from core.evaluation import EvaluationDue
from core.events import Drift, Split
from core.kernels.records import offset
from core.layout.model import ModelHeader
from core.layout.tree import TREE_HEADER, Node, Tree
from core.learners.forest.layout import MEMBER_FIELDS, ForestBlock, Member
from core.learners.forest.stretch import SUBSET_FIELDS, SUBSET_ROWS, SUBSET_WORDS, new_subsets
from core.learners.protocol import build
from core.model import snapshot, validate
from core.model.model import Model
from core.model_table import ANSWER_ONLY, ModelTable
from core.spec import Spec
from core.tree import allocation
from tests.naive.rows import late_classes, mixed, open_values
from tests.unit.core.builders import FORESTS, answer, schema_of, table_of

ALONE = {"members": 1, "poisson": 0.0, "leaf_attributes": 100, "drift_confidence": 0, "warning_confidence": 0}
TREES = (
    {"name": "h-tree", "grace_period": 25, "delta": 0.1},
    {"name": "h-tree", "grace_period": 25, "delta": 0.1, "compat": "moa"},
    {"name": "c-tree", "c": 0.5},
    {"name": "efdt", "grace_period": 25, "delta": 0.1, "revisit_period": 100},
    {"name": "imac", "delta": 0.1},
)


def forest(name="arf", **learner):
    return Spec.parse({"learner": {"name": name, **learner}, "evaluation": {"every": 0}})


def grown(spec, stream, mode=None):
    table = table_of(stream.schema(known=stream.classes), spec)
    return table, answer(table, stream.x, stream.y, stream.weight)


def turning(n=6000, seed=0):
    """Return records of two attributes; which of them decides changes in the middle."""
    draw = np.random.default_rng(seed)
    stream = dataclasses.replace(mixed(n), x=draw.random((n, 2)), attributes=(None, None), classes=2)
    first = np.arange(n) < n // 2
    decides = np.where(first, stream.x[:, 0] > 0.5, stream.x[:, 1] > 0.5)
    return dataclasses.replace(stream, y=decides.astype(np.int32), weight=np.ones(n))


def words_of_record(model, words, slot):
    start = model.plan.blocks.record(words, model.first, slot).start
    return words[start : start + model.plan.blocks.stride]


def record_words(model, slot):
    return words_of_record(model, model.ints, slot)


def forest_of(model):
    return model.plan.blocks.forest(model.ints, model.first)


def record(model, slot):
    return model.plan.blocks.record(model.ints, model.first, slot)


def labels_of(model, slot):
    """Return the number of labels that a member has learned."""
    blocks = model.plan.blocks
    return int(blocks.trees.view(model.ints, blocks.tree_at(model.ints, model.first, slot)).block.labels)


def tree_words(model, slot):
    """Return the words of a tree without room to spare, None: there is none."""
    ints = snapshot.trim(model.plan, model.ints)
    start = model.plan.blocks.tree_at(ints, model.first, slot)
    return ints[start : start + ints[start]] if start != 0 else None


@pytest.mark.parametrize("member", TREES, ids=lambda m: "-".join(map(str, m.values())))
@pytest.mark.parametrize("stream", [mixed, late_classes, open_values], ids=lambda s: s.__name__)
def test_one_member_that_learns_each_record_once_is_its_tree(member, stream):
    """Bit for bit: predictions, shares and the tree's words."""
    rows = stream(1500)
    forests, theirs = grown(forest(member=member, **ALONE), rows)
    own_defaults = forest(member=member, **ALONE).learner.member.to_dict()
    alone = Spec.parse({"learner": own_defaults, "evaluation": {"every": 0}})
    trees, own = grown(alone, rows)
    assert np.array_equal(theirs.prediction, own.prediction)
    assert np.array_equal(theirs.probability, own.probability)
    splits = [dataclasses.replace(event, member=None) for event in theirs.events]
    assert splits == own.events
    assert splits
    assert all(event.member == 0 for event in theirs.events)
    tree = trees.model(0)
    assert np.array_equal(tree_words(forests.model(0), 0), snapshot.trim(tree.plan, tree.ints)[tree.first :])


@pytest.mark.parametrize("name", FORESTS)
def test_the_same_draws_in_any_cut_of_the_run(name):
    rows = mixed(1500)
    spec = forest(name, members=3)
    whole, _ = grown(spec, rows)
    table = table_of(rows.schema(), spec)
    for first, end in ((0, 1), (1, 700), (700, 1500)):
        answer(table, rows.x[first:end], rows.y[first:end], rows.weight[first:end])
        restored = Model.restore(table.model(0).snapshot())
        table = ModelTable()
        table.add(restored)
    validate.check(table.model(0))
    assert table.model(0).snapshot() == whole.model(0).snapshot()


@pytest.mark.parametrize("name", FORESTS)
def test_room_does_not_order_the_events_of_a_record(name):
    """A restored model has other room, so that other splits have to wait for Python."""
    rows, member = mixed(140), {"name": "h-tree", "grace_period": 6, "delta": 0.5, "tau": 0.5}
    spec = forest(name, members=6, member=member)
    _, answers = grown(spec, rows)
    table, events = table_of(rows.schema(), spec), []
    for first in range(0, 140, 7):
        cut = slice(first, first + 7)
        part = answer(table, rows.x[cut], rows.y[cut], rows.weight[cut])
        events += [dataclasses.replace(event, row=event.row + first) for event in part.events]
        restored = Model.restore(table.model(0).snapshot())
        table = ModelTable()
        table.add(restored)
    assert events == answers.events
    assert len({event.row for event in events}) < len(events), "some records lead to several splits"


@pytest.mark.parametrize("name", FORESTS)
def test_members_differ_and_other_seeds_draw_otherwise(name):
    rows = mixed(800)
    table, _ = grown(forest(name, members=3), rows)
    model = table.model(0)
    assert not np.array_equal(tree_words(model, 0), tree_words(model, 1))
    again, _ = grown(dataclasses.replace(forest(name, members=3), seed=2), rows)
    assert not np.array_equal(tree_words(model, 0), tree_words(again.model(0), 0))


@pytest.mark.parametrize("name", FORESTS)
def test_without_a_label_no_member_learns(name):
    rows = mixed(600)
    table, _ = grown(forest(name, members=3), rows)
    model = table.model(0)
    labels = [labels_of(model, member) for member in range(3)]
    answer(table, rows.x)
    assert labels == [labels_of(model, member) for member in range(3)]
    assert min(labels) > (200 if name == "ozaboost" else 500)  # whose mean is 1, not 6


@pytest.mark.parametrize("name", FORESTS)
def test_a_frozen_model_answers_alike_and_is_not_written_to(name):
    rows = mixed(1200)
    spec = forest(name, members=4)
    table, _ = grown(spec, rows)
    before = table.model(0).ints.copy()
    frozen = answer(table, rows.x[:200], mode=ANSWER_ONLY)
    assert np.array_equal(before, table.model(0).ints)
    assert frozen.probability.sum(axis=1) == pytest.approx(1.0)
    for row in (0, 7, 100):
        one = answer(table, rows.x[row])
        assert one.prediction[0] == frozen.prediction[row]
        assert np.array_equal(one.probability[0], frozen.probability[row])


@pytest.mark.parametrize("name", FORESTS)
def test_labels_that_come_later_teach_the_same(name):
    """What a member predicted is found again, where it was not answered just before."""
    rows = mixed(700, missing=0.0)
    spec = forest(name, members=3)
    at_once, answers = grown(spec, rows)
    table = table_of(rows.schema(), spec)
    for i in range(len(rows.y)):
        given = answer(table, rows.x[i])
        assert given.prediction[0] == answers.prediction[i]
        one = slice(i, i + 1)
        table.learn(
            np.zeros(1, dtype=np.int64),
            rows.x[one],
            rows.y[one],
            rows.weight[one],
            given.prediction,
            given.asked,
        )
    model, other = table.model(0), at_once.model(0)
    for slot in range(3):
        assert record(model, slot).right == record(other, slot).right


def test_after_a_drift_members_are_replaced_and_alerts_name_them():
    rows = turning()
    _, answers = grown(forest(members=5), rows)
    drifts = [event for event in answers.events if isinstance(event, Drift)]
    assert {event.level for event in drifts} == {"warning", "drift"}
    taken = [event for event in drifts if event.level == "drift"]
    assert {event.action for event in taken} <= {"background tree took over", "new tree"}
    assert all(event.row >= 3000 for event in taken if event.error_rate > 0.2)
    assert {event.member for event in taken if event.row >= 3000} == set(range(5))
    assert {event.member for event in answers.events if isinstance(event, Split)} == set(range(5))
    right = answers.prediction == rows.y
    still, stubborn = grown(forest(members=5, drift_confidence=0, warning_confidence=0), rows)
    assert right[4500:].mean() > 0.95
    assert right[3000:].mean() > (stubborn.prediction == rows.y)[3000:].mean() + 0.005
    assert not [event for event in stubborn.events if isinstance(event, Drift)]
    validate.check(still.model(0))


def test_a_replaced_member_begins_its_evaluation_anew_and_leaves_the_others_alone():
    """The members that were not replaced are those of a forest without detectors."""
    rows = turning()
    calm, _ = grown(forest(members=3, drift_confidence=0, warning_confidence=0), rows.first(3000))
    table, answers = grown(forest(members=3), rows.first(3000))
    replaced = {
        event.member for event in answers.events if isinstance(event, Drift) and event.level == "drift"
    }
    for slot in set(range(3)) - replaced:
        assert np.array_equal(tree_words(calm.model(0), slot), tree_words(table.model(0), slot))
    table, answers = grown(forest(members=3), rows)
    last = {
        event.member: event.row
        for event in answers.events
        if isinstance(event, Drift) and event.level == "drift"
    }
    for member, row in last.items():
        assert record(table.model(0), member).seen == 6000 - row - 1
    serials = [
        int(record(table.model(0), slot).serial)
        for slot in range(6)
        if tree_words(table.model(0), slot) is not None
    ]
    assert len(set(serials)) == len(serials)


def test_the_forest_is_told_as_one_and_drawn_tree_by_tree():
    rows = mixed(1500)
    table, _ = grown(forest(members=3), rows)
    model = table.model(0)
    nodes = list(model.plan.blocks.outline(model, model.first, None))
    assert [node.number for node in nodes if node.parent == 0] == list(nodes[0].children)
    assert [str(node.branch.value) for node in nodes if node.parent == 0] == ["0", "1", "2"]
    assert len({node.number for node in nodes}) == len(nodes) == model.summary().nodes + 1
    by_number = {node.number: node for node in nodes}
    assert all(node.number in by_number[node.parent].children for node in nodes[1:])
    assert sum(node.is_leaf for node in nodes) == model.summary().leaves
    below = list(model.plan.blocks.outline(model, model.first, 1))
    assert len(below) == 4
    assert sum(node.leaves_below for node in below) + sum(node.is_leaf for node in below) >= 3
    (root,) = model.plan.blocks.outline(model, model.first, 0)
    assert root.leaves_below == model.summary().leaves


def test_explanations_are_the_paths_of_the_members_that_decided():
    rows = mixed(1500)
    table, _ = grown(forest(members=3), rows)
    model = table.model(0)
    votes, winner = model.plan.blocks.votes(model.ints, model.first, rows.x[5])
    path = model.explain(rows.x[5])
    named = [int(branch.value) for branch in path if branch.attribute == "member"]
    assert winner == answer(table, rows.x[5]).prediction[0]
    assert named == np.flatnonzero(votes == winner).tolist()
    assert len(path) > len(named)
    explained = Spec.parse({"learner": {"name": "arf", "members": 3}, "explain": True})
    table, answers = grown(explained, rows.first(50))
    assert len(answers.explanations) == 50


def test_bytes_are_those_of_all_members_together():
    rows = mixed(3000)
    limit = 200_000
    table, _ = grown(forest(members=4, max_bytes=limit), rows)
    model = table.model(0)
    assert model.summary().growth_stopped
    assert len(model.snapshot()) < limit * 1.05
    free, _ = grown(forest(members=4), rows)
    assert free.model(0).summary().leaves > model.summary().leaves


@pytest.mark.parametrize(
    ("name", "learner"),
    [
        ("arf", {"drift_confidence": 0.1, "warning_confidence": 0.3}),
        ("arf", {"drift_confidence": 0.1, "warning_confidence": 0.3, "compat": "moa"}),
        ("leveraging-bagging", {"drift_confidence": 0.3}),
        ("srp", {"drift_confidence": 0.1, "warning_confidence": 0.3, "member": "efdt"}),
    ],
)
def test_rows_that_go_through_one_member_after_the_other_teach_what_row_by_row_does(name, learner):
    """Row by row all members learn a row before the next; many are replaced, and learn on as new trees."""
    rows = turning(900)
    events = same_row_by_row(forest(name, members=5, **learner), rows)
    assert {type(event) for event in events} == {Split, Drift}


def test_an_evaluation_says_whether_growth_had_stopped_by_then():
    """Not whether it has at the end of the rows that were learned together."""
    member = {"name": "h-tree", "grace_period": 25, "delta": 0.1, "max_leaves": 3}
    spec = Spec.parse(
        {"learner": {"name": "arf", "members": 3, "member": member}, "evaluation": {"every": 20}}
    )
    events = same_row_by_row(spec, turning(900))
    stopped = [event.evaluation.growth_stopped for event in events if isinstance(event, EvaluationDue)]
    assert len(stopped) == 900 // 20
    assert stopped == sorted(stopped)
    assert not stopped[0]
    assert stopped[-1]


def same_row_by_row(spec, rows):
    """Learn a stream at once and row by row, compare all; return the events."""
    whole, answers = grown(spec, rows)
    table = table_of(rows.schema(), spec)
    one_by_one = [answer(table, rows.x[i], rows.y[i : i + 1]) for i in range(len(rows.y))]
    events = [
        dataclasses.replace(event, row=row) for row, own in enumerate(one_by_one) for event in own.events
    ]
    assert answers.events == events
    assert np.array_equal(
        answers.probability, np.concatenate([answered.probability for answered in one_by_one])
    )
    assert np.array_equal(answers.version, np.arange(len(rows.y)))
    assert whole.model(0).snapshot() == table.model(0).snapshot()
    return events


def test_more_leaves_than_subsets_are_kept_of():
    """Of so many attributes few subsets are kept: leaves that share a row take turns."""
    draw, n, d = np.random.default_rng(3), 150, 800
    x = draw.random((n, d))
    rows = dataclasses.replace(turning(n), x=x, attributes=(None,) * d, y=(x[:, 0] > 0.5).astype(np.int32))
    spec = forest(members=2, member={"name": "h-tree", "grace_period": 10, "delta": 0.9, "tau": 0.9})
    events = same_row_by_row(spec, rows)
    kept = len(new_subsets(d)) // 2
    assert kept == 16
    assert max(event.node for event in events if isinstance(event, Split)) > kept


@pytest.mark.parametrize("attributes", [1, 8, 62, 63, 1000, 100_000])
def test_kept_subsets_are_a_power_of_two_and_few_words(attributes):
    rows, words = new_subsets(attributes).shape
    assert words == SUBSET_FIELDS + attributes
    assert rows.bit_count() == 1
    assert rows == 1 or rows * words <= SUBSET_WORDS
    assert rows == SUBSET_ROWS or 2 * rows * words > SUBSET_WORDS


def test_a_tree_that_needs_room_moves_alone_while_there_are_words_to_spare():
    rows = mixed(3000)
    table, _ = grown(forest(members=6), rows)
    model, blocks = table.model(0), table.model(0).plan.blocks
    room, before = blocks.room(model.ints, model.first), model.snapshot()
    assert 0 < room[-1] < len(model.ints) / 2
    nodes, slots = blocks.trees.room(model.ints, blocks.tree_at(model.ints, model.first, 2))
    ints = model.ints
    while model.ints is ints:
        blocks.give_room(model, model.first, 2, (nodes + 2, slots + 1))
    ints, words = model.ints, model.ints.copy()
    moved = blocks.tree_at(ints, model.first, 2)
    blocks.give_room(model, model.first, 2, (nodes + 2, slots + 1))
    assert model.ints is ints
    assert blocks.tree_at(ints, model.first, 2) > moved
    others = [slot for slot in range(blocks.slots) if slot != 2]
    assert all((record_words(model, slot) == words_of_record(model, words, slot)).all() for slot in others)
    validate.check(model)
    assert model.snapshot() == before


def test_leaves_observe_as_many_attributes_as_asked():
    learner = build({"name": "arf"})
    assert [learner.attributes_seen(d) for d in (1, 2, 8, 100)] == [1, 2, 4, 11]
    assert build({"name": "arf", "compat": "moa"}).attributes_seen(8) == 5
    assert build({"name": "arf", "leaf_attributes": 0.5}).attributes_seen(8) == 4
    assert build({"name": "arf", "leaf_attributes": 3}).attributes_seen(8) == 3
    rows = dataclasses.replace(mixed(300, missing=0.0), weight=np.ones(300))
    table, _ = grown(
        forest(members=8, leaf_attributes=2, member={"name": "h-tree", "grace_period": 1e6}), rows
    )
    blocks, model = table.model(0).plan.blocks, table.model(0)
    for slot in range(8):
        tree = blocks.trees.view(model.ints, blocks.tree_at(model.ints, model.first, slot))
        numbers = [bool(tree.numeric[0, :, 0, a].any()) for a in range(2)]
        ends = np.cumsum([0, 4, 2, 3, 5])
        values = [bool(tree.nominal[0][..., first:end].any()) for first, end in pairwise(ends.tolist())]
        assert sum(numbers) + sum(values) == 2


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"member": "naive-bayes"}, r"^member='naive-bayes' of 'arf' must be a tree"),
        ({"member": 3}, r"^member=3 of 'arf' must be a name or an object"),
        ({"member": {"name": "h-tree", "max_bytes": 10}}, r"^max_bytes=10 is no parameter of a member"),
        ({"member": {"name": "h-tree", "leafs": 10}}, r"^leafs=10 is no parameter of 'h-tree'"),
        ({"members": 0}, r"^members=0 must be at least 1"),
    ],
)
def test_what_is_refused(given, words):
    with pytest.raises(ParameterError, match=words):
        forest(**given)


def test_a_member_has_the_forest_s_defaults_unless_it_says_otherwise():
    member = build({"name": "arf"}).member
    assert (member.schedule.grace_period, member.bound.delta) == (50, 0.01)
    member = build({"name": "arf", "member": {"name": "h-tree", "delta": 0.2}}).member
    assert (member.schedule.grace_period, member.bound.delta) == (50, 0.2)
    assert build({"name": "arf", "compat": "moa"}).member.compat == "moa"
    assert build({"name": "arf", "member": "c-tree"}).member.name == "c_tree"


def bits(value):
    """Return the word of a float."""
    return np.float64(value).view(np.int64)


def test_words_that_no_forest_has_are_refused():
    rows = mixed(800)
    table, _ = grown(forest(members=2), rows)
    model = table.model(0)
    plan = model.plan
    sound = snapshot.trim(plan, model.ints)
    snapshot.check_words(plan, sound)
    blocks, t = plan.blocks, int(ModelHeader.over(sound).first)
    first, second = (int(blocks.record(sound, t, slot).start) for slot in range(2))
    tree = blocks.tree_at(sound, t, 1)
    for word, value in (
        (t + offset(ForestBlock, "next"), 3),
        (first + offset(Member, "due"), 17),
        (second + offset(Member, "alarm"), 1),
        (second + offset(Member, "serial"), -1),
        (second + offset(Member, "made"), (1 << 53) + 1),
        (first + offset(Member, "right"), bits(math.inf)),
        (first + offset(Member, "right"), bits(1e9)),
        (first + offset(Member, "seen"), bits(math.nan)),
        (first + MEMBER_FIELDS, bits(-1.0)),
        (first + offset(Member, "tree"), 0),
        (second + offset(Member, "tree"), int(blocks.record(sound, t, 0).tree)),
        (tree + offset(Tree, "nodes"), 1 << 40),
        (tree + TREE_HEADER + offset(Node, "child"), 1 << 40),
    ):
        wrong = allocation.aligned_words(len(sound))
        wrong[:] = sound
        wrong[word] = value
        with pytest.raises(SnapshotError):
            snapshot.check_words(plan, wrong)


def test_leveraging_bagging_replaces_the_worst_member_one_a_record():
    rows = turning()
    table, answers = grown(forest("leveraging-bagging", members=4), rows)
    drifts = [event for event in answers.events if isinstance(event, Drift)]
    assert drifts
    assert {(event.level, event.action) for event in drifts} == {("drift", "new tree")}
    assert len({event.row for event in drifts}) == len(drifts)
    assert forest_of(table.model(0)).replaced == len(drifts)
    learner = build({"name": "leveraging-bagging"})
    assert (learner.member.schedule.grace_period, learner.member.bound.delta) == (200, 1e-7)


def test_members_of_srp_begin_with_different_subsets_of_few_attributes():
    """Three attributes have three pairs: of ten members three at least know the two that decide."""
    x = np.random.default_rng(5).random((4000, 3))
    y = (x[:, 0] + x[:, 1] > 1.0).astype(np.int32)
    calm = {"drift_confidence": 0, "warning_confidence": 0, "member": {"name": "h-tree", "delta": 0.2}}
    table = table_of(schema_of(None, None, None), forest("srp", members=6, **calm))
    answers = answer(table, x, y)
    tested = [
        {event.attribute for event in answers.events if isinstance(event, Split) and event.member == member}
        for member in range(6)
    ]
    assert all(len(attributes) <= 2 for attributes in tested)
    assert [sum(a in attributes for attributes in tested) for a in (0, 1)] == [4, 4]
    assert tested.count({0, 1}) == 2


def test_a_member_of_srp_sees_the_same_attributes_at_all_its_leaves():
    learner = build({"name": "srp"})
    assert [learner.attributes_seen(d) for d in (1, 2, 3, 8, 100)] == [1, 2, 2, 5, 60]
    rows = dataclasses.replace(mixed(1500, missing=0.0), weight=np.ones(1500))
    table, answers = grown(forest("srp", members=5, member_attributes=2), rows)
    model = table.model(0)
    for member in range(5):
        splits = [event for event in answers.events if isinstance(event, Split) and event.member == member]
        assert splits
        assert len({event.attribute for event in splits}) <= 2
    validate.check(model)
