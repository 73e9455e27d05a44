"""CGD: the Hoeffding tree with constant gain difference as its schedule."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from core.learners.hoeffding.presets.h_tree import Plugin as HTree


@dataclass(frozen=True, slots=True)
class Plugin(HTree):
    """H-Tree that waits until ε has shrunk to the last gap: ``{"name": "cgd", "grace_period": 200}``.

    Leaves predict as in ``h-tree``. In the papers' experiments they vote for their majority class,
    ``"leaf_model": "mc"``, which is the default with ``compat`` (García-Martín 2017).
    """

    schedule: Any = "cgd"

    compat_defaults: ClassVar[dict[str, Any]] = {"leaf_model": "mc"}
    compats: ClassVar[tuple[str | None, ...]] = (None, "moa", "imac")
