"""What a learner did with a stream, whatever the system."""

from __future__ import annotations

import statistics
from dataclasses import dataclass


@dataclass(frozen=True)
class Task:
    """Test-then-train with these options of a Hoeffding tree, the same for all systems."""

    learner: str = "h-tree"
    """Our preset; its own parameters but for those below, where it has them."""
    leaf_model: str = "mc"
    compat: str | None = None
    grace_period: int = 200
    delta: float = 1e-7
    tau: float = 0.05
    criterion: str = "info_gain"
    evidence: str | None = None
    """Of ours: the weight that bounds reckon with, None: the preset's."""


@dataclass(frozen=True)
class Result:
    """CPU seconds of each repeat, and the tree at the end."""

    system: str
    seconds: list[float]
    records: int
    accuracy: float
    leaves: int
    splits: int
    depth: int
    attempts: int | None = None

    @property
    def records_per_second(self) -> float:
        return self.records / statistics.median(self.seconds)
