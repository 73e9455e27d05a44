"""EFDT with IMAC's schedule: candidates at leaves, or at all nodes, determine when an attempt is made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from core.errors import ParameterError
from core.learners.hoeffding.presets.efdt import Plugin as Efdt
from core.plugin import choice


@dataclass(frozen=True, slots=True)
class Plugin(Efdt):
    """EFDT with IMAC: ``{"name": "efdt-imac", "check_period": 200, "watched_nodes": "both"}``.

    A leaf is due when an attempt would succeed: when the average of its best candidate, including its present
    merit, exceeds ε, or when ε is below ``tau``. Inner nodes are evaluated every ``revisit_period`` as in
    EFDT. With ``watched_nodes="both"`` they are evaluated when a candidate's gain exceeds the gain of the
    node's present test by more than ε, or by more than ``tau``/2 when ε is below ``tau``; ``revisit_period``
    is then unused [D39] (Sun, Jia, Hu, Huang, Zhang, Wan and Zhao 2020).
    """

    schedule: Any = "imac"
    watched_nodes: str | None = choice("leaves", "leaves", "both")
    """Where candidates are watched: only at leaves, or at leaves and inner nodes."""

    compats: ClassVar[tuple[str | None, ...]] = (None,)

    def __post_init__(self) -> None:
        """Check the parameters, and that the schedule can watch inner nodes."""
        super(Plugin, self).__post_init__()
        name = getattr(self.schedule, "name", "imac")
        if self.watches_inner_nodes and name != "imac":
            msg = f"watched_nodes='both' must be 'leaves' with the schedule {name!r}: 'imac' alone watches"
            raise ParameterError(msg)

    @property
    def watches_inner_nodes(self) -> bool:
        return self.watched_nodes == "both"
