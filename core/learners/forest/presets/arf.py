"""ARF: adaptive random forest, whose members are replaced by background trees after a drift."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from core.drift.base import Detector
from core.learners.forest.learner import Forest, root_of, share_of
from core.plugin import number

ALIASES = ("adaptive_random_forest",)
MOA_SHARE = 0.6


@dataclass(frozen=True, slots=True)
class Plugin(Forest):
    """Adaptive random forest: ``{"name": "arf", "members": 10, "member": {"name": "h-tree"}}`` (Gomes, Bifet,
    Read and others 2017).

    Each member learns a record k times, where k is a Poisson variate of mean ``poisson``, and each leaf
    observes only a random subset of the attributes. Votes are weighted by the accuracy of a member since it
    took its place. An ADWIN detector watches the errors of each member before it learns. A warning starts a
    background tree. A drift puts that tree in the member's place, or a new tree if there is none.

    Members are Hoeffding trees with grace period 50 and ``delta`` 0.01, unless ``member`` sets other values.
    A member that revises its splits (``efdt``) or replaces subtrees (``hat``) samples its subset once for all
    of its leaves. ``compat="moa"`` applies the rules of MOA 2024.07: detectors see errors after learning,
    background trees learn a record no more than once, and a leaf observes 60 % of the attributes.
    """

    member_defaults: ClassVar[dict[str, Any]] = {"grace_period": 50.0, "delta": 0.01}

    leaf_attributes: float = number(0.0, at_least=0.0)
    """Attributes that a leaf observes: from 1 on a number, below a share, 0: √d + 1."""
    drift_confidence: float = number(1e-3, at_least=0.0, below=1.0)
    """ADWIN's confidence for drifts; 0: members are never replaced."""
    warning_confidence: float = number(1e-2, at_least=0.0, below=1.0)
    """ADWIN's confidence for warnings; 0: there are no background trees."""

    @property
    def drift(self) -> Detector:
        return self.detector(self.drift_confidence)

    @property
    def warning(self) -> Detector:
        return self.detector(self.warning_confidence)

    @property
    def background_once(self) -> bool:
        return self.compat == "moa"

    @property
    def subspaces(self) -> bool:
        """Whether node numbers change, so that they do not identify a leaf."""
        return bool(self.member.revision_words(1) or self.member.subtree_words)

    def attributes_seen(self, attributes: int) -> int:
        if self.leaf_attributes > 0.0:
            return share_of(self.leaf_attributes, attributes)
        return share_of(MOA_SHARE, attributes) if self.compat == "moa" else root_of(attributes)
