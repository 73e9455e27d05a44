"""Split: request labels of a share of the records at random, of the rest as VarUn does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from core.active.queries import random, variable_uncertainty
from core.kernels.jit import kernel
from core.numeric import rng
from core.plugin import number
from core.tree import layout


@dataclass(frozen=True, slots=True)
class Plugin(variable_uncertainty.Plugin):
    """A coin sends a share ν of the records to ``random``, the rest to ``variable_uncertainty``.

    ``{"name": "split", "random": 0.2, "step": 0.01}`` (ALGORITHMS section 9.2, Split; Žliobaitė et al. 2014).
    Among the requested labels, the drift detector uses only labels of the random branch, because the other
    branch selects hard records.
    """

    random: float = number(0.2, above=0.0, at_most=1.0)
    """Share of the records that go to the random branch."""

    sampled_detection: ClassVar[bool] = True


@kernel
def decide(
    plan,
    params,
    at: int,
    ints,
    floats,
    state: int,
    limit: float,
    share: float,
    lead: float,
    weight: float,
    classes: float,
    t: int,
) -> tuple[int, float]:
    """Toss the coin of record t and let the branch decide."""
    # The parameters of the branch come first, in the order of its module.
    coin = params[at + 1]
    unsure = share < floats[state]
    chance = coin * limit + (1.0 - coin if unsure else 0.0)
    # Both branches are computed because no processor can predict the coin. The threshold of variable
    # uncertainty is restored if the random branch is taken.
    is_random = rng.uniform(plan[layout.PLAN_COIN_KEY], t << rng.DRAW_BITS) < coin
    random_answer = random.draw(plan, limit, t)
    before = floats[state]
    own = variable_uncertainty.move(params, at, floats, state, unsure)
    floats[state] = before if is_random else floats[state]
    return random_answer if is_random else own, chance


PROBLEMS, problem = variable_uncertainty.PROBLEMS, variable_uncertainty.problem
"""The state is the same as in variable uncertainty."""
