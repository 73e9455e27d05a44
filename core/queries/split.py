"""Ask for a part of the records at random, for the rest where the leaf is unsure (Split)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from core import rng
from core.jit import kernel
from core.plugin import number
from core.queries import random, variable_uncertainty
from core.tree import layout
from core.tree.statistics import largest_share


@dataclass(frozen=True, slots=True)
class Plugin(variable_uncertainty.Plugin):
    """A coin sends a share ν of the records to ``random``, the others to ``variable_uncertainty``.

    ``{"name": "split", "random": 0.2, "step": 0.01}`` (ALGORITHMS section 9.2, Split; Žliobaitė et al. 2014).
    Of the labels asked for the drift detector sees those of the random branch alone: the others are hard
    ones by choice.
    """

    random: float = number(0.2, above=0.0, at_most=1.0)
    """Share of the records that go to the random branch."""

    drawn_detection: ClassVar[bool] = True


@kernel
def decide(
    plan: Any,
    knobs: Any,
    at: int,
    ints: Any,
    floats: Any,
    state: int,
    limit: float,
    node: int,
    leaf: int,
    t: int,
) -> tuple[int, float]:
    """Toss the coin of record t and let the branch decide."""
    # The parameters of the branch come first: those of its own file.
    share = knobs[at + 1]
    unsure = largest_share(ints, floats, node) < floats[state]
    chance = share * limit + (1.0 - share if unsure else 0.0)
    # Both branches are worked out, as no processor can guess the coin. The threshold of the one stays where
    # it was if the other is taken.
    is_random = rng.uniform(plan[layout.PLAN_COIN_KEY], t << rng.DRAW_BITS) < share
    drawn = random.decide(plan, knobs, at, ints, floats, state, limit, node, leaf, t)[0]
    before = floats[state]
    own = variable_uncertainty.move(knobs, at, floats, state, unsure)
    floats[state] = before if is_random else floats[state]
    return drawn if is_random else own, chance
