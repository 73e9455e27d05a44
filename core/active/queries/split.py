"""Split: request labels of a share of the records at random, of the rest as VarUn does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from core.active.queries import random, variable_uncertainty
from core.active.queries.base import Uncertainty
from core.active.queries.variable_uncertainty import ThresholdState
from core.kernels.jit import kernel
from core.layout.model import ModelHeader
from core.layout.plan import PlanRecord
from core.numeric import rng
from core.plugin import number


@dataclass(frozen=True, slots=True)
class Plugin(variable_uncertainty.Plugin):
    """A coin sends a share ν of the records to ``random``, the rest to ``variable_uncertainty``.

    ``{"name": "split", "random": 0.2, "step": 0.01}`` (Split; Žliobaitė et al. 2014). Among the requested
    labels, the drift detector uses only labels of the random branch, because the other branch selects hard
    records.
    """

    random: float = number(0.2, above=0.0, at_most=1.0)
    """Share of the records that go to the random branch."""

    sampled_detection: ClassVar[bool] = True


@kernel
def decide(
    plan: PlanRecord, p, model: ModelHeader, state: ThresholdState, limit: float, uncertainty: Uncertainty
) -> tuple[int, float]:
    """Toss the coin of the record and let the branch decide."""
    unsure = uncertainty.share < state.threshold
    chance = p.random * limit + (1.0 - p.random if unsure else 0.0)
    # Both branches are computed because no processor can predict the coin. The threshold of variable
    # uncertainty is restored if the random branch is taken.
    is_random = rng.uniform(plan.coin_key, uncertainty.number << rng.DRAW_BITS) < p.random
    random_answer = random.draw(plan, limit, uncertainty.number)
    before = state.threshold
    other_answer = variable_uncertainty.move(p, state, unsure)
    state.threshold = before if is_random else state.threshold
    return random_answer if is_random else other_answer, chance


PROBLEMS, problem = variable_uncertainty.PROBLEMS, variable_uncertainty.problem
"""The state is the same as in variable uncertainty."""
