"""IMAC: candidates, potential and illegal attributes of a leaf, when it is due (VFS, section 3.3)."""

from typing import Any

import numpy as np
import pytest

from core.errors import GroveError
from core.events import Split
from core.layout.plan import PlanRecord
from core.learners.hoeffding.schedules._imac import state as candidates
from core.learners.hoeffding.schedules._imac.exchange import room_for
from core.learners.hoeffding.schedules._imac.state import ImacState
from core.model import validate
from core.spec import Spec
from core.tree import views
from tests.naive.compare import core_answers, naive_answers, splits_of, twin_of
from tests.naive.rows import Stream
from tests.unit.core.builders import answer, schema_of, spec_of, table_of


def nominal_pair(n=6000, seed=0):
    """Two two-valued attributes, the first a little better than the second; classes depend on both."""
    draw = np.random.default_rng(seed)
    x = draw.integers(0, 2, (n, 2)).astype(np.float64)
    score = 0.25 + 0.35 * x[:, 0] + 0.15 * x[:, 1]
    return Stream(x, (draw.random(n) < score).astype(np.int32), np.ones(n), (2, 2), 2)


def wide(n, d=60, seed=1):
    """Numeric attributes of which a few matter, ever less."""
    draw = np.random.default_rng(seed)
    x = draw.normal(size=(n, d))
    pull = np.zeros(d)
    pull[:12] = np.linspace(0.5, 0.1, 12)[:d]
    label = (x @ pull + draw.normal(size=n) > 0).astype(np.int32)
    return x, label


def plan_record(table):
    return PlanRecord.over(table.model(0).plan.ints)


def leaf_state(table):
    """Return header, attributes, rows, counts, values of the only leaf."""
    model = table.model(0)
    tree = views.tree_view(model.plan, model.ints, model.first)
    return tree, [section[0] for section in tree.schedule]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("tau", [0.0, 0.05])
def test_with_two_valued_attributes_it_splits_when_vfdt_would_at_every_record(seed, tau):
    """Both attributes are always candidates: no delay, far fewer attempts (section 15.4)."""
    stream = nominal_pair(seed=seed)
    common = {"name": "h-tree", "leaf_model": "mc", "delta": 1e-4, "tau": tau, "min_branch_frac": 0.0}
    model, _, _, events = core_answers({"learner": common | {"schedule": "imac"}}, stream)
    twin = twin_of({"learner": common | {"grace_period": 1}}, stream)
    twin.tree.is_due = lambda leaf, *record: leaf.weight() >= 200.0
    _, _, splits = naive_answers(twin, stream)
    assert splits
    assert [split[:4] for split in splits_of(events)] == [split[:4] for split in splits]
    assert model.summary().attempts < twin.tree.attempts / 20


@pytest.mark.parametrize(("d", "room"), [(1, 1), (3, 3), (9, 5), (54, 5), (99, 9), (100, 10), (784, 10)])
def test_how_many_candidates(d, room):
    table = table_of(schema_of(*[None] * d), spec_of(schedule="imac"))
    assert room_for(plan_record(table), np.zeros(10)) == room
    assert candidates.most_candidates(d) >= room


@pytest.mark.parametrize(("suggestions", "room"), [(4, 2), (10, 5), (9, 2), (61, 6), (401, 10)])
def test_the_authors_count_no_split_as_an_attribute(suggestions, room):
    table = table_of(schema_of(*[None] * 400), spec_of(schedule="imac", compat="imac"))
    out = np.zeros(10)
    out[5] = suggestions
    assert room_for(plan_record(table), out) == room


def test_the_first_attempt_comes_with_the_first_impure_record_after_the_cold_start():
    """250 records of one class, then one of the other [D36]; the authors wait for record 400."""
    x, label = np.random.default_rng(0).normal(size=(450, 3)), np.zeros(450, dtype=int)
    label[250] = 1
    for compat, first in ((None, 251), ("imac", 400)):
        table = table_of(schema_of(None, None, None), spec_of(schedule="imac", compat=compat))
        for row in range(450):
            answer(table, x[row], label[row : row + 1])
            if table.model(0).summary().attempts:
                break
        assert row + 1 == first


def test_after_an_attempt_the_sets_part_the_attributes():
    x, label = wide(400)
    table = table_of(schema_of(*[None] * 60), spec_of(schedule="imac", max_leaves=1))
    answer(table, x[:200], label[:200])
    tree, (header, attributes, rows, _, _) = leaf_state(table)
    state = ImacState.over(header)
    count = int(state.count)
    places = attributes.view(np.int64)[:, 0]
    assert state.checked == 200.0
    assert np.bincount(places, minlength=4).tolist()[candidates.CANDIDATE] == count == 6
    assert (places != candidates.AWAY).all()
    merits = attributes[:, 1]
    assert merits[places == candidates.CANDIDATE].min() >= merits[places == candidates.POTENTIAL].max()
    assert rows[candidates.MERIT, :count].max() == pytest.approx(merits.max())
    answer(table, x[200:], label[200:])
    assert tree is not None
    validate.check(table.model(0))


def test_a_check_brings_in_what_has_become_better():
    """An attribute that decides all from record 200 on is a candidate from the check at 400 on."""
    x, label = wide(400, seed=2)
    x[:200, 40] = np.random.default_rng(5).normal(size=200)
    label[200:] = (x[200:, 40] > 0.0).astype(np.int32)
    table = table_of(schema_of(*[None] * 60), spec_of(schedule="imac", delta=1e-300, tau=0.0))
    answer(table, x[:200], label[:200])
    _, (_, attributes, _, _, _) = leaf_state(table)
    assert attributes.view(np.int64)[40, 0] == candidates.POTENTIAL
    answer(table, x[200:399], label[200:399])
    _, (_, attributes, _, _, _) = leaf_state(table)
    assert attributes.view(np.int64)[40, 0] == candidates.POTENTIAL
    # Its last merit is that of record 200: it comes when the better potential ones have had their turn.
    attributes[40, 1] = 1.0
    answer(table, x[399:], label[399:])
    _, (header, attributes, _, _, _) = leaf_state(table)
    assert ImacState.over(header).checked == 400.0
    assert attributes.view(np.int64)[40, 0] == candidates.CANDIDATE
    assert table.model(0).summary().attempts == 1
    validate.check(table.model(0))


def test_a_leaf_below_tau_whose_best_is_not_to_split_waits_for_a_check():
    """A constant attribute has no test: an attempt at 200, then one every 200, not one at every record."""
    table = table_of(schema_of(None), spec_of(schedule="imac", tau=0.5))
    answer(table, np.ones((1000, 1)), np.arange(1000) % 2)
    assert table.model(0).summary().attempts == 5


def test_one_attribute_competes_with_not_to_split():
    draw = np.random.default_rng(0)
    x = draw.normal(size=(3000, 1))
    table = table_of(schema_of(None), spec_of(schedule="imac"))
    events = answer(table, x, (x[:, 0] > 0.0).astype(int)).events
    splits = [event for event in events if isinstance(event, Split)]
    assert splits[0].row == 199


def test_damaged_candidates_are_found():
    x, label = wide(250, d=8)
    table = table_of(schema_of(*[None] * 8), spec_of(schedule="imac", max_leaves=1))
    answer(table, x, label)
    _, (header, attributes, _, counts, _) = leaf_state(table)
    validate.check(table.model(0))
    counts[0, 0, 0] += 1.0
    with pytest.raises(GroveError, match="must add up to seen"):
        validate.check(table.model(0))
    counts[0, 0, 0] -= 1.0
    places = attributes.view(np.int64)[:, 0]
    places[places != candidates.CANDIDATE] = candidates.AWAY
    with pytest.raises(GroveError, match="candidate, potential or illegal"):
        validate.check(table.model(0))
    ImacState.over(header).count = 99
    with pytest.raises(GroveError, match="from 0 to the room for candidates"):
        validate.check(table.model(0))


@pytest.mark.parametrize("criterion", ["info_gain", "gini"])
def test_attempts_are_few(criterion):
    x, label = wide(8000)
    found = {}
    for schedule in ("grace_period", "imac"):
        table = table_of(schema_of(*[None] * 60), spec_of(schedule=schedule, criterion=criterion))
        answer(table, x, label)
        found[schedule] = table.model(0).summary()
        validate.check(table.model(0))
    assert found["imac"].attempts < found["grace_period"].attempts / 2
    assert found["imac"].splits >= found["grace_period"].splits


def test_the_preset():
    learner: Any = Spec.parse("imac").learner
    schedule = learner.schedule
    assert (schedule.name, schedule.grace_period, schedule.check_period) == ("imac", 200.0, 200.0)
    assert (learner.leaf_model.name, learner.criterion.name, learner.tau) == ("nba", "info_gain", 0.05)


@pytest.mark.parametrize(
    ("d", "v", "k", "phi"),
    [(784, 2, 10, 0.859694), (400, 5, 25, 0.935), (54, 2, 7, -0.415344), (3, 2, 2, -50.0)],
)
def test_the_papers_condition_for_being_faster(d, v, k, phi):
    """φ = 1 - Kc·n_min/(µ·d) - Kc·n_min/(d·v·c), with n_min = µ = 200, as the paper reckons."""
    room = 3 if d == 3 else min(max(d // 10, 5), 10)
    assert 1.0 - room / d - room * 200.0 / (d * v * k) == pytest.approx(phi, abs=5e-7)
