"""OSM and CGD: the printed intervals (Losing et al. 2018, García-Martín 2017)."""

import math

import numpy as np
import pytest

from core import registry
from core.kernels import jit
from core.learners.hoeffding.schedules import cgd, osm
from core.spec import Spec
from core.tree import views
from tests.naive import schedules
from tests.naive.compare import twin_of
from tests.naive.criteria import gini
from tests.naive.rows import STREAMS
from tests.unit.core.builders import answer, schema_of, spec_of, table_of

BEST = [[55.0, 15.0], [25.0, 55.0]]
SECOND = [[50.0, 25.0], [30.0, 45.0]]
GAP = 0.944623 - 0.827698
NEEDED = math.log(1e7) / 2.0


@pytest.fixture(autouse=True, scope="module")
def criteria():
    """Have the kernels compiled that a plan would have compiled."""
    jit.compile_for(f"core.criteria.{name}" for name in registry.names("criteria"))


def records(best, second):
    """Return 150 records of two nominal attributes with these class counts per value [value][class]."""
    rows = []
    for label in (0, 1):
        columns = [
            np.repeat([0, 1], [int(table[0][label]), int(table[1][label])]) for table in (best, second)
        ]
        rows += [(a, b, label) for a, b in zip(*columns, strict=True)]
    x = np.array(rows, dtype=np.float64)
    return x[:, :2], x[:, 2].astype(np.int32)


@pytest.mark.parametrize(
    ("schedule", "extra", "interval"),
    [("osm", {}, 150), ("cgd", {}, 440), ("cgd", {"tau": 0.2}, 52), ("osm", {"tau": 0.2}, 52)],
)
def test_the_interval_of_a_leaf(schedule, extra, interval):
    """After 150 records; with τ=0.2 the tie comes first, R² ln(1/δ)/(2τ²) - 150 = 51.48."""
    x, label = records(BEST, SECOND)
    table = table_of(schema_of(2, 2), spec_of(schedule=schedule, grace_period=150, **extra))
    answer(table, x, label)
    model = table.model(0)
    tree = views.tree_view(model.plan, model.ints, model.first)
    assert model.summary().attempts == 1
    assert tree.leaf_records.next[0] == 150 + interval


def test_the_earliest_moment_of_osm():
    """x* = 31.19, so the 32nd record is the first that could bring the split."""
    kind = registry.kind("criteria", "info_gain")
    assert osm.earliest(kind, np.array(BEST).T.copy(), GAP, 150.0, NEEDED) == 32.0


@pytest.mark.parametrize("branches", [[[6.0, 2.0], [3.0, 1.0]], [[3.0, 1.0], [6.0, 2.0]]])
def test_of_branches_alike_in_purity_the_first_gets_what_comes(branches):
    """A small branch becomes purer faster; both have a Gini impurity of exactly 3/8."""

    def enough(weight):
        return math.sqrt(NEEDED / weight)

    expected = schedules.osm(branches, 0.0, gini, 12.0, enough, 0)
    other = schedules.osm(branches[::-1], 0.0, gini, 12.0, enough, 0)
    found = osm.earliest(registry.kind("criteria", "gini"), np.array(branches).T.copy(), 0.0, 12.0, NEEDED)
    assert found == expected != other


def test_the_interval_of_cgd():
    waited = NEEDED / GAP**2 - 150.0
    assert waited == pytest.approx(439.479494, rel=1e-4)
    assert math.ceil(cgd.interval(0.11692459, 150.0, NEEDED, math.inf)) == 440
    assert cgd.interval(0.0, 150.0, NEEDED, math.inf) == 100_000.0
    tie = NEEDED / 0.05**2 - 150.0
    assert tie == pytest.approx(3073.6191, abs=5e-5)
    assert cgd.interval(0.0, 150.0, NEEDED, tie) == tie


def test_a_gap_out_of_reach():
    """Two tests that will never differ by enough: the longest interval there is."""
    assert osm.earliest(registry.kind("criteria", "info_gain"), np.eye(2), -1.0, 2.0, NEEDED) == 100_000.0


@pytest.mark.parametrize("name", STREAMS)
def test_osm_never_attempts_more_often_until_the_leaf_splits(name):
    stream = STREAMS[name]()
    attempts = {}
    for schedule in ("osm", "grace_period"):
        spec = {"learner": {"name": "h-tree", "grace_period": 40, "delta": 1e-4, "schedule": schedule}}
        twin = twin_of(spec, stream)
        for x, y, weight in zip(stream.x.tolist(), stream.y.tolist(), stream.weight.tolist(), strict=True):
            if twin.learn(x, y, weight) is not None:
                break
        attempts[schedule] = twin.tree.attempts
    assert attempts["osm"] <= attempts["grace_period"]


@pytest.mark.parametrize("name", ["osm", "cgd"])
def test_the_presets_are_h_tree_with_another_schedule(name):
    learner = Spec.parse(name).learner
    assert (learner.schedule.name, learner.leaf_model.name, learner.schedule.grace_period) == (
        name,
        "nba",
        200.0,
    )
    assert Spec.parse(
        {"learner": {"name": "h-tree", "schedule": name, "leaf_model": "nba"}}
    ).learner.limits == (learner.limits)
