"""Alternate trees of boosted trees: begun where errors rise, and compared with the subtree beside them.

Ikonomovska, Gama and Džeroski 2011, "Learning model trees from evolving data streams", sections on change
detection and on adaptation. An inner node sums up by how much each error exceeds the mean error, less a
tolerance (Page-Hinkley test). Where the sum is more than a threshold above its minimum, an alternate tree
begins beside the node, and the detectors of the node and of those below it are off. From then on both trees
learn, the older one without splits.

The Q statistic is the logarithm of the faded loss of the tree, divided by that of the alternate tree. When it
is positive at a comparison, the alternate tree takes the place of the node; it is dropped if it is not
positive once a period is over. A record of weight w counts as w records, and fades older losses once.
"""

from __future__ import annotations

import math
from typing import Final

from core.kernels.jit import called, kernel
from core.layout.learning import Row
from core.layout.plan import PlanRecord
from core.learners.sgbt.boosted_nodes import free_subtree, stop, take_leaf
from core.learners.sgbt.layout import Boosting, BoostNode, BoostParameters, TreeEntry, parameters_of
from core.learners.sgbt.scoring import leaf_of
from core.learners.sgbt.variance_splits import EQUAL

GOES_ON, TAKES_OVER, ENDS = range(3)
"""What comes of a comparison: nothing yet, the alternate tree takes the node's place, or it is dropped."""
DEVIATIONS: Final = 3.0
"""Standard deviations of the targets in an error of 1."""


@kernel
def error_of(entry: TreeEntry, difference: float) -> float:
    """Return the error of a tree whose prediction has a difference from the target.

    0: the targets of the tree are all the same, apart from rounding.
    """
    square = entry.squares / entry.weight
    mean = entry.total / entry.weight
    variance = square - mean * mean
    if not variance > EQUAL * square:
        return 0.0
    return abs(difference) / (DEVIATIONS * math.sqrt(variance))


@kernel
def count_error(node: BoostNode, weight: float, error: float) -> None:
    """Count a record at an inner node, with the error of the tree."""
    node.weight += weight
    node.errors += weight * error


@kernel
def has_risen(p: BoostParameters, node: BoostNode, weight: float, error: float) -> bool:
    """Take in an error at an inner node, which has counted it; return whether errors have risen."""
    node.rise += weight * (error - node.errors / node.weight - p.drift_tolerance)
    node.lowest = min(node.lowest, node.rise)
    return node.rise - node.lowest > p.drift_threshold


@kernel
def following(plan: PlanRecord, boosting: Boosting, number: int, top: int, is_left_out: bool) -> int:
    """Return the node after another one in the subtree of a node (top), parents first; -1: it was the last.

    is_left_out: nodes below it are left out. Alternate trees are not in the subtree.
    """
    node = boosting.node(plan, number)
    if node.left >= 0 and not is_left_out:
        return node.left
    while number != top:
        parent = boosting.node(plan, number).parent
        above = boosting.node(plan, parent)
        if above.left == number:
            return above.right
        number = parent
    return -1


@called
def begin_alternate(plan: PlanRecord, boosting: Boosting, number: int) -> None:
    """Let an alternate tree begin beside an inner node, by its number, if there are the bytes for it."""
    if boosting.roots_left == 0:
        stop(boosting)
        return
    boosting.roots_left -= 1
    node = boosting.node(plan, number)
    alternate = take_leaf(plan, boosting, node.tree, number, -1)
    root = boosting.node(plan, alternate)
    root.depth = node.depth
    root.watched = 1
    root.beside = 1
    boosting.nodes_beside += 1
    node.alternate = alternate
    node.own_loss = 0.0
    node.other_loss = 0.0
    node.compared = 0.0
    node.next_comparison = parameters_of(plan).switch_period
    boosting.alternates += 1
    below = number
    while below >= 0:
        boosting.node(plan, below).watched = 0
        below = following(plan, boosting, below, number, False)


@called
def watch_again(plan: PlanRecord, boosting: Boosting, top: int) -> None:
    """Restart the detectors of a node and of those below it, except where alternate trees grow."""
    number = top
    while number >= 0:
        node = boosting.node(plan, number)
        is_left_out = node.alternate >= 0
        if not is_left_out:
            node.watched = 1
            node.rise = 0.0
            node.lowest = math.inf
        number = following(plan, boosting, number, top, is_left_out)


@kernel
def compare(
    plan: PlanRecord, boosting: Boosting, node: BoostNode, row: Row, target: float, prediction: float
) -> int:
    """Take in the losses of a node and of its alternate tree; return what comes of the comparison.

    prediction: of the tree, before it learns the record.
    """
    p = parameters_of(plan)
    other = leaf_of(plan, boosting, node.alternate, row.x).value
    node.own_loss = row.weight * (target - prediction) ** 2 + p.fading * node.own_loss
    node.other_loss = row.weight * (target - other) ** 2 + p.fading * node.other_loss
    node.compared += row.weight
    if node.compared < node.next_comparison:
        return GOES_ON
    node.next_comparison = node.compared + p.switch_period
    if node.own_loss > node.other_loss:
        return TAKES_OVER
    return ENDS if node.compared >= p.drop_period else GOES_ON


@called
def take_over(plan: PlanRecord, boosting: Boosting, number: int, is_top: bool) -> int:
    """Put an alternate tree in the place of its node, by the node's number; return the number of its root.

    is_top: no alternate tree grows above, so that the detectors of the tree restart.
    """
    node = boosting.node(plan, number)
    root, parent = node.alternate, node.parent
    node.alternate = -1
    boosting.alternates -= 1
    boosting.stopped = 0  # the bytes of the old subtree are free
    boosting.node(plan, root).parent = parent
    if parent < 0:
        boosting.entry(plan, node.tree).root = root
    else:
        above = boosting.node(plan, parent)
        if above.left == number:
            above.left = root
        else:
            above.right = root
    free_subtree(plan, boosting, number)
    below = root
    while below >= 0:
        boosting.node(plan, below).beside = 0
        boosting.nodes_beside -= 1
        below = following(plan, boosting, below, root, False)
    if is_top:
        watch_again(plan, boosting, root)
    return root


@called
def drop(plan: PlanRecord, boosting: Boosting, number: int, is_top: bool) -> None:
    """Free the alternate tree beside a node, by the node's number; is_top: as in ``take_over``."""
    node = boosting.node(plan, number)
    free_subtree(plan, boosting, node.alternate)
    node.alternate = -1
    boosting.alternates -= 1
    boosting.stopped = 0  # its bytes are free
    if is_top:
        watch_again(plan, boosting, number)
