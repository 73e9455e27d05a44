"""What one record adds to a branch: VFS, theorems 1 and 2, and direct computation."""

import numpy as np
import pytest

from core import registry

D1 = [[30.0, 10.0], [5.0, 55.0]]
INCREMENTAL = [
    name for name in registry.names("criteria") if hasattr(registry.module("criteria", name), "increment")
]


def mixed(name, table):
    """Return mass times impurity over the branches of a table [branch][class]."""
    masses = np.ascontiguousarray(np.array(table).T)
    out, total = np.empty(len(table)), np.empty(len(table))
    registry.module("criteria", name).impurity(masses, len(masses), len(table), out, total)
    return float(out.sum())


def added(name, table, branch, label, weight):
    row = table[branch]
    module = registry.module("criteria", name)
    moment = module.moment(sum(row), sum(mass * mass for mass in row))
    change, after = module.increment(sum(row), row[label], moment, weight)
    grown = [mass + weight * (c == label) for c, mass in enumerate(row)]
    assert after == pytest.approx(module.moment(sum(grown), sum(mass * mass for mass in grown)))
    return change


@pytest.mark.parametrize(
    ("branch", "label", "weight", "entropy", "bits", "gini", "merit"),
    [
        (0, 0, 1.0, -0.409141, 0.571181, 0.878049, 0.759519),
        (0, 1, 1.0, -1.948042, 0.586418, -0.097561, 0.749859),
        (1, 0, 2.5, -8.256043, 0.639377, -1.533333, 0.724878),
    ],
)
def test_the_printed_increments(branch, label, weight, entropy, bits, gini, merit):
    """Printed are Theorem 1's Δ (the negative of what S gains) and what Gini's T gains."""
    assert mixed("info_gain", D1) / 100.0 == pytest.approx(0.572801, abs=5e-7)
    change = added("info_gain", D1, branch, label, weight)
    assert -change == pytest.approx(entropy, abs=5e-7)
    assert (mixed("info_gain", D1) + change) / (100.0 + weight) == pytest.approx(bits, abs=5e-7)
    change = added("gini", D1, branch, label, weight)
    assert weight - change == pytest.approx(gini, abs=5e-7)
    assert 1.0 - (mixed("gini", D1) + change) / (100.0 + weight) == pytest.approx(merit, abs=5e-7)


def test_a_zero_cell_is_exact():
    table = [[30.0, 0.0], [5.0, 55.0]]
    change = added("info_gain", table, 0, 1, 1.0)
    assert -change == pytest.approx(-6.373368, abs=5e-7)
    assert (mixed("info_gain", table) + change) / 91.0 == pytest.approx(0.342883, abs=5e-7)
    assert added("info_gain", [[0.0, 0.0]], 0, 1, 1.0) == 0.0
    assert added("gini", [[0.0, 0.0]], 0, 1, 1.0) == 0.0


def test_the_authors_take_small_masses_for_one():
    """The same formula with 1 for 0: what compat="imac" reproduces."""
    module = registry.module("criteria", "info_gain")
    change, _ = module.increment(30.0, 1.0, module.moment(30.0, 0.0), 1.0)
    assert -change == pytest.approx(-4.373368, abs=5e-7)
    assert (mixed("info_gain", [[30.0, 0.0], [5.0, 55.0]]) + change) / 91.0 == pytest.approx(
        0.320905, abs=5e-7
    )


@pytest.mark.parametrize("name", INCREMENTAL)
def test_many_increments_do_not_drift(name):
    """Less than 1e-13 after 100,000 random updates, each branch's moment going from one to the next."""
    n, module, draw = 100_000, registry.module("criteria", name), np.random.default_rng(3)
    table = np.zeros((3, 4)).tolist()
    moments, total = [module.moment(0.0, 0.0)] * 3, 0.0
    for branch, label in zip(draw.integers(0, 3, n).tolist(), draw.integers(0, 4, n).tolist(), strict=True):
        row = table[branch]
        change, moments[branch] = module.increment(sum(row), row[label], moments[branch], 1.0)
        total += change
        row[label] += 1.0
    assert abs(total - mixed(name, table)) / n < 1e-13
    for row, moment in zip(table, moments, strict=True):
        assert moment == pytest.approx(module.moment(sum(row), sum(mass * mass for mass in row)))
