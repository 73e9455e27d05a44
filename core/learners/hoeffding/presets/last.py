"""LAST: the local adaptive streaming tree, whose leaves split when their error changes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from core.learners.hoeffding.presets import h_tree
from core.plugin import number


@dataclass(frozen=True, slots=True)
class Plugin(h_tree.Plugin):
    """Splits where a detector reports that the error of a leaf has risen, by the test with the largest gain.

    ``{"name": "last", "change_detector": "adwin", "change_confidence": 0.002}`` (Assis, Barddal and Enembreck
    2024). No leaf has to wait, and any gain above 0 is enough: ``grace_period`` and ``delta`` are 1, and
    ``tau`` is 0. With a smaller ``delta`` a split needs Hoeffding's proof as well.

    ``compat="moa"`` is MOA's LAST with adaptive naive Bayes leaves (``nba``): with other leaves MOA's never
    splits.
    """

    schedule: Any = "change"
    tau: float = number(0.0, at_least=0.0, at_most=1.0)
    """A tie: below this ε any gain is enough; 0: never."""

    axis_defaults: ClassVar[dict[str, Any]] = {"delta": 1.0}
    compats: ClassVar[tuple[str | None, ...]] = (None, "moa")
    against_none: ClassVar[bool] = True
