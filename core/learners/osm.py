"""OSM: the Hoeffding tree with one-sided minimum as its schedule."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from core.learners.h_tree import Plugin as HTree


@dataclass(frozen=True, slots=True)
class Plugin(HTree):
    """H-Tree that predicts when an attempt may succeed: ``{"name": "osm", "grace_period": 200}``.

    Leaves vote for their majority class, as in the experiments of the papers (ALGORITHMS section 16; Losing,
    Wersing and Hammer 2018).
    """

    schedule: Any = "osm"
    leaf_model: Any = "mc"

    compats: ClassVar[tuple[str | None, ...]] = (None, "moa", "imac")
