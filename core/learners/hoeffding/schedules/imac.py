"""IMAC: a few candidate attributes, updated record by record, show when an attempt may succeed."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from core.kernels.jit import WORDS, kernel, outlined
from core.layout.plan import PlanRecord
from core.layout.tree import Leaf, Node
from core.learners.hoeffding.ranking import classes_with_weight, moa_merits
from core.learners.hoeffding.schedules import _waiting as waiting
from core.learners.hoeffding.schedules._imac import candidates, checked, inner_node
from core.learners.hoeffding.schedules._imac import exchange as sets
from core.learners.hoeffding.schedules.base import Schedule
from core.plugin import flag, period
from core.tree import layout as at
from core.tree import quirks
from core.tree.byoffset.statistics import evidence, later, own_evidence, reckoned_weight
from core.tree.views import TreeView

PROBLEMS, problem = checked.PROBLEMS, checked.problem
"""The state of the schedule is its candidates."""


@dataclass(frozen=True, slots=True)
class Plugin(Schedule):
    """Due when the best candidate leads by more than ε, or ε is below τ (ALGORITHMS section 15; Sun and
    others 2020, section 3.3).

    ``{"schedule": "imac", "grace_period": 200, "check_period": 200}``: the first attempt comes at the first
    record after ``grace_period`` (η of the paper) that finds the leaf impure [D36]. An attempt that fails
    makes the best 10 % of the attributes candidates, at least 5 and at most 10 [D34]; their merits are exact
    from then on. Every ``check_period`` (µ) thresholds are renewed and candidates exchanged [D35].
    ``keep_illegal`` admits as candidates also attributes that are behind by more than ε. With a bound whose ε
    has no closed form the leaf is due at every check.
    """

    grace_period: float = period(200.0)
    """Labelled weight before the first attempt at a leaf (η)."""
    check_period: float = period(200.0)
    """Labelled weight after which candidates are renewed and exchanged (µ)."""
    keep_illegal: bool = flag(False)
    """Attributes that are behind by more than ε may be candidates, too."""

    periodic: ClassVar[bool] = False

    def first(self) -> float:
        return self.grace_period

    def axes(self, attributes: int) -> tuple[tuple[str | int, ...], ...]:
        return candidates.axes(attributes)

    def problems(self, model: Any, tree: TreeView, slot: int) -> Iterator[str]:
        """Yield the problems of the candidates of a leaf record."""
        header, attributes, rows, counts, _ = (section[slot] for section in tree.schedule)
        count = int(header.view(np.int64)[candidates.COUNT])  # checked by checked.py
        places = attributes.view(np.int64)[:, 0]
        if header[candidates.CHECKED] > 0.0 and (places == candidates.AWAY).any():
            yield "after an attempt every attribute must be candidate, potential or illegal"
        own = rows.view(np.int64)[candidates.ATTRIBUTE, :count].tolist()
        node = int(tree.leaf_ints[slot, at.LEAF_NODE])
        if model.spec.learner.watches_inner_nodes and tree.node_ints[node, at.NODE_KIND] != at.LEAF:
            words = (at.NODE_ATTRIBUTE, at.NODE_KIND, at.NODE_VALUE)  # in the order ATTRIBUTE, TEST, VALUE
            if rows[candidates.ATTRIBUTE : candidates.VALUE + 1, 0].tobytes() != (
                tree.node_floats[node, list(words)].tobytes()
            ):
                yield "candidate 0 must be the test of the node"
        if tree.leaf_floats[slot, at.LEAF_NEXT] == math.inf:
            return  # growth has stopped: the candidates are not updated any more
        whole = rows.view(np.int64)[candidates.WHOLE, :count] != 0
        multiway = rows.view(np.int64)[candidates.TEST, :count] == at.MULTIWAY
        for q in np.flatnonzero(whole & ~multiway):
            rounded = max(1e-7, 1e-9 * tree.seen[slot].sum())  # tolerance of candidates.load
            if not np.allclose(counts[q].sum(axis=0), tree.seen[slot], rtol=1e-7, atol=rounded):
                yield f"counts of attribute {own[q]} must add up to seen={tree.seen[slot].tolist()}"


@kernel
def parameters(plan) -> int:
    """Return where the schedule's parameters lie: grace_period, check_period, keep_illegal."""
    return plan[at.PLAN_SCHEDULE + 1]


@kernel
def observe(
    plan, params, ints, floats, t: int, node: int, leaf: int, x, xs, label: int, weight: float
) -> bool:
    """Update the candidates, check them when it is time, and return whether an attempt may succeed."""
    if floats[leaf + plan[at.PLAN_SCHEDULE_AT] + candidates.CHECKED] > 0.0:
        if ints[node + at.NODE_KIND] != at.LEAF:
            period = params[parameters(plan) + 1]
            return inner_node.compete_here(
                plan, params, ints, floats, t, node, leaf, x, label, weight, period
            )
        return watch_here(plan, params, ints, floats, t, node, leaf, x, label, weight)
    if floats[leaf + at.LEAF_OBSERVED] < floats[leaf + at.LEAF_NEXT]:
        return False
    if (
        classes_with_weight(
            PlanRecord(plan, params, 0),
            Node(ints, floats, node),
            Leaf(ints, floats, leaf),
            ints[at.MODEL_CLASSES],
        )
        >= 2
    ):
        return True
    if plan[at.PLAN_QUIRKS] & quirks.COLD_STARTS != 0:
        floats[leaf + at.LEAF_NEXT] = later(floats[leaf + at.LEAF_OBSERVED], params[parameters(plan)])
    return False


@kernel(f"boolean({WORDS}, int64, int64, int64, CPointer(float64), int64, float64)", alone=True)
def watch(plan, params, ints, floats, t: int, node: int, leaf: int, x, label: int, weight: float) -> bool:
    """Update the candidates of a leaf that has some, and return whether it is due."""
    due_at = floats[leaf + at.LEAF_NEXT]
    if due_at == math.inf:
        return False
    state, room = leaf + plan[at.PLAN_SCHEDULE_AT], candidates.capacity(plan[at.PLAN_ATTRIBUTES])
    observed = floats[leaf + at.LEAF_OBSERVED]
    is_check = observed - floats[state + candidates.CHECKED] >= params[parameters(plan) + 1]
    n, k = evidence(plan, ints, floats, node, leaf), ints[at.MODEL_CLASSES]
    classes = k if plan[at.PLAN_QUIRKS] & quirks.RANGE_OF_NODE == 0 else ints[node + at.NODE_REACH]
    square = candidates.known_range(plan, ints, floats, node, leaf, classes)
    is_tie = n > params[at.PLAN_TIE] * square
    follows = plan[at.PLAN_QUIRKS] & quirks.FOLLOWED_IMPURITY != 0
    if follows:
        candidates.follow(plan, params, ints, floats, t, leaf, room, x, label, weight)
        null = moa_merits(PlanRecord(plan, params, 0), Node(ints, floats, node), k)[1]
        ratio = math.nan
    else:
        null = 0.0
        candidates.count_in(plan, ints, floats, leaf, room, x, label, weight)
        if is_tie:
            return observed >= due_at
        if observed < floats[state + candidates.QUIET] and not is_check:
            return False
        ratio = candidates.evaluate_here(plan, params, ints, floats, t, leaf, room)
    epsilon = math.sqrt(params[at.PLAN_GAP] * square / n)
    best, second = candidates.rivals(plan, ints, floats, leaf, room, null)
    due = best - second > epsilon
    if not follows:
        own = own_evidence(floats, leaf)
        quiet = candidates.quiet_leaf(plan, ints, floats, leaf, room, best - second, epsilon, own, ratio)
        floats[state + candidates.QUIET] = observed + quiet
    if is_check and not due:
        due = sets.check_here(plan, params, ints, floats, t, leaf, null, epsilon)
    return (due or is_tie) and observed >= due_at


watch_here: Any = outlined(watch)


@kernel
def reschedule(plan, params, ints, floats, t: int, node: int, leaf: int, merit, test, value, out) -> None:
    """Choose candidates again; if ε is below τ, but no test was good enough, wait until the next check.

    An inner node that would be due again at once waits, too.
    """
    observed, n = floats[leaf + at.LEAF_OBSERVED], evidence(plan, ints, floats, node, leaf)
    floats[leaf + at.LEAF_EVALUATED] = reckoned_weight(plan, ints, floats, node, leaf)
    square = waiting.squared_range(plan, ints, node)
    is_tie = n > params[at.PLAN_TIE] * square
    floats[leaf + at.LEAF_NEXT] = later(observed, params[parameters(plan) + 1]) if is_tie else observed
    floats[leaf + plan[at.PLAN_SCHEDULE_AT] + candidates.CHECKED] = observed
    floats[leaf + plan[at.PLAN_SCHEDULE_AT] + candidates.QUIET] = 0.0
    # The gap that is enough: ε, or 2ε; NaN if ε has no closed form.
    epsilon = math.sqrt(params[at.PLAN_GAP] * square / n)
    if params[parameters(plan) + 2] != 0.0:
        epsilon = math.inf
    sets.choose_candidates_here(plan, params, ints, floats, t, node, leaf, merit, test, value, out, epsilon)
    if ints[node + at.NODE_KIND] != at.LEAF:
        needed = inner_node.needed_lead(plan, params, ints, floats, node, leaf)
        is_beaten = inner_node.lead(plan, ints, floats, leaf, -math.inf) > needed
        next_due = later(observed, params[parameters(plan) + 1]) if is_beaten else observed
        floats[leaf + at.LEAF_NEXT] = next_due
