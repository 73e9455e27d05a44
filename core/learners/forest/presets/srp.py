"""SRP: streaming random patches; members see random subsets of the attributes and resampled records."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from core.drift.base import Detector
from core.learners.forest.learner import Forest, share_of
from core.plugin import number

ALIASES = ("streaming_random_patches",)


@dataclass(frozen=True, slots=True)
class Plugin(Forest):
    """Streaming random patches: ``{"name": "srp", "members": 10}`` (Gomes, Read and Bifet 2019).

    Each member sees only a random subset of the attributes, sampled when the member is made. It learns a
    record k times, where k is a Poisson variate of mean ``poisson``; 0 leaves random subspaces. With at most
    20 attributes, no subset is used twice among the first trees of the members before all subsets are used.
    Votes, detectors and background trees work as in ``arf``; a background tree has a separate subset.

    Members are Hoeffding trees with grace period 50 and ``delta`` 0.01, unless ``member`` sets other values.
    ``compat="moa"`` applies the rules of MOA 2024.07: detectors see errors after learning.
    """

    member_defaults: ClassVar[dict[str, Any]] = {"grace_period": 50.0, "delta": 0.01}

    member_attributes: float = number(0.6, above=0.0)
    """Attributes that a member sees, two at least: from 1 on a number, below a share."""
    drift_confidence: float = number(1e-5, at_least=0.0, below=1.0)
    """ADWIN's confidence for drifts; 0: members are never replaced."""
    warning_confidence: float = number(1e-4, at_least=0.0, below=1.0)
    """ADWIN's confidence for warnings; 0: there are no background trees."""

    @property
    def drift(self) -> Detector:
        return self.detector(self.drift_confidence)

    @property
    def warning(self) -> Detector:
        return self.detector(self.warning_confidence)

    @property
    def subspaces(self) -> bool:
        return True

    @property
    def begins_apart(self) -> bool:
        return True

    def attributes_seen(self, attributes: int) -> int:
        return min(max(share_of(self.member_attributes, attributes), 2), attributes)
