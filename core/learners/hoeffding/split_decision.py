"""Split decision: the confidence bound's decision on the lead of the best test, in compiled code.

It is the decision of every tree that compares best with second best
(``core/learners/hoeffding/presets/h_tree.py`` and the presets built on it). A failed attempt is decided
within the compiled run (``core/learners/hoeffding/split_attempt.py``). A successful attempt is decided again
from Python, by the same code, to get the test to install.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from core.bounds import base as bounds
from core.criteria import base as criteria
from core.kernels.jit import kernel, words_at
from core.kernels.records import Words
from core.layout.plan import PlanRecord
from core.learners.hoeffding import ranking
from core.learners.hoeffding.decision import Reason
from core.observers import base as observers
from core.tree import layout as at
from core.tree import quirks
from core.tree.byoffset.routing import leaf_at
from core.tree.byoffset.statistics import evidence

OPEN: Final = bounds.OPEN
GAP: Final = bounds.GAP
TIE: Final = bounds.TIE
ONLY: Final = 3  # MOA: the one suggestion has no competitor

REASONS: Final[dict[int, Reason]] = {GAP: "gap", TIE: "tie", ONLY: "only"}
"""Names of the decisions in events; an attempt that is OPEN has none."""

MIN_GAIN: Final = 1e-10
"""A smaller gain is rounding and never leads to a split [D6]."""

epsilon_of, decision_of = bounds.dispatcher()
reach = criteria.range_dispatcher()
candidates_numeric = observers.numeric_dispatcher()[2]


@kernel("int64(int64, int64, int64, int64, float64[::1])")
def decide_leaf(plan_address: int, address: int, t: int, node: int, out) -> int:
    """Rank the tests of a due leaf and return the decision; out: float64[RANKING_WORDS].

    t and node are the first words of the tree and of the leaf's node record.
    """
    plan, params = words_at(plan_address)
    ints, floats = words_at(address)
    leaf = leaf_at(ints, t, ints[node + at.NODE_SLOT])
    ranking.rank_leaf(plan, params, ints, floats, t, leaf, out)
    return decide_ranking(plan, params, ints, floats, node, leaf, out)


@kernel
def decide_ranking(plan, params, ints, floats, node: int, leaf: int, out) -> int:
    """Return the decision on a ranking; write ε and the weight it follows from into the ranking."""
    if out[ranking.CLASSES] < 2.0:
        return OPEN
    hopeless = out[ranking.BEST_ATTRIBUTE] == ranking.NO_SPLIT or out[ranking.BEST_MERIT] < MIN_GAIN
    if hopeless and plan[at.PLAN_QUIRKS] & quirks.MERIT_OF_NULL == 0:
        return OPEN
    case = np.empty(bounds.CASE_WORDS)
    describe(plan, params, ints, floats, node, leaf, case)
    kind, first = plan[at.PLAN_BOUND], plan[at.PLAN_BOUND + 1]
    epsilon = half_width(plan, params, case)
    out[ranking.EPSILON], out[ranking.EVIDENCE] = epsilon, case[bounds.CASE_WEIGHT]
    if out[ranking.SUGGESTIONS] == 1.0:
        return ONLY
    lead = out[ranking.BEST_MERIT] - out[ranking.SECOND_MERIT]
    return decision_of(kind, params, first, lead, epsilon, params[at.PLAN_TAU])


@kernel
def half_width(plan, params, case) -> float:
    """Return ε of a case; infinite without evidence: all observations are outside the statistics."""
    if case[bounds.CASE_WEIGHT] <= 0.0:
        return math.inf
    return epsilon_of(plan[at.PLAN_BOUND], params, plan[at.PLAN_BOUND + 1], case)


@kernel
def describe(plan, params, ints, floats, node: int, leaf: int, case) -> None:
    """Write the case that bounds read: float64[CASE_WORDS]."""
    by_node = plan[at.PLAN_QUIRKS] & quirks.RANGE_OF_NODE != 0
    k = ints[node + at.NODE_REACH] if by_node else ints[at.MODEL_CLASSES]
    case[bounds.CASE_WEIGHT] = evidence(plan, ints, floats, node, leaf)
    case[bounds.CASE_RANGE] = reach(plan[at.PLAN_CRITERION], k)
    case[bounds.CASE_CLASSES] = k
    case[bounds.CASE_CRITERION] = plan[at.PLAN_CRITERION]
    case[bounds.CASE_DEPTH] = ints[node + at.NODE_DEPTH]
    # Labels may be learned for records that were never answered.
    case[bounds.CASE_RECORDS] = max(ints[at.MODEL_RECORDS], ints[at.MODEL_LABELS] + 1)
    case[bounds.CASE_ATTRIBUTES] = plan[at.PLAN_COUNTED]
    tests = 0
    if plan[at.PLAN_NUMERIC] > 0:
        tests = candidates_numeric(
            plan[at.PLAN_NUMERIC_OBSERVER],
            PlanRecord(plan, params, 0),
            Words(plan, params, plan[at.PLAN_NUMERIC_OBSERVER + 1]),
        )
    for j in range(plan[at.PLAN_NOMINAL]):
        tests = max(tests, ints[plan[at.PLAN_VALUES_SEEN] + j])
    case[bounds.CASE_TESTS] = tests
