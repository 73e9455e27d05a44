"""Member: one tree of a forest votes, learns, is evaluated and watched, in compiled code.

No kernel here reads or writes another member's words: the effect of a record on a member depends on the
record, on the number of labels that the model has learned, and on the member.
"""

from __future__ import annotations

from typing import Any

from core.drift import adwin
from core.drift.adwin import AdwinParameters, AdwinState
from core.drift.base import DRIFT
from core.kernels.jit import called, kernel, part
from core.kernels.records import Words
from core.layout.learning import Row, Work
from core.layout.plan import PlanRecord
from core.layout.tree import Node, Tree
from core.learners.forest import layout as of
from core.learners.forest.resampling import seen_by
from core.learners.hat.kernels import learn_tree
from core.learners.hoeffding import kernels as trees
from core.learners.hoeffding.plain_split import SPLIT_WORDS
from core.learners.hoeffding.split_attempt import attempt_here
from core.tree import layout as at
from core.tree.byoffset.columns import behind


@kernel
def number_of(ints, t: int, node: int) -> int:
    """Return the number of the node whose record begins at a word of the tree at word t."""
    return (node - t - at.TREE_HEADER) // ints[t + at.TREE_NODE_STRIDE]


@kernel
def seen_at(plan, ints, t: int, record: int, node: int, x, xs, scratch) -> tuple[Any, Any]:
    """Return a record, and its numeric attributes, as the leaf of a member's tree (t) sees it."""
    m = of.of(plan, of.OF_ATTRIBUTES)
    seen, side_by_side = x, xs
    if m > 0:
        number = 0 if of.of(plan, of.OF_SUBSPACES) != 0 else number_of(ints, t, node)
        spare = part(scratch, behind(plan), 3 * plan[at.PLAN_ATTRIBUTES])
        seen, side_by_side = seen_by(plan, ints[record + of.SERIAL], number, m, x, spare)
    return seen, side_by_side


@kernel
def vote(
    plan, params, ints, floats, t: int, record: int, node: int, x, xs, scratch, shares
) -> tuple[int, int]:
    """Write the votes of the leaf at which a record ends in a member's tree (t) to shares: float64[class]."""
    seen, side_by_side = seen_at(plan, ints, t, record, node, x, xs, scratch)
    return vote_seen(plan, params, ints, floats, t, node, seen, side_by_side, scratch, shares)


@called
def vote_seen(
    plan, params, ints, floats, t: int, node: int, seen, side_by_side, scratch, shares
) -> tuple[int, int]:
    """Write the votes of the leaf, for a record as ``seen_at`` returned it."""
    for c in range(ints[at.MODEL_CLASSES]):
        shares[c] = 0.0
    return trees.votes(
        plan[at.PLAN_LEAF_MODEL],
        PlanRecord(plan, params, 0),
        Words(plan, params, plan[at.PLAN_LEAF_MODEL + 1]),
        Tree(ints, floats, t),
        Node(ints, floats, node),
        Row(seen, side_by_side, -1, 1.0),
        scratch,
        shares,
    )


@kernel
def train(
    plan,
    params,
    ints,
    floats,
    t: int,
    record: int,
    node: int,
    x,
    xs,
    label: int,
    weight: float,
    hint: int,
    scratch,
    vote_buffer,
    is_told: bool,
) -> int:
    """Train a member's tree (t) with a record that ends at a node; note the node if a decision is due.

    A split that is made here is described in the member's record if ``is_told``.
    """
    seen, side_by_side = seen_at(plan, ints, t, record, node, x, xs, scratch)
    return train_seen(
        plan,
        params,
        ints,
        floats,
        t,
        record,
        node,
        x,
        seen,
        side_by_side,
        label,
        weight,
        hint,
        scratch,
        vote_buffer,
        is_told,
    )


@called
def train_seen(
    plan,
    params,
    ints,
    floats,
    t: int,
    record: int,
    node: int,
    x,
    seen,
    side_by_side,
    label: int,
    weight: float,
    hint: int,
    scratch,
    vote_buffer,
    is_told: bool,
) -> int:
    """Train the tree with a record (x), as ``seen_at`` returned it."""
    said = vote_buffer  # for a background tree, whose splits are no events
    if is_told:
        said = part(floats, record + of.of(plan, of.OF_EVENT), SPLIT_WORDS + plan[at.PLAN_CLASSES])
    if plan[at.PLAN_SUBTREES] != 0:
        serial = ints[record + of.SERIAL]
        outcome, _ = learn_tree(
            plan,
            params,
            ints,
            floats,
            t,
            node,
            x,
            seen,
            side_by_side,
            label,
            weight,
            serial,
            scratch,
            vote_buffer,
            said,
        )
    else:
        shared, tree = PlanRecord(plan, params, 0), Tree(ints, floats, t)
        end, row = Node(ints, floats, node), Row(seen, side_by_side, label, weight)
        outcome = trees.train(shared, tree, end, row, hint, Work(scratch, vote_buffer))
        if outcome == at.DECISION_DUE:
            outcome = attempt_here(shared, tree, end, said)
    if outcome == at.GREW:
        ints[record + of.DUE] = of.TOLD if is_told else 0
    elif outcome != at.LEARNED:
        ints[record + of.DUE] = node - t
    return outcome


@kernel
def weight_of(plan, floats, record: int) -> float:
    """Return the weight of a member's vote: its accuracy since it took its place, or 1 while that is 0."""
    if of.of(plan, of.OF_WEIGHTED) == 0 or floats[record + of.RIGHT] <= 0.0:
        return 1.0
    return floats[record + of.RIGHT] / floats[record + of.SEEN]


@kernel
def normalise(shares, k: int) -> int:
    """Divide shares by their sum, if it is not 0; return the class of the largest, -1 without classes."""
    total, best = 0.0, -1
    for c in range(k):
        total += shares[c]
        if best < 0 or shares[c] > shares[best]:
            best = c
    if total > 0.0:
        for c in range(k):
            shares[c] /= total
    return best


@kernel
def is_watched(plan, times_over: int) -> bool:
    """Return whether detectors see the error; MOA's see it only for records which the member has learned."""
    return times_over > 0 or of.of(plan, of.OF_MOA) == 0 or of.of(plan, of.OF_WORST) != 0


@kernel
def judge(floats, record: int, weight: float, is_right: bool) -> None:
    """Count a right or wrong prediction of a member."""
    floats[record + of.SEEN] += weight
    if is_right:
        floats[record + of.RIGHT] += weight


@kernel
def watch(plan, params, ints, floats, record: int, error: float) -> None:
    """Update a member's detectors with an error, and note their alarm. A drift outweighs a warning."""
    warning, drift = of.of(plan, of.OF_WARNING), of.of(plan, of.OF_DRIFT)
    alarm = of.QUIET
    if warning != 0:
        p = AdwinParameters(plan, params, plan[at.PLAN_WARNING_DETECTOR + 1])
        if adwin.update(p, AdwinState(ints, floats, record + warning), error) == DRIFT:
            alarm = of.WARNED
    if drift != 0:
        p = AdwinParameters(plan, params, plan[at.PLAN_NODE_DETECTOR + 1])
        if adwin.update(p, AdwinState(ints, floats, record + drift), error) == DRIFT:
            alarm = of.DRIFTED
    ints[record + of.ALARM] = alarm
