import math
from decimal import Decimal, getcontext
from itertools import pairwise

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from core.numeric import qda

# prior, mean, deviation of two classes; the cut (None: there is none)
ORACLES = [
    ((0.5, 0.0, 1.0), (0.5, 2.0, 1.0), 1.0),
    ((0.3, 0.0, 1.0), (0.7, 2.0, 1.0), 0.576351),
    ((0.5, 0.0, 1.0), (0.5, 2.0, 2.0), 1.237584),
    ((0.7, 0.0, 1.0), (0.3, 0.0, 2.0), -2.026784),
    ((0.05, 0.0, 1.0), (0.95, 0.0, 2.0), None),
]

PRIORS = st.floats(0.01, 0.99)
MEANS = st.floats(-100.0, 100.0).map(lambda x: round(x, 3))
DEVIATIONS = st.floats(0.01, 50.0).map(lambda x: round(x, 3))
CLASSES = st.tuples(PRIORS, MEANS, DEVIATIONS)


def gain(a, b, cut):
    return qda.gain_of(*[*a, *b, cut])


@pytest.mark.parametrize(("a", "b", "cut"), ORACLES)
def test_published_cuts(a, b, cut):
    has_cut, at = qda.cut_of(*a, *b)
    assert has_cut == (cut is not None)
    if has_cut:
        assert at == pytest.approx(cut, abs=5e-7)


def test_published_table_and_gain():
    a, b = (0.5, 0.0, 1.0), (0.5, 2.0, 2.0)
    _, cut = qda.cut_of(*a, *b)
    left = [0.5 * qda.left_share(mean, sd, cut) for _, mean, sd in (a, b)]
    assert left == pytest.approx([0.446032, 0.175762], abs=5e-7)
    assert [0.5 - share for share in left] == pytest.approx([0.053968, 0.324238], abs=5e-7)
    assert gain(a, b, cut) == pytest.approx(0.242225, abs=5e-7)
    assert gain(a, b, -2.570917) == pytest.approx(0.000847, abs=5e-7)


def test_published_roots_and_sums_of_distances():
    """The root that is not taken is the farther one."""
    roots = roots_of((0.5, 0.0, 1.0), (0.5, 2.0, 2.0))
    assert [float(root) for root in roots] == pytest.approx([-2.570917, 1.237584], abs=5e-7)
    assert [float(abs(x) + abs(x - 2)) for x in roots] == pytest.approx([7.141834, 2.0], abs=5e-7)


@pytest.mark.parametrize(
    ("a", "b", "cut"),
    [
        ((0.5, 1.0, 0.0), (0.5, 4.0, 2.0), 2.5),  # one is a point
        ((0.5, 1.0, 0.0), (0.5, 1.0, 2.0), 1.0),
        ((0.5, 1.0, 0.0), (0.5, 4.0, 0.0), 2.5),  # both are
        ((0.5, 1.0, 0.0), (0.5, 1.0, 0.0), None),
        ((0.5, 1.0, 1.0), (0.5, 1.0, 1.0), None),  # the same densities
        ((0.2, 1.0, 1.0), (0.8, 1.0, 1.0), None),  # nowhere equal
        ((0.0, 1.0, 1.0), (0.5, 4.0, 2.0), None),
        ((0.5, math.nan, 1.0), (0.5, 4.0, 2.0), None),
        ((0.5, 1.0, math.inf), (0.5, 4.0, 2.0), None),
        ((0.5, -1e305, 1.0), (0.5, 1e305, 1.0), 0.0),
        ((0.5, 0.0, 1e-305), (0.5, 4.0, 1.0), 2.0),
    ],
)
def test_degenerate_classes(a, b, cut):
    for one, other in ((a, b), (b, a)):
        has_cut, at = qda.cut_of(*one, *other)
        assert (at if has_cut else None) == cut


def roots_of(a, b):
    """Return the real roots of ``A x² + B x + C = 0`` in ascending order, with 60 digits (section 22.3)."""
    getcontext().prec = 60
    (p, mean_p, sd_p), (q, mean_q, sd_q) = (tuple(map(Decimal, numbers)) for numbers in (a, b))
    square = (1 / sd_q**2 - 1 / sd_p**2) / 2
    linear = mean_p / sd_p**2 - mean_q / sd_q**2
    constant = (mean_q**2 / sd_q**2 - mean_p**2 / sd_p**2) / 2 + (p * sd_q / (q * sd_p)).ln()
    if abs(square) < Decimal("1e-12") * (1 / sd_p**2 + 1 / sd_q**2):
        return [-constant / linear] if linear != 0 else []
    inside = linear**2 - 4 * square * constant
    if inside < 0:
        return []
    return sorted((-linear + sign * inside.sqrt()) / (2 * square) for sign in (1, -1))


def discriminant(a, b):
    """Return what the square root is taken of, up to a factor."""
    (p, _, s), (q, _, t) = (a, b) if a[2] <= b[2] else (b, a)
    r, g = s / t, (b[1] - a[1]) / t
    return g * g + 2 * (1 - r * r) * math.log(p / (q * r))


@given(CLASSES, CLASSES)
def test_cut_is_the_root_with_the_smaller_sum_of_distances(a, b):
    roots = roots_of(a, b)
    sums = [float(abs(x - Decimal(a[1])) + abs(x - Decimal(b[1]))) for x in roots]
    # What rounding decides is not asked for: whether there is a root at all, and ties.
    assume(abs(discriminant(a, b)) > 1e-9)
    assume(len(sums) < 2 or a[1] == b[1] or abs(sums[0] - sums[1]) > 1e-6 * (1 + sums[0]))
    has_cut, cut = qda.cut_of(*a, *b)
    assert has_cut == bool(roots)
    if has_cut:
        root = roots[0] if a[1] == b[1] else roots[sums.index(min(sums))]
        assert cut == pytest.approx(float(root), rel=1e-9, abs=1e-7)


@given(CLASSES, CLASSES)
def test_roots_lie_about_a_point_outside_the_means(a, b):
    roots = roots_of(a, b)
    assume(len(roots) == 2 and a[1] != b[1])
    middle = (roots[0] + roots[1]) / 2
    low, high = sorted((Decimal(a[1]), Decimal(b[1])))
    assert not low < middle < high
    assert sum(low < root < high for root in roots) <= 1


@given(CLASSES, CLASSES)
def test_swapping_the_classes_changes_no_bit(a, b):
    assert qda.cut_of(*a, *b) == qda.cut_of(*b, *a)
    _, cut = qda.cut_of(*a, *b)
    assert gain(a, b, cut) == gain(b, a, cut)


@given(CLASSES, CLASSES, st.floats(-1e9, 1e9), st.sampled_from([2.0**-20, 0.5, 4.0, 2.0**30]))
def test_affine_maps_move_the_cut(a, b, shift, scale):
    moved = [(p, m * scale + shift, s * scale) for p, m, s in (a, b)]
    lost = 1e-12 * max(abs(moved[0][1]), abs(moved[1][1]), 1.0)  # by the rounding of the means
    assume(lost < 1e-9 * scale * min(a[2], b[2]) and abs(discriminant(a, b)) > 1e-3)
    has_cut, cut = qda.cut_of(*a, *b)
    found_there, there = qda.cut_of(*moved[0], *moved[1])
    assert has_cut == found_there
    if has_cut and (a[1] == b[1] or abs(a[1] - b[1]) > 1e-3):
        assert there == pytest.approx(cut * scale + shift, rel=1e-6, abs=1e-6 * scale)


@given(CLASSES, CLASSES, st.floats(-200.0, 200.0))
def test_gain_is_that_of_the_contingency_table(a, b, cut):
    def entropy(masses):
        whole = sum(masses)
        return sum(-x * math.log2(x / whole) for x in masses if x > 0.0)

    total = a[0] + b[0]
    scores = [(prior / total, (cut - mean) / sd / math.sqrt(2.0)) for prior, mean, sd in (a, b)]
    after = sum(entropy([p * 0.5 * math.erfc(sign * z) for p, z in scores]) for sign in (1, -1))
    assert gain(a, b, cut) == pytest.approx(entropy([p for p, _ in scores]) - after, abs=1e-13)
    assert 0.0 <= gain(a, b, cut) <= 1.0


def test_left_share_of_a_point_jumps():
    assert [qda.left_share(2.0, 0.0, cut) for cut in (1.9, 2.0, 2.1)] == [0.0, 1.0, 1.0]
    shares = [qda.left_share(2.0, 1.0, 0.1 * i) for i in range(40)]
    assert all(one < other for one, other in pairwise(shares))


def test_without_weight_there_is_no_gain():
    assert qda.gain_of(0.0, 0.0, 1.0, 5.0, 2.0, 1.0, 1.0) == 0.0
