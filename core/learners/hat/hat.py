"""HAT: the Hoeffding adaptive tree, whose subtrees are replaced where their error rises."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from core.drift import adwin
from core.kernels.records import offset
from core.layout.model import Floats, Ints
from core.layout.plan import BAGGED_MOA, BAGGED_ONCE, BAGGED_POISSON, PlanRecord
from core.layout.tree import SUBTREE_FIELDS
from core.learners.hat.blocks import HatLayout
from core.learners.hoeffding.presets import h_tree
from core.plugin import Parameters, count, flag, number
from core.schema.dimensions import Dimensions
from core.tree import quirks
from core.tree.statistics import weight_after
from core.tree.views import TreeView

ALIASES: Final = ("hoeffding_adaptive_tree",)


@dataclass(frozen=True, slots=True)
class Plugin(h_tree.Plugin):
    """Hoeffding adaptive tree: ``{"name": "hat"}`` (Bifet and Gavaldà 2009).

    An ``h-tree`` with an ADWIN at every node, which gets the errors of the predictions below it, before the
    tree learns. Where the error of an inner node rises, an alternate tree starts beside it, an older one is
    dropped, and the new one learns the records that come there. When both windows hold more than
    ``switch_records`` records, the alternate tree takes the node's place if its error e' is smaller than e by
    more than sqrt(2 e (1-e) ln(2/``switch_confidence``) (1/n + 1/n')), and is dropped if it is larger by as
    much. It does not vote. Nodes of alternate trees are watched, and have alternate trees, too.

    ``max_leaves`` and ``max_bytes`` count alternate trees. A node takes 2.8 KB for its detector.

    ``compat="moa"`` is MOA's HoeffdingAdaptiveTree, prediction by prediction: an alternate tree takes over as
    soon as its first leaf would split, without a comparison; leaves have MOA's generators, each with seed 1;
    a record without the value that a node tests is answered by class 0.
    """

    drift_confidence: float = number(0.002, above=0.0, below=1.0)
    """ADWIN's confidence for the error at a node."""
    switch_confidence: float = number(0.05, above=0.0, below=1.0)
    """Probability that an alternate tree takes over and is no better, or is dropped and is no worse."""
    switch_records: int = count(300)
    """Records in the windows of a node and of its alternate tree above which they are compared."""
    bootstrap: bool = flag(True)
    """A leaf learns a record k times, where k is a Poisson variate of mean 1, but at least 1."""

    kernels: ClassVar[str | None] = "core.learners.hat.kernels"
    compats: ClassVar[tuple[str | None, ...]] = (None, "moa")

    @property
    def quirks(self) -> int:
        """Return the quirks of MOA's code that apply, including those of its adaptive tree."""
        return quirks.MOA_ADAPTIVE if self.compat == "moa" else quirks.OF_COMPAT[self.compat]

    @property
    def subtree_detector(self) -> adwin.Plugin:
        """The detector of the error at each node."""
        return adwin.Plugin(confidence=self.drift_confidence, compat=self.compat)

    @property
    def subtree_words(self) -> int:
        return SUBTREE_FIELDS + len(self.subtree_detector.initial())

    @property
    def compiled_with(self) -> tuple[str, ...]:
        """Return the modules of the kernels that grow the tree."""
        return ("core.learners.hoeffding.kernels", *super(Plugin, self).compiled_with)

    def blocks(self, dims: Dimensions) -> HatLayout:
        return HatLayout(self, dims)

    def plugins(self) -> list[tuple[int, Parameters]]:
        return [
            *super(Plugin, self).plugins(),
            (offset(PlanRecord, "subtree_detector"), self.subtree_detector),
        ]

    def write_plan(self, ints: Ints, floats: Floats, dims: Dimensions, blocks: Any) -> None:
        """Write the words that kernels of adaptive trees and of trees branch on."""
        super(Plugin, self).write_plan(ints, floats, dims, blocks)
        plan = PlanRecord(ints, floats, 0)
        plan.subtrees = blocks.shape(1, 1).subtree_at
        repeats = BAGGED_MOA if self.compat == "moa" else BAGGED_POISSON
        plan.leaf_bagging = repeats if self.bootstrap else BAGGED_ONCE
        plan.switch_logarithm = math.log(2.0 / self.switch_confidence)
        plan.switch_records = self.switch_records

    def resume(self, tree: TreeView, slot: int) -> None:
        """Let a leaf that had stopped be due again after another first wait."""
        leaf = tree.block.leaf(slot)
        leaf.next = weight_after(leaf.observed, self.schedule.first())
        if not self.quirks & quirks.INHERITED_COUNTS:
            leaf.evaluated = leaf.observed
