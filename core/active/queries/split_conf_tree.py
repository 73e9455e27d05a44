"""SplitConfTree: request labels of a share of the records at random, of the rest as ConfTree does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from core.active.queries import conf_tree, random
from core.active.queries.base import Uncertainty
from core.kernels.jit import kernel
from core.layout.model import ModelHeader
from core.layout.plan import PlanRecord
from core.numeric import rng
from core.plugin import number


@dataclass(frozen=True, slots=True)
class Plugin(conf_tree.Plugin):
    """A coin sends a share ν of the records to ``random``, the rest to ``conf_tree``.

    ``{"name": "split_conf_tree", "random": 0.2, "delta": 0}`` (De Rosa and Cesa-Bianchi 2017, section 8).
    As in ``split``, the drift detector uses the labels of the random branch alone.
    """

    random: float = number(0.2, above=0.0, at_most=1.0)
    """Share of the records that go to the random branch."""

    sampled_detection: ClassVar[bool] = True


@kernel
def decide(
    plan: PlanRecord, p, model: ModelHeader, state, limit: float, uncertainty: Uncertainty
) -> tuple[int, float]:
    """Toss the coin of the record and let the branch decide."""
    other_chance = conf_tree.chance_at(p, limit, uncertainty)
    chance = p.random * limit + (1.0 - p.random) * other_chance
    # Both branches are computed because no processor can predict the coin.
    is_random = rng.uniform(plan.coin_key, uncertainty.number << rng.DRAW_BITS) < p.random
    random_answer = random.draw(plan, limit, uncertainty.number)
    other_answer = conf_tree.draw(plan, other_chance, uncertainty.number)
    return random_answer if is_random else other_answer, chance
