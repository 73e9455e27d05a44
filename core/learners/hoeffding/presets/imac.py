"""IMAC: the Hoeffding tree that watches candidate attributes to find when to split."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from core.learners.hoeffding.presets.h_tree import Plugin as HTree


@dataclass(frozen=True, slots=True)
class Plugin(HTree):
    """H-Tree with candidates: ``{"name": "imac", "grace_period": 200, "check_period": 200}``.

    It splits earlier than with a fixed grace period, after a tenth of the attempts (Sun, Jia, Hu, Huang,
    Zhang, Wan and Zhao 2020). Leaves predict as in ``h-tree``. The paper's leaves vote for their majority
    class, and answer with one class until the first split: ``"leaf_model": "mc"`` does the same, and is the
    default with ``compat``. ``{"name": "imac", "compat": "imac"}`` grows the trees of its authors' code.
    """

    schedule: Any = "imac"

    compat_defaults: ClassVar[dict[str, Any]] = {"leaf_model": "mc"}
    compats: ClassVar[tuple[str | None, ...]] = (None, "moa", "imac")
