"""Majority class: a leaf predicts its heaviest class."""

from __future__ import annotations

from dataclasses import dataclass

from core.kernels.jit import kernel
from core.layout.learning import NO_CLASS, Row, Work
from core.layout.plan import PlanRecord
from core.layout.tree import Node, Tree
from core.leaf_models.base import LeafModel
from core.tree.statistics import all_weight, voting_node


@dataclass(frozen=True, slots=True)
class Plugin(LeafModel):
    """The class with the largest weight at the leaf: ``"leaf_model": "mc"``.

    The first class of equal weights; in C-Tree the second of two [D9] (Domingos and Hulten 2000).
    """


@kernel
def majority(plan: PlanRecord, tree: Tree, node: Node) -> int:
    """Return the class with the largest weight, -1 while no class is known."""
    return heaviest(plan, voting_node(plan, tree, node).masses, tree.model.classes)


@kernel
def heaviest(plan: PlanRecord, masses, classes: int) -> int:
    """Return the class with the largest mass (float64[class]), NO_CLASS while no class is known."""
    best, largest = 0 if classes > 0 else NO_CLASS, masses[0]
    for c in range(1, classes):
        if masses[c] > largest:
            best, largest = c, masses[c]
    if plan.last_of_two != 0 and classes == 2 and masses[0] > 0.0:
        return 1 if masses[1] == masses[0] else best
    return best


@kernel
def votes(plan: PlanRecord, p, tree: Tree, node: Node, row: Row, scratch, out) -> tuple[int, int]:
    """Write the shares of the classes."""
    classes = tree.model.classes
    voter, total = node, all_weight(node, classes)
    if not total > 0.0:
        voter = voting_node(plan, tree, node)
        total = all_weight(voter, classes)
    if total > 0.0:
        for c in range(classes):
            out[c] = voter.masses[c] / total
    return heaviest(plan, voter.masses, classes), -1


@kernel
def account(plan: PlanRecord, p, tree: Tree, node: Node, row: Row, hint: int, work: Work) -> int:
    """Update nothing: the leaf model has no state."""
    return majority(plan, tree, node) if plan.judges != 0 else NO_CLASS
