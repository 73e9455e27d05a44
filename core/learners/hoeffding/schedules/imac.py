"""IMAC: a few candidate attributes, updated record by record, show when an attempt may succeed."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from core.kernels.jit import kernel, outlined
from core.layout.learning import Row
from core.layout.plan import PlanRecord
from core.layout.tree import LEAF, MULTIWAY, Leaf, Node, Tree
from core.learners.hoeffding.ranking import Ranking, classes_with_weight, moa_merits
from core.learners.hoeffding.schedules import _waiting as waiting
from core.learners.hoeffding.schedules._imac import checked, inner_node
from core.learners.hoeffding.schedules._imac import exchange as sets
from core.learners.hoeffding.schedules._imac import state as words
from core.learners.hoeffding.schedules._imac.candidates import count_in, evaluate_here
from core.learners.hoeffding.schedules._imac.following import follow
from core.learners.hoeffding.schedules._imac.rivals import known_range, quiet_leaf, rivals
from core.learners.hoeffding.schedules._imac.state import ImacState, state_of
from core.learners.hoeffding.schedules.base import Schedule
from core.plugin import flag, period
from core.tree import quirks
from core.tree.statistics import evidence, later, own_evidence, reckoned_weight
from core.tree.views import TreeView

PROBLEMS, problem = checked.PROBLEMS, checked.problem
"""The state of the schedule is its candidates."""


@dataclass(frozen=True, slots=True)
class Plugin(Schedule):
    """Due when the best candidate leads by more than ε, or ε is below τ (Sun and others 2020, section 3.3).

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
        return words.axes(attributes)

    def problems(self, model: Any, tree: TreeView, slot: int) -> Iterator[str]:
        """Yield the problems of the candidates of a leaf record."""
        header, attributes, rows, counts, _ = (section[slot] for section in tree.schedule)
        state, leaf = ImacState.over(header), tree.block.leaf(slot)
        count = int(state.count)  # checked by checked.py
        standings = attributes.view(np.int64)[:, 0]
        if state.checked > 0.0 and (standings == words.AWAY).any():
            yield "after an attempt every attribute must be candidate, potential or illegal"
        watched = rows.view(np.int64)[words.ATTRIBUTE, :count].tolist()
        node = tree.block.node(leaf.node)
        if model.spec.learner.watches_inner_nodes and node.kind != LEAF:
            test = rows.view(np.int64)[words.ATTRIBUTE : words.VALUE + 1, 0].tolist()
            value = int(np.float64(node.value).view(np.int64))
            if test != [node.attribute, node.kind, value]:
                yield "candidate 0 must be the test of the node"
        if leaf.next == math.inf:
            return  # growth has stopped: the candidates are not updated any more
        whole = rows.view(np.int64)[words.WHOLE, :count] != 0
        multiway = rows.view(np.int64)[words.TEST, :count] == MULTIWAY
        for q in np.flatnonzero(whole & ~multiway):
            rounded = max(1e-7, 1e-9 * tree.seen[slot].sum())  # tolerance of candidates.load
            if not np.allclose(counts[q].sum(axis=0), tree.seen[slot], rtol=1e-7, atol=rounded):
                yield f"counts of attribute {watched[q]} must add up to seen={tree.seen[slot].tolist()}"


@kernel
def observe(plan: PlanRecord, p, tree: Tree, node: Node, leaf: Leaf, row: Row) -> bool:
    """Update the candidates, check them when it is time, and return whether an attempt may succeed."""
    if state_of(plan, leaf).checked > 0.0:
        if node.kind != LEAF:
            return inner_node.compete_here(plan, tree, node, leaf, row, p.check_period)
        return watch_here(plan, tree, node, leaf, row, p.check_period)
    if leaf.observed < leaf.next:
        return False
    if classes_with_weight(plan, node, leaf, tree.model.classes) >= 2:
        return True
    if plan.has(quirks.COLD_STARTS):
        leaf.next = later(leaf.observed, p.grace_period)
    return False


@kernel("boolean(PlanRecord, Tree, Node, Leaf, Row, float64)", alone=True)
def watch(plan: PlanRecord, tree: Tree, node: Node, leaf: Leaf, row: Row, period: float) -> bool:
    """Update the candidates of a leaf that has some, and return whether it is due.

    period: observed weight from one check to the next.
    """
    due_at = leaf.next
    if due_at == math.inf:
        return False
    state, observed, k = state_of(plan, leaf), leaf.observed, tree.model.classes
    is_check = observed - state.checked >= period
    n = evidence(plan, node, leaf, k)
    classes = node.reach if plan.has(quirks.RANGE_OF_NODE) else k
    square = known_range(plan, node, leaf, classes)
    is_tie = n > plan.tie * square
    follows = plan.has(quirks.FOLLOWED_IMPURITY)
    if follows:
        follow(plan, tree, leaf, row)
        null = moa_merits(plan, node, k)[1]
        ratio = math.nan
    else:
        null = 0.0
        count_in(plan, leaf, row)
        if is_tie:
            return observed >= due_at
        if observed < state.quiet and not is_check:
            return False
        ratio = evaluate_here(plan, tree, leaf)
    epsilon = math.sqrt(plan.gap * square / n)
    best, second = rivals(plan, tree, leaf, null)
    due = best - second > epsilon
    if not follows:
        quiet = quiet_leaf(plan, tree, leaf, best - second, epsilon, own_evidence(leaf), ratio)
        state.quiet = observed + quiet
    if is_check and not due:
        due = sets.check_here(plan, tree, leaf, null, epsilon)
    return (due or is_tie) and observed >= due_at


watch_here: Any = outlined(watch)


@kernel
def reschedule(plan: PlanRecord, p, tree: Tree, node: Node, leaf: Leaf, ranking: Ranking) -> None:
    """Choose candidates again; if ε is below τ, but no test was good enough, wait until the next check.

    An inner node that would be due again at once waits, too.
    """
    state, observed, k = state_of(plan, leaf), leaf.observed, tree.model.classes
    n = evidence(plan, node, leaf, k)
    leaf.evaluated = reckoned_weight(plan, node, leaf, k)
    square = waiting.squared_range(plan, node)
    is_tie = n > plan.tie * square
    leaf.next = later(observed, p.check_period) if is_tie else observed
    state.checked = observed
    state.quiet = 0.0
    # The gap that is enough: ε, or 2ε; NaN if ε has no closed form.
    epsilon = math.sqrt(plan.gap * square / n)
    if p.keep_illegal != 0.0:
        epsilon = math.inf
    sets.choose_candidates_here(plan, tree, node, leaf, ranking, epsilon)
    if node.kind != LEAF:
        needed = inner_node.needed_lead(plan, tree, node, leaf)
        is_beaten = inner_node.lead(plan, leaf, -math.inf) > needed
        leaf.next = later(observed, p.check_period) if is_beaten else observed
