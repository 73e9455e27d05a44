"""EFHAT: the extremely fast Hoeffding adaptive tree, which splits early and replaces subtrees."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

from core.learners.hat import hat
from core.plugin import choice

ALIASES: Final = ("extremely_fast_hoeffding_adaptive_tree",)


@dataclass(frozen=True, slots=True)
class Plugin(hat.Plugin):
    """Hoeffding adaptive tree whose leaves split as those of ``efdt``: ``{"name": "efhat"}`` (Manapragada,
    Salehi and Webb 2022).

    A leaf splits when the best test leads no split by more than ε, or when ε is below ``tau``. Splits are not
    revised by their merit, because a revision would look like a drift to the detectors: a subtree whose error
    rises is replaced by its alternate tree, as in ``hat``, which has the same parameters.
    """

    evidence: str | None = choice("observed", "inherited", "observed")
    """The weight that bounds use. By default observed, as in ``efdt``."""

    compats: ClassVar[tuple[str | None, ...]] = (None,)
    against_none: ClassVar[bool] = True
