"""EFDT whose leaves watch candidate attributes to know when to split."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from core.learners.efdt import Plugin as Efdt


@dataclass(frozen=True, slots=True)
class Plugin(Efdt):
    """EFDT with IMAC at its leaves: ``{"name": "efdt-imac", "check_period": 200, "revisit_period": 2000}``.

    A leaf is due when the average of its best candidate, the merit of now included, exceeds ε, or ε is below
    ``tau``: when an attempt would succeed. Inner nodes are evaluated every ``revisit_period`` as in EFDT
    (ALGORITHMS section 17 [D39], the switch "leaves only"; Sun, Jia, Hu, Huang, Zhang, Wan and Zhao 2020).
    """

    schedule: Any = "imac"

    compats: ClassVar[tuple[str | None, ...]] = (None,)
