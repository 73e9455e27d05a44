"""Memory of full forests: the cap holds in real bytes, leaves are ranked, and runs may be cut anywhere."""

import numpy as np
import pytest

from core.events import Drift, GrowthStopped, Split
from core.layout.model import WORD
from core.layout.tree import LEAF, TREE_HEADER
from core.learners.forest import memory
from core.learners.forest.member_state import own_part
from core.learners.forest.placement import REVIEW
from core.model import validate
from core.model.model import Model
from core.model_table import ANSWER_ONLY, ModelTable
from core.spec import Spec
from tests.unit.core.builders import FORESTS, answer, schema_of, table_of

SCHEMA = schema_of(None, None, None, None, 3, classes=("a", "b", "c"))
ROWS = 6 * REVIEW
CAP = 100_000


@pytest.fixture(scope="module")
def checkered():
    """Records whose classes form a chequered pattern, more leaves than the cap allows; it changes halfway."""
    draw = np.random.default_rng(3)
    x = draw.random((ROWS, 5))
    x[:, 4] = draw.integers(0, 3, ROWS)
    x[::50, 1] = np.nan
    cells = np.floor(4 * x[:, 0]) + np.floor(4 * np.nan_to_num(x[:, 1])) + x[:, 4]
    cells[ROWS // 2 :] += np.floor(4 * x[ROWS // 2 :, 2])
    return x, (cells % 3).astype(np.int32)


def forest(name="arf", **learner):
    member = {"name": "h-tree", "grace_period": 20, "delta": 0.2, "tau": 0.2} | learner.pop("member", {})
    learner = {"members": 3, "max_bytes": CAP} | learner
    return Spec.parse({"learner": {"name": name, "member": member, **learner}, "evaluation": {"every": 0}})


def inactive(model):
    """Return the inactive leaves of each tree of a forest."""
    layout, found = model.plan.blocks, []
    for slot in range(layout.slots):
        t = layout.tree_at(model.ints, model.first, slot)
        if t:
            found.append(len(layout.trees.view(model.ints, t).leaves[1]))
    return found


def is_ranked(model):
    return bool(model.plan.blocks.forest(model.ints, model.first).ranked)


@pytest.mark.parametrize("name", FORESTS)
@pytest.mark.parametrize("cap", [50_000, CAP, 250_000])
def test_the_words_of_a_model_are_within_its_cap_after_every_run(name, cap, checkered):
    x, y = checkered
    table = table_of(SCHEMA, forest(name, max_bytes=cap))
    for first in range(0, ROWS, 100):
        answer(table, x[first : first + 100], y[first : first + 100])
        assert table.model(0).ints.nbytes <= cap
    model = table.model(0)
    validate.check(model)
    assert is_ranked(model)
    assert sum(inactive(model)) > 0 or cap > CAP


@pytest.mark.parametrize("name", FORESTS)
def test_runs_cut_anywhere_and_restored_in_between_come_to_the_same_words(name, checkered):
    x, y = checkered
    spec = forest(name)
    whole = table_of(SCHEMA, spec)
    told = answer(whole, x, y)
    table, events, answers = table_of(SCHEMA, spec), [], []
    for first, end in ((0, 1), (1, 1500), (1500, 2047), (2047, 2048), (2048, 4100), (4100, ROWS)):
        for row in range(first, end) if end - first < 600 else [None]:
            rows = slice(first, end) if row is None else slice(row, row + 1)
            found = answer(table, x[rows], y[rows])
            events += [
                (rows.start + event.row, type(event), event.member)
                for event in found.events
                if not isinstance(event, GrowthStopped)
            ]
            answers.append(found.probability)
        restored = Model.restore(table.model(0).snapshot())
        table = ModelTable()
        table.add(restored)
    assert table.model(0).snapshot() == whole.model(0).snapshot()
    assert np.array_equal(np.concatenate(answers), told.probability)
    assert events == [
        (event.row, type(event), event.member)
        for event in told.events
        if not isinstance(event, GrowthStopped)
    ]
    assert any(isinstance(event, Split) and event.row % 1024 == 1023 for event in told.events)
    assert name in ("srp", "ozaboost") or any(isinstance(event, Drift) for event in told.events)
    assert sum(isinstance(event, GrowthStopped) for event in told.events) >= 1


def test_a_forest_that_never_reaches_its_part_is_not_reviewed(checkered, monkeypatch):
    monkeypatch.setattr(memory, "review", None)
    x, y = checkered
    table = table_of(SCHEMA, forest(max_bytes=1 << 30))
    answer(table, x, y)
    assert not is_ranked(table.model(0))


@pytest.mark.parametrize("member", [{"leaf_model": "mc"}, {"leaf_model": "nb"}, {"leaf_model": "idbd"}])
def test_inactive_leaves_vote_with_their_classes_and_ask_for_labels(member, checkered):
    x, y = checkered
    table = table_of(SCHEMA, forest(member=member, uncertainty="votes"))
    answer(table, x, y)
    model = table.model(0)
    validate.check(model)
    assert sum(inactive(model)) > 0
    frozen = answer(table, x[:500], mode=ANSWER_ONLY)
    assert frozen.probability.sum(axis=1) == pytest.approx(1.0)
    assert np.array_equal(answer(table, x[:1]).probability[0], frozen.probability[0])


def test_leaves_that_err_have_records_before_leaves_that_do_not(checkered):
    """Beyond the trees' own part no inactive leaf promises more than the least promising active one."""
    x, y = checkered
    table = table_of(SCHEMA, forest(drift_confidence=0, warning_confidence=0, poisson=1))
    answer(table, x, y)
    model = table.model(0)
    layout, active, idle = model.plan.blocks, [], []
    own = own_part(layout, model, model.first).learned_bytes(model.ints)
    for slot in range(layout.slots):
        t = layout.tree_at(model.ints, model.first, slot)
        tree = layout.trees.view(model.ints, t)
        masses = tree.masses[: tree.block.nodes]
        promise = masses.sum(axis=1) - masses.max(axis=1)
        leaves = tree.nodes.kind[: len(masses)] == LEAF
        has = tree.nodes.slot[: len(masses)] >= 0
        records = tree.block.slots - 1
        size = (TREE_HEADER + len(masses) * tree.shape.node_stride + records * tree.shape.leaf_stride) * WORD
        if size > own:
            active += promise[leaves & has].tolist()
        idle += promise[leaves & ~has].tolist()
    assert idle
    assert max(idle) <= max(active)
    assert np.mean(idle) < np.mean(active)


def test_forests_of_trees_that_revise_or_adapt_stop_to_grow(checkered):
    x, y = checkered
    for member in ({"name": "efdt"}, {"name": "h-tree", "compat": "moa"}):
        table = table_of(SCHEMA, forest(member=member))
        answer(table, x, y)
        model = table.model(0)
        assert model.ints.nbytes <= CAP
        assert sum(inactive(model)) == 0
        assert not is_ranked(model)


def test_trees_that_stop_at_their_leaves_lack_no_bytes(checkered):
    x, y = checkered
    table = table_of(SCHEMA, forest(member={"max_leaves": 4}, max_bytes=1 << 30))
    told = answer(table, x[:3000], y[:3000])
    model = table.model(0)
    assert any(isinstance(event, GrowthStopped) for event in told.events)
    assert not is_ranked(model)
