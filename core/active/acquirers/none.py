"""None: buy nothing; records are answered with the features that they bring."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from core.active.acquirers.base import EXHAUSTED, Acquirer, BuyingModel, Floats, Ints, Mask, Step


@dataclass(frozen=True, slots=True)
class Plugin(Acquirer):
    """No feature is bought: ``{"name": "none"}``."""

    buys: ClassVar[bool] = False

    def step(self, model: BuyingModel, words: Ints, x: Floats, unknown: Mask, left: float) -> Step:
        return Step(stop=EXHAUSTED)
