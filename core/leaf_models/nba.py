"""Adaptive naive Bayes: majority class or naive Bayes, by the hits of each at this leaf so far."""

from __future__ import annotations

from dataclasses import dataclass

from core.kernels.jit import kernel
from core.layout.learning import Row, Work
from core.layout.plan import PlanRecord
from core.layout.tree import Node, Tree
from core.leaf_models import mc, nb
from core.leaf_models.base import LeafModel
from core.tree import quirks
from core.tree.statistics import is_active


@dataclass(frozen=True, slots=True)
class Plugin(LeafModel):
    """Naive Bayes, unless the majority class has hits of more weight: ``"leaf_model": "nba"``.

    Both are scored on each record before the leaf learns it (Holmes, Kirkby, Pfahringer 2005).
    """


@kernel
def votes(plan: PlanRecord, p, tree: Tree, node: Node, row: Row, scratch, out) -> tuple[int, int]:
    """Write the votes of the better model; the hint is naive Bayes' class if it is the better one."""
    if is_active(node):
        leaf = tree.leaf_of(node)
        if leaf.majority_right <= leaf.bayes_right:
            best, _ = nb.votes(plan, p, tree, node, row, scratch, out)
            return best, best
    return mc.votes(plan, p, tree, node, row, scratch, out)


@kernel
def account(plan: PlanRecord, p, tree: Tree, node: Node, row: Row, hint: int, work: Work) -> int:
    """Count the weight of the hits of both models; return the class of the better one."""
    leaf = tree.leaf_of(node)
    if plan.has(quirks.EMPTY_VOTES) and node.reach == 0:
        # MOA: an empty distribution has no majority, but the first maximum of no votes is class 0.
        leaf.bayes_right += row.weight if row.label == 0 else 0.0
        return 0
    bayes = hint
    if bayes < 0:
        bayes = nb.prediction(plan, p, tree, node, row, work)
    majority = mc.majority(plan, tree, node)
    if majority == row.label:
        leaf.majority_right += row.weight
    if bayes == row.label:
        leaf.bayes_right += row.weight
    return bayes if leaf.majority_right <= leaf.bayes_right else majority
