"""Values of the bounds of CDT, equation 7 and theorems 1 to 4, computed apart."""

import math
from itertools import pairwise

import numpy as np
import pytest

from core.bounds import base
from core.bounds.c_tree import Plugin, decision, log_share_of_delta
from core.criteria import entropy, gini, km
from core.errors import ParameterError, SchemaError
from core.spec import Spec
from tests.naive.criteria import IMPURITIES, conditional
from tests.unit.core.builders import schema_of, table_of

LEADS = {"gini": 0.144192, "km": 0.096703, "entropy": 0.086437}  # of the worked leaf, section 2.3
PERFECT = {
    "gini": 0.5,
    "km": 0.5,
    "entropy": 0.5 * math.log(2.0),
}  # one perfect attribute, the others useless


def case_of(weight, depth, records):
    """Return the case of a leaf of two classes and five attributes."""
    return base.Case(
        weight=float(weight),
        merit_range=1.0,
        classes=2,
        criterion=0,
        depth=depth,
        records=float(records),
        attributes=5,
        tests=0,
    )


def theory(n, criterion, *, delta=0.0, depth=0, records=None, attributes=5, tests=0):
    return Plugin(variant="theory", delta=delta).epsilon(
        1.0,
        n,
        criterion=criterion,
        depth=depth,
        records=n if records is None else records,
        attributes=attributes,
        tests=tests,
    )


def practical(n, criterion="gini", *, c=1.0, depth=0, records=None, attributes=5):
    records = n if records is None else records
    return Plugin(c=c).epsilon(
        1.0, n, criterion=criterion, depth=depth, records=records, attributes=attributes
    )


def first_that(holds, below=1 << 26):
    """Return the least n that holds, for what holds from some n on."""
    low, high = 8, below
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


@pytest.mark.parametrize(
    ("m", "delta", "of_entropy", "of_gini", "of_km"),
    [
        (100, 0.05, 1.383321, 0.943241, 0.901126),
        (1000, 0.05, 0.648680, 0.298279, 0.284961),
        (1000, 1e-7, 1.294485, 0.493220, 0.539593),
        (10_000, 1e-7, 0.545159, 0.155970, 0.170634),
        (100_000, 1e-7, 0.215434, 0.049322, 0.053959),
    ],
)
def test_theorems_1_to_3(m, delta, of_entropy, of_gini, of_km):
    deviations = [module.deviation(float(m), math.log(delta), 2) for module in (entropy, gini, km)]
    assert deviations == pytest.approx([of_entropy, of_gini, of_km], abs=1e-6)


@pytest.mark.parametrize(
    ("h", "t", "m", "delta", "widths"),
    [
        (0, 1000, 1000, 9.970060e-17, (1.912107, 0.674488, 0.789165)),
        (3, 10**5, 2000, 4.999850e-26, (1.857303, 0.575039, 0.694765)),
    ],
)
def test_theorem_4(h, t, m, delta, widths):
    case = case_of(weight=m, depth=h, records=t)
    assert math.exp(log_share_of_delta(0.0, case)) == pytest.approx(delta, rel=1e-6)
    widths_of = [theory(m, name, depth=h, records=t) for name in ("entropy", "gini", "km")]
    assert widths_of == pytest.approx(widths, abs=1e-6)


def test_more_tests_than_records_share_delta_among_them():
    assert theory(1000, "gini", tests=1000) == theory(1000, "gini")
    assert theory(1000, "gini", tests=1001) > theory(1000, "gini")


@pytest.mark.parametrize(
    ("m", "h", "t", "expected"),
    [(100, 0, 100, 0.392746), (1000, 0, 1000, 0.149441), (2000, 3, 10**5, 0.124693)],
)
def test_equation_7(m, h, t, expected):
    assert practical(m, depth=h, records=t) == pytest.approx(expected, abs=1e-6)
    assert practical(m, "entropy", depth=h, records=t) == pytest.approx(expected * math.log(m), rel=1e-5)
    assert practical(m, c=0.005, depth=h, records=t) == pytest.approx(0.005 * expected, abs=1e-6)


@pytest.mark.parametrize(
    ("attributes", "criterion", "first"),
    [
        (5, "gini", 8988),
        (5, "km", 13_274),
        (5, "entropy", 905_635),
        (2, "gini", 8833),
        (2, "km", 13_014),
        (2, "entropy", 891_015),
    ],
)
def test_the_first_split_on_a_perfect_attribute(attributes, criterion, first):
    """Theory, root, t = m, δ_t = 1/t."""
    lead = PERFECT[criterion]
    assert first_that(lambda n: lead >= 2.0 * theory(n, criterion, attributes=attributes)) == first


@pytest.mark.parametrize(
    ("criterion", "first"), [("gini", 130_950), ("km", 470_694), ("entropy", 27_840_314)]
)
def test_the_first_split_of_the_worked_leaf_in_theory(criterion, first):
    exact = worked_lead(criterion)
    assert exact == pytest.approx(LEADS[criterion], abs=1e-6)
    assert first_that(lambda n: exact >= 2.0 * theory(n, criterion, attributes=2)) == first


@pytest.mark.parametrize(("c", "first"), [(0.5, 200), (1.0, 1036)])
def test_the_first_split_of_the_worked_leaf_in_practice(c, first):
    lead = worked_lead("gini")
    records_needed = first_that(lambda n: lead > practical(n, c=c, attributes=2))
    assert records_needed == first


def worked_lead(criterion):
    impurity = IMPURITIES[criterion]
    return conditional(impurity, [[25, 20], [10, 45]]) - conditional(impurity, [[30, 10], [5, 55]])


def test_verdicts():
    """Practice asks for more than ε, theory for at least 2ε; ties count up to τ, but never at τ = 0."""
    for variant, enough, too_little in (("practical", 0.1000001, 0.1), ("theory", 0.2, 0.1999999)):
        p = Plugin(variant=variant).numbers()
        assert decision(p, enough, 0.1, 0.0) == base.GAP
        assert decision(p, too_little, 0.1, 0.0) == base.OPEN
        assert decision(p, too_little, 0.1, 0.1) == base.TIE
        assert decision(p, 0.0, 0.1, 0.0999) == base.OPEN


def test_it_shrinks_with_evidence_and_grows_with_depth_and_time():
    for bound in (theory, practical):
        for criterion in ("gini", "km", "entropy"):
            widths = [bound(n, criterion, records=10**6) for n in range(20, 3000, 10)]
            assert all(later < earlier for earlier, later in pairwise(widths))
            assert bound(500, criterion, depth=4) > bound(500, criterion, depth=1)
            assert bound(500, criterion, records=10**7) > bound(500, criterion, records=10**4)


def test_a_weight_of_at_most_one_record_is_no_evidence():
    for weight in (1e-300, 0.3, 1.0):
        assert theory(weight, "entropy") == practical(weight, "entropy") == math.inf


@pytest.mark.parametrize(
    "learner",
    [
        {"criterion": "km"},
        {"criterion": "gini", "variant": "theory"},
        {"criterion": "km", "variant": "theory"},
    ],
)
def test_two_classes_only(learner):
    """[D11]: refused where the classes are known, kept out where they are open."""
    spec = Spec.parse({"learner": {"name": "c-tree"} | learner, "max_classes": 10})
    assert spec.max_classes == 2
    with pytest.raises(SchemaError, match="classes=3 must be at most 2 with criterion"):
        table_of(schema_of(None, classes="abc"), spec)
    with pytest.raises(SchemaError, match="classes=64 must be at most 2"):
        table_of(schema_of(None, classes=()), spec)


def test_any_number_of_classes():
    for learner in ({"criterion": "gini"}, {"criterion": "entropy", "variant": "theory"}):
        spec = Spec.parse({"learner": {"name": "c-tree"} | learner})
        assert len(table_of(schema_of(None, classes="abc"), spec)) == 1


@pytest.mark.parametrize("variant", ["practical", "theory"])
def test_criteria_without_a_theorem_are_refused(variant):
    with pytest.raises(ParameterError, match="criterion='error' must be one of entropy, gini, info_gain, km"):
        Spec.parse({"learner": {"name": "c-tree", "criterion": "error", "variant": variant}})


LAW = np.array([0.30, 0.10, 0.15, 0.45])  # branch 0 class 0, class 1, branch 1 class 0, class 1


MODULES = {"gini": gini, "km": km, "entropy": entropy}
TRUTHS = {"gini": 0.375000, "km": 0.433013, "entropy": 0.281168}


def estimates(criterion, counts):
    """Return the conditional impurity of tables float64[table, 4], as the criterion estimates it."""
    columns = np.ascontiguousarray(counts.reshape(-1, 2).T)  # float64[class, table·branch]
    out, total = np.empty(2 * len(counts)), np.empty(2 * len(counts))
    MODULES[criterion].impurity(columns, 2, 2 * len(counts), out, total)
    return out.reshape(-1, 2).sum(axis=1) / counts[0].sum()


@pytest.mark.parametrize(
    ("criterion", "bias", "deviation"),
    [("gini", -0.007500, 0.043080), ("km", -0.005956, 0.026106), ("entropy", -0.005082, 0.024337)],
)
def test_bias_and_spread_over_all_that_can_come(criterion, bias, deviation):
    """Theorems 1 to 3 at m = 100: the sum over all 176,851 tables, each with its probability."""
    m = 100
    a, b, c = (axis.ravel() for axis in np.meshgrid(*[np.arange(m + 1)] * 3, indexing="ij"))
    fits = a + b + c <= m
    counts = np.stack([a[fits], b[fits], c[fits], m - (a + b + c)[fits]], axis=1).astype(np.float64)
    factorials = np.concatenate(([0.0], np.cumsum(np.log(np.arange(1, m + 1)))))
    chance = np.exp(
        factorials[m] - factorials[counts.astype(int)].sum(axis=1) + (counts * np.log(LAW)).sum(axis=1)
    )
    estimated = estimates(criterion, counts)
    truth = conditional(IMPURITIES[criterion], [LAW[:2], LAW[2:]])
    assert len(counts) == 176_851
    assert chance.sum() == pytest.approx(1.0, abs=1e-12)
    assert truth == pytest.approx(TRUTHS[criterion], abs=5e-7)
    mean = (chance * estimated).sum()
    assert mean - truth == pytest.approx(bias, abs=5e-7)
    assert math.sqrt((chance * (estimated - mean) ** 2).sum()) == pytest.approx(deviation, abs=5e-7)
    if criterion == "gini":
        closed = -sum(2.0 * p * (1.0 - p) for p in (0.25, 0.75)) / m
        assert bias == pytest.approx(closed, abs=5e-7)


@pytest.mark.parametrize(("criterion", "deviation"), [("gini", 0.0138), ("km", 0.0080), ("entropy", 0.0076)])
@pytest.mark.parametrize("m", [100, 1000])
def test_simulated_deviations_stay_inside(criterion, deviation, m):
    """No deviation beyond ε; the spread at m = 1000 as the specification has it."""
    draws = 20_000
    estimated = estimates(criterion, np.random.default_rng(5).multinomial(m, LAW, draws).astype(np.float64))
    truth = conditional(IMPURITIES[criterion], [LAW[:2], LAW[2:]])
    assert np.abs(estimated - truth).max() < MODULES[criterion].deviation(float(m), math.log(0.05), 2)
    assert estimated.mean() < truth, "an impurity is concave: its estimate is too low, never too high"
    if m == 1000:
        assert estimated.std() == pytest.approx(
            deviation, abs=5e-5 + 4.0 * deviation / math.sqrt(2.0 * draws)
        )


def test_remark_1():
    """With δ_t = 1/t at most Σ 1/t of the first 100,000 records are routed by a wrong split, in the mean."""
    shares = sum(1.0 / t for t in range(1, 10**5 + 1))
    assert shares == pytest.approx(12.090146, abs=5e-7)
    case = case_of(weight=50.0, depth=0, records=100.0)
    written_out, default = log_share_of_delta(1.0 / 100.0, case), log_share_of_delta(0.0, case)
    assert default == pytest.approx(written_out, abs=1e-12), "delta 0 stands for 1/t"


def test_one_example_moves_gini_by_less_than_2():
    """m·Φ̂: CDT's proof uses 4; m = 12, all tables of two branches, every example changed in every way."""
    largest, moves = 0.0, ((0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3))

    def value(table):
        a, b, c, d = table
        return sum(2.0 * p * q / (p + q) for p, q in ((a, b), (c, d)) if p + q > 0)

    for a in range(13):
        for b in range(13 - a):
            for c in range(13 - a - b):
                table = (a, b, c, 12 - a - b - c)
                for i, j in (*moves, *((j, i) for i, j in moves)):
                    if table[i] > 0:
                        moved = list(table)
                        moved[i] -= 1
                        moved[j] += 1
                        largest = max(largest, abs(value(table) - value(moved)))
    assert largest == pytest.approx(1.833333, abs=1e-6)
