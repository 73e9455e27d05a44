"""CGD: the Hoeffding tree with constant gain difference as its schedule."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from core.learners.h_tree import Plugin as HTree


@dataclass(frozen=True, slots=True)
class Plugin(HTree):
    """H-Tree that waits until ε has shrunk to the last gap: ``{"name": "cgd", "grace_period": 200}``.

    Leaves vote for their majority class, as in the experiments of the papers (ALGORITHMS section 16;
    García-Martín 2017).
    """

    schedule: Any = "cgd"
    leaf_model: Any = "mc"

    compats: ClassVar[tuple[str | None, ...]] = (None, "moa", "imac")
