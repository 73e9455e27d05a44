"""Result of a learner on a stream, in the same form for every system."""

from __future__ import annotations

import statistics
from dataclasses import dataclass


@dataclass(frozen=True)
class Task:
    """Test-then-train with these options of a Hoeffding tree, the same for all systems."""

    learner: str = "h-tree"
    """Our preset, with its own parameters except for those below that it has."""
    leaf_model: str = "mc"
    compat: str | None = None
    grace_period: int = 200
    delta: float = 1e-7
    tau: float = 0.05
    criterion: str = "info_gain"
    evidence: str | None = None
    """For our trees: the weight that bounds use, None: the preset's."""


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
