"""EFDT: the Hoeffding anytime tree, which splits early and revises its splits."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from core.errors import ParameterError
from core.layout.tree import LEAF, NUMERIC, Leaf, Node, Revision, Tree
from core.learners.hoeffding import reevaluation
from core.learners.hoeffding.decision import Decision, HasState
from core.learners.hoeffding.presets import h_tree
from core.learners.hoeffding.split_decision import OPEN, REASONS
from core.plugin import choice, period
from core.tree import quirks
from core.tree.statistics import weight_after
from core.tree.views import TreeView


@dataclass(frozen=True, slots=True)
class Plugin(h_tree.Plugin):
    """Splits when the best test beats no split by more than ε; inner nodes continue to learn and are revised.

    ``{"name": "efdt", "revisit_period": 2000}``: after this weight an inner node is evaluated again. If the
    best test leads the node's present test by more than ε, or by more than ``tau``/2 when ε is below ``tau``,
    it replaces the subtree. Another threshold of the same attribute moves and keeps the subtree. Where no
    split is best, the node becomes a leaf. All comparisons use averages over the evaluations of a node [D38]
    (Manapragada, Webb and Salehi 2018). A nominal attribute is tested once on a path. Every inner node keeps
    its leaf record: ``max_bytes`` counts all of them.

    ``compat="moa"`` is MOA's EFDT for records of weight 1: every inner node on the path of every
    ``revisit_period``-th record is evaluated, sums of merits survive a change of the test while their number
    does not, thresholds never move.
    """

    revisit_period: float = period(2000.0)
    """Labelled weight between two evaluations of an inner node."""

    evidence: str | None = choice("observed", "inherited", "observed")
    """The weight that bounds use. By default observed: the weight that a node's averages come from."""

    compats: ClassVar[tuple[str | None, ...]] = (None, "moa")

    def __post_init__(self) -> None:
        """Check the parameters, and that MOA has such a tree."""
        super(Plugin, self).__post_init__()
        if self.compat is not None and getattr(self.schedule, "name", None) == "imac":
            msg = f"compat={self.compat!r} must be null with the schedule 'imac': no published code does both"
            raise ParameterError(msg)

    def revision_words(self, attributes: int) -> int:
        """Return the length of the revision section: it has a sum of merits for every attribute."""
        return Revision.SIZE + attributes

    @property
    def revisit_weight(self) -> float:
        return self.revisit_period

    def resume(self, tree: TreeView, slot: int) -> None:
        """Set the schedule of a leaf that was an inner node and has kept its statistics."""
        leaf = tree.block.leaf(slot)
        leaf.next = weight_after(leaf.observed, self.schedule.first())
        leaf.evaluated = leaf.observed
        for state in tree.schedule:
            state[slot] = 0.0
        tree.revisions.own[slot] = 0.0

    def decide(self, model: HasState, tree: Tree, node: Node, leaf: Leaf) -> Decision | None:
        """Compare the average of the best test with that of no split."""
        decision = self._reevaluate(model, tree, node)
        return None if decision is None or self._is_used(model, tree, node, decision) else decision

    def revise(self, model: HasState, tree: Tree, node: Node, leaf: Leaf) -> Decision | None:
        """Compare the average of the best test with the average of the node's present test."""
        decision = self._reevaluate(model, tree, node)
        if decision is None:
            return None
        if decision.test == LEAF:
            return replace(decision, action="pruned")
        if decision.attribute == node.attribute and decision.test == node.kind == NUMERIC:
            return replace(decision, action="moved")
        return replace(decision, action="replaced")

    def _reevaluate(self, model: HasState, tree: Tree, node: Node) -> Decision | None:
        """Evaluate a node and count the evaluation; return the test to install, if the bound allows one."""
        evaluation = reevaluation.reevaluate(model.plan.record, tree, node, False)
        if evaluation.outcome == OPEN:
            return None
        averages = evaluation.averages
        return Decision(
            attribute=int(averages.attribute),
            test=int(averages.test),
            value=float(averages.value),
            merits=(float(averages.average), float(averages.current)),
            bound=float(evaluation.epsilon),
            n=float(evaluation.evidence),
            reason=REASONS[evaluation.outcome],
        )

    def is_due(self, tree: Tree, node: Node, leaf: Leaf) -> bool:
        """Return True: here MOA, too, counts records, not rounded sums of masses."""
        return True

    def _is_used(self, model: HasState, tree: Tree, node: Node, decision: Decision) -> bool:
        """Return whether MOA counts the attribute as used above: in nominal tests, without a gap.

        It forgets used attributes below a numeric test, a replaced test, and a branch that grew later.
        """
        if not self.quirks & quirks.USED_ABOVE or decision.test in (NUMERIC, LEAF):
            return False
        plan = model.plan.record
        while True:
            if tree.revision(plan, tree.leaf_of(node)).forgets:
                return False
            if node.parent < 0:
                return False
            node = tree.node(node.parent)
            if node.kind == NUMERIC:
                return False
            if node.attribute == decision.attribute:
                return True
