"""EFDT: the Hoeffding anytime tree, which splits early and revises its splits."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from core import appraisal
from core.learners import h_tree
from core.learners.base import FORGET, Decision, HasState
from core.plugin import number
from core.tree import layout as at
from core.tree.layout import TreeView
from core.verdict import MIN_GAIN


@dataclass(frozen=True, slots=True)
class Plugin(h_tree.Plugin):
    """Splits when the best test beats none by more than ε; inner nodes go on learning and are revised.

    ``{"name": "efdt", "revisit_period": 2000}``: after so much weight an inner node is evaluated anew. If the
    best test leads the node's own by more than ε, or by more than ``tau``/2 when ε is below ``tau``, the
    subtree makes way for it; another threshold of the same attribute moves and keeps the subtree; where no
    split is best, the node becomes a leaf. What is compared are averages over the evaluations of a node
    (ALGORITHMS section 17 [D38]; Manapragada, Webb and Salehi 2018). A nominal attribute is tested once on a
    path. Every inner node keeps its leaf record: ``max_bytes`` counts them all.

    ``compat="moa"`` is MOA's EFDT for records of weight 1: every inner node on the path of every
    ``revisit_period``-th record is evaluated, sums of merits survive a change of the test while their number
    does not, thresholds never move.
    """

    revisit_period: float = number(2000.0, above=0.0)

    def revision_words(self, attributes: int) -> int:
        """Return the length of a node's memory: a sum of merits for every attribute."""
        return at.REVISION_FIELDS + attributes

    @property
    def revisit_weight(self) -> float:
        """Return the weight between two evaluations of an inner node."""
        return self.revisit_period

    def resume(self, tree: TreeView, slot: int) -> None:
        """Set the schedule of a leaf that was an inner node and has kept what it has seen."""
        record = tree.leaf_floats[slot]
        record[at.LEAF_NEXT] = record[at.LEAF_OBSERVED] + self.schedule.first()
        record[at.LEAF_EVALUATED] = record[at.LEAF_OBSERVED]
        tree.revision[slot, at.REVISION_OWN] = 0.0

    def decide(self, model: HasState, t: int, node: int, leaf: int) -> Decision | None:
        """Compare the average of the best test with that of no split."""
        verdict = self._appraise(model, t, node)
        if verdict[appraisal.CLASSES] < 2:
            return None
        decision = self._decision(model, node, leaf, verdict)
        if verdict[appraisal.SUGGESTIONS] == 1:
            return replace(decision, reason="only") if self.compat is not None else None
        lead = decision.merits[0] - decision.merits[1]
        if decision.test == FORGET and self.compat is None:
            return None
        if verdict[appraisal.MERIT] < MIN_GAIN or self._is_used(model, t, node, decision):
            return None
        if lead > self.bound.factor * decision.bound:
            return decision
        return replace(decision, reason="tie") if decision.bound < self.tau else None

    def revise(self, model: HasState, t: int, node: int, leaf: int) -> Decision | None:
        """Compare the average of the best test with that of the node's own."""
        verdict = self._appraise(model, t, node)
        if verdict[appraisal.CLASSES] < 2:
            return None
        decision = self._decision(model, node, leaf, verdict)
        lead = decision.merits[0] - decision.merits[1]
        if not lead > self.bound.factor * decision.bound:
            if not (decision.bound < self.tau and lead > self.tau / 2.0):
                return None
            decision = replace(decision, reason="tie")
        if decision.test == at.LEAF:
            return replace(decision, action="pruned") if self.compat is None else None
        ints, value = model.ints, model.floats.item(node + at.NODE_VALUE)
        mine = ints.item(node + at.NODE_ATTRIBUTE), ints.item(node + at.NODE_KIND)
        if self.compat is None:
            if verdict[appraisal.MERIT] < MIN_GAIN:
                return None
            if (decision.attribute, decision.test) == mine:
                if decision.value == value:
                    return None
                if decision.test == at.NUMERIC:
                    return replace(decision, action="moved")
        elif decision.attribute == mine[0]:
            return None
        return replace(decision, action="replaced")

    def _appraise(self, model: HasState, t: int, node: int) -> list[float]:
        """Evaluate a node; return the verdict."""
        verdict = np.zeros(appraisal.VERDICT_WORDS)
        appraisal.appraise(model.plan.address, model.address, t, node, False, verdict)
        found: list[float] = verdict.tolist()
        return found

    def _decision(self, model: HasState, node: int, leaf: int, verdict: list[float]) -> Decision:
        """Return the decision for the best test that a clear lead would be."""
        classes = model.ints.item(at.MODEL_CLASSES if self.compat is None else node + at.NODE_REACH)
        n = self.weight(model, node, leaf)
        return Decision(
            attribute=int(verdict[appraisal.ATTRIBUTE]),
            test=int(verdict[appraisal.TEST]),
            value=verdict[appraisal.VALUE],
            merits=(verdict[appraisal.AVERAGE], verdict[appraisal.STANDING]),
            bound=self.bound.epsilon(
                self.criterion.merit_range(classes),
                n,
                classes=classes,
                criterion=self.criterion.name,
                depth=model.ints.item(node + at.NODE_DEPTH),
                records=max(model.ints.item(at.MODEL_RECORDS), model.ints.item(at.MODEL_LABELS) + 1),
                attributes=model.plan.ints.item(at.PLAN_ATTRIBUTES),
            ),
            n=n,
            reason="gap",
        )

    def is_due(self, model: HasState, node: int, leaf: int) -> bool:
        """Return True: also MOA counts records here, not rounded sums of masses."""
        return True

    def _is_used(self, model: HasState, t: int, node: int, decision: Decision) -> bool:
        """Return whether MOA remembers the attribute as used above: in nominal tests, without a gap.

        It forgets them below a numeric test, a replaced test, and a branch that grew later.
        """
        ints, plan = model.ints, model.plan
        if self.compat is None or decision.test in (at.NUMERIC, at.LEAF):
            return False
        stride, floats = ints.item(t + at.TREE_NODE_STRIDE), model.floats
        while True:
            record = t + ints.item(t + at.TREE_LEAVES_AT)
            record += ints.item(node + at.NODE_SLOT) * ints.item(t + at.TREE_LEAF_STRIDE)
            if floats[record + plan.ints.item(at.PLAN_REVISION) + at.REVISION_FORGETS]:
                return False
            parent = ints.item(node + at.NODE_PARENT)
            if parent < 0:
                return False
            node = t + at.TREE_HEADER + parent * stride
            if ints[node + at.NODE_KIND] == at.NUMERIC:
                return False
            if ints[node + at.NODE_ATTRIBUTE] == decision.attribute:
                return True
