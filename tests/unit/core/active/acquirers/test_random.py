"""What is bought at random: a share, drawn by record and column alone."""

import numpy as np

from core.active.acquirers import random
from core.active.acquirers.base import BUDGET, EXHAUSTED, Step
from core.model.model import Model
from tests.unit.core.builders import schema_of, spec_of

MODEL = Model.create(spec_of(), schema_of(*[None] * 8))
EVERY = np.ones(8, dtype=np.bool_)
NOTHING = np.full(8, np.nan)


def bought(number, left=np.inf, unknown=EVERY, **parameters):
    plugin = random.Plugin(**parameters)
    words = plugin.open(MODEL, NOTHING, unknown, number, False)
    return plugin.step(MODEL, words, NOTHING, unknown, left)


def test_a_share_of_each_feature_is_bought():
    n = 2000
    steps = [bought(number, share=0.3).features for number in range(n)]
    for column in range(8):
        assert abs(sum(column in step for step in steps) - 0.3 * n) < 4 * np.sqrt(0.21 * n)
    pairs = sum({0, 1} <= set(step) for step in steps)
    assert abs(pairs - 0.09 * n) < 4 * np.sqrt(0.09 * n), "columns are drawn apart"


def test_all_or_nothing():
    assert bought(3, share=1.0).features == tuple(range(8))
    assert bought(3, share=0.0) == Step(stop=EXHAUSTED)
    assert bought(3, share=1.0, unknown=~EVERY) == Step(stop=EXHAUSTED)


def test_the_budget_bounds_it():
    assert bought(3, left=2.5, share=1.0).features == (0, 1)
    assert bought(3, left=0.5, share=1.0) == Step(stop=BUDGET)


def test_what_was_drawn_is_bought_once():
    """When it has come, or is not to be had, nothing else is drawn in its place."""
    first = bought(7, share=0.5).features
    assert 0 < len(first) < 8
    rest = EVERY.copy()
    rest[[*first]] = False
    assert bought(7, unknown=rest, share=0.5) == Step(stop=EXHAUSTED)
