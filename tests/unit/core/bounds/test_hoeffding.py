import pytest

from core import registry
from core.bounds.hoeffding import Plugin
from core.criteria import gini, info_gain


@pytest.mark.parametrize(
    ("n", "delta", "epsilon"),
    [
        (100, 0.05, 0.122387),
        (1000, 0.05, 0.038702),
        (1000, 1e-7, 0.089772),
        (200, 1e-7, 0.200737),
        (100, 1e-7, 0.283885),
    ],
)
def test_epsilon(n, delta, epsilon):
    """sqrt(ln(1/δ) / 2n), R = 1."""
    assert Plugin(delta=delta).epsilon(1.0, n) == pytest.approx(epsilon, abs=1e-6)


@pytest.mark.parametrize(
    ("classes", "n"),
    [(2, 3223.6191), (7, 25406.12), (10, 35573.30), (15, 49204.66), (23, 65963.67), (25, 69518.64)],
)
def test_where_ties_begin(classes, n):
    """ε < τ iff n > R²·ln(1/δ)/(2τ²), δ = 1e-7, τ = 0.05."""
    bound, reach = Plugin(), info_gain.Plugin().merit_range(classes)
    assert bound.epsilon(reach, n * (1 - 1e-6)) > 0.05
    assert bound.epsilon(reach, n * (1 + 1e-6)) < 0.05


def test_it_shrinks_with_evidence_and_grows_with_certainty():
    bound = Plugin()
    widths = [bound.epsilon(1.0, n) for n in range(1, 500)]
    assert widths == sorted(widths, reverse=True)
    assert Plugin(delta=1e-9).epsilon(1.0, 100) > Plugin(delta=1e-3).epsilon(1.0, 100)


def test_the_range_of_merits():
    assert [info_gain.Plugin().merit_range(k) for k in (1, 2, 4)] == [1.0, 1.0, 2.0]
    assert [gini.Plugin().merit_range(k) for k in (2, 10)] == [1.0, 1.0]


@pytest.mark.parametrize("bound", registry.names("bounds"))
@pytest.mark.parametrize("delta", [1e-300, 1e-308, 5e-324])
def test_no_delta_is_too_small(bound, delta):
    """1/δ overflows below 5.6e-309; -ln δ is 744 at most."""
    options = {"variant": "theory"} if bound == "c_tree" else {}
    plugin = registry.plugin("bounds", bound)
    tiny = plugin(delta=delta, **options).epsilon(1.0, 1e6, records=1e6)
    usual = plugin(delta=1e-7, **options).epsilon(1.0, 1e6, records=1e6)
    assert usual < tiny < 10.0 * usual
