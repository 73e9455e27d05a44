"""Waiting time of a leaf: shared code of schedules that compute when the next attempt is due."""

from __future__ import annotations

import math
from typing import Final

from core.criteria import base as criteria
from core.kernels.jit import kernel
from core.layout.model import model_of
from core.layout.plan import PlanRecord
from core.layout.tree import Leaf, Node
from core.learners.hoeffding import ranking
from core.tree import quirks
from core.tree.statistics import SLACK, evidence, later, reckoned_weight

FARTHEST: Final = 100_000.0
"""Maximum of weight that a leaf waits for."""

ROUNDING: Final = 1e-10
"""A smaller gap is rounding [D6]."""

merit_range = criteria.range_dispatcher()


@kernel
def squared_range(plan: PlanRecord, node: Node) -> float:
    """Return R² of the merit at a leaf, for the known classes; for MOA for the classes seen in the leaf."""
    classes = node.reach if plan.has(quirks.RANGE_OF_NODE) else model_of(node).classes
    reach = merit_range(plan.criterion, classes)
    return reach * reach


@kernel
def weight_of_evidence(plan: PlanRecord, node: Node, leaf: Leaf) -> float:
    """Return n, the weight that bounds count at a leaf."""
    return evidence(plan, node, leaf, model_of(node).classes)


@kernel
def until_tie(plan: PlanRecord, node: Node, n: float) -> float:
    """Return the weight after which ε is below τ, from weight n on; infinite without ties."""
    return plan.tie * squared_range(plan, node) - n


@kernel
def can_reckon(plan: PlanRecord, out) -> bool:
    """Return whether a ranking gives the waiting time: two classes, a best test, ε in closed form."""
    if out[ranking.CLASSES] < 2.0 or out[ranking.BEST_ATTRIBUTE] == ranking.NO_SPLIT:
        return False
    return out[ranking.BEST_MERIT] >= ROUNDING and plan.gap >= 0.0


@kernel
def wait(plan: PlanRecord, node: Node, leaf: Leaf, weight: float) -> None:
    """Make a leaf that had an attempt now due again after this weight, rounded up, at least 1."""
    wait_exactly(plan, node, leaf, max(math.ceil(weight), 1.0))


@kernel
def wait_exactly(plan: PlanRecord, node: Node, leaf: Leaf, weight: float) -> None:
    """Make a leaf that had an attempt now due again after this weight."""
    due = later(leaf.observed, weight)
    leaf.evaluated = reckoned_weight(plan, node, leaf, model_of(node).classes)
    leaf.next = due - SLACK if plan.has(quirks.INHERITED_COUNTS) else due


@kernel
def is_over(leaf: Leaf) -> bool:
    """Return whether a leaf has waited for its next attempt."""
    return leaf.observed >= leaf.next
