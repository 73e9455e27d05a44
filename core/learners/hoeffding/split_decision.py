"""Split decision: the confidence bound's decision on the lead of the best test, in compiled code.

It is the decision of every tree that compares best with second best
(``core/learners/hoeffding/presets/h_tree.py`` and the presets built on it). A failed attempt is decided
within the compiled run (``core/learners/hoeffding/split_attempt.py``). A successful attempt is decided again
from Python, by the same code, to get the test to install.
"""

from __future__ import annotations

import math
from typing import Final

from core.bounds import base as bounds
from core.bounds.base import Case
from core.criteria import base as criteria
from core.kernels.jit import kernel
from core.layout.plan import PlanRecord
from core.layout.tree import Leaf, Node, Tree
from core.learners.hoeffding import ranking
from core.learners.hoeffding.decision import Reason
from core.observers import base as observers
from core.tree import quirks
from core.tree.statistics import evidence

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


@kernel("int64(PlanRecord, Tree, Node, float64[::1])")
def decide_leaf(plan: PlanRecord, tree: Tree, node: Node, out) -> int:
    """Rank the tests of a due leaf and return the decision; out: float64[RANKING_WORDS]."""
    leaf = tree.leaf_of(node)
    ranking.rank_leaf(plan, tree, leaf, out)
    return decide_ranking(plan, tree, node, leaf, out)


@kernel
def decide_ranking(plan: PlanRecord, tree: Tree, node: Node, leaf: Leaf, out) -> int:
    """Return the decision on a ranking; write ε and the weight it follows from into the ranking."""
    if out[ranking.CLASSES] < 2.0:
        return OPEN
    hopeless = out[ranking.BEST_ATTRIBUTE] == ranking.NO_SPLIT or out[ranking.BEST_MERIT] < MIN_GAIN
    if hopeless and not plan.has(quirks.MERIT_OF_NULL):
        return OPEN
    case = case_of(plan, tree, node, leaf)
    epsilon = half_width(plan, case)
    out[ranking.EPSILON], out[ranking.EVIDENCE] = epsilon, case.weight
    if out[ranking.SUGGESTIONS] == 1.0:
        return ONLY
    other = 0.0 if plan.against_none != 0 else out[ranking.SECOND_MERIT]
    return decide_lead(plan, out[ranking.BEST_MERIT] - other, epsilon)


@kernel
def decide_lead(plan: PlanRecord, lead: float, epsilon: float) -> int:
    """Return the bound's decision: OPEN, GAP or TIE."""
    return decision_of(plan.bound, plan.parameters(plan.bound_at), lead, epsilon, plan.tau)


@kernel
def half_width(plan: PlanRecord, case: Case) -> float:
    """Return ε of a case; infinite without evidence: all observations are outside the statistics."""
    if case.weight <= 0.0:
        return math.inf
    return epsilon_of(plan.bound, plan.parameters(plan.bound_at), case)


@kernel
def case_of(plan: PlanRecord, tree: Tree, node: Node, leaf: Leaf) -> Case:
    """Return the case of a leaf, the input of bounds."""
    model = tree.model
    k = node.reach if plan.has(quirks.RANGE_OF_NODE) else model.classes
    tests = 0
    if plan.numeric > 0:
        p = plan.parameters(plan.numeric_observer_at)
        tests = candidates_numeric(plan.numeric_observer, plan, p)
    for j in range(plan.nominal):
        tests = max(tests, model.values_seen(plan)[j])
    return Case(
        weight=evidence(plan, node, leaf, model.classes),
        merit_range=reach(plan.criterion, k),
        classes=k,
        criterion=plan.criterion,
        depth=node.depth,
        # Labels may be learned for records that were never answered.
        records=float(max(model.records, model.labels + 1)),
        attributes=plan.counted,
        tests=tests,
    )
