"""Waiting time of a leaf: shared code of schedules that compute when the next attempt is due."""

from __future__ import annotations

import math
from typing import Final

from core.criteria import base as criteria
from core.kernels.jit import kernel
from core.learners.hoeffding import ranking
from core.tree import layout as at
from core.tree import quirks
from core.tree.byoffset.statistics import SLACK, later, reckoned_weight

FARTHEST: Final = 100_000.0
"""Maximum of weight that a leaf waits for."""

ROUNDING: Final = 1e-10
"""A smaller gap is rounding [D6]."""

merit_range = criteria.range_dispatcher()


@kernel
def squared_range(plan, ints, node: int) -> float:
    """Return R² of the merit at a leaf, for the known classes; for MOA for the classes seen in the leaf."""
    by_node = plan[at.PLAN_QUIRKS] & quirks.RANGE_OF_NODE != 0
    classes = ints[node + at.NODE_REACH] if by_node else ints[at.MODEL_CLASSES]
    reach = merit_range(plan[at.PLAN_CRITERION], classes)
    return reach * reach


@kernel
def until_tie(plan, params, ints, node: int, n: float) -> float:
    """Return the weight after which ε is below τ, from weight n on; infinite without ties."""
    return params[at.PLAN_TIE] * squared_range(plan, ints, node) - n


@kernel
def can_reckon(params, out) -> bool:
    """Return whether a ranking gives the waiting time: two classes, a best test, ε in closed form."""
    if out[ranking.CLASSES] < 2.0 or out[ranking.BEST_ATTRIBUTE] == ranking.NO_SPLIT:
        return False
    return out[ranking.BEST_MERIT] >= ROUNDING and params[at.PLAN_GAP] >= 0.0


@kernel
def wait(plan, ints, floats, node: int, leaf: int, weight: float) -> None:
    """Make a leaf that had an attempt now due again after this weight, rounded up, at least 1."""
    due = later(floats[leaf + at.LEAF_OBSERVED], max(math.ceil(weight), 1.0))
    floats[leaf + at.LEAF_EVALUATED] = reckoned_weight(plan, ints, floats, node, leaf)
    floats[leaf + at.LEAF_NEXT] = due if plan[at.PLAN_QUIRKS] & quirks.INHERITED_COUNTS == 0 else due - SLACK


@kernel
def is_over(floats, leaf: int) -> bool:
    return floats[leaf + at.LEAF_OBSERVED] >= floats[leaf + at.LEAF_NEXT]
