"""SplitConfTree: request labels of a share of the records at random, of the rest as ConfTree does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from core.active.queries import conf_tree, random
from core.kernels.jit import kernel
from core.numeric import rng
from core.plugin import number
from core.tree import layout


@dataclass(frozen=True, slots=True)
class Plugin(conf_tree.Plugin):
    """A coin sends a share ν of the records to ``random``, the rest to ``conf_tree``.

    ``{"name": "split_conf_tree", "random": 0.2, "delta": 0}`` (De Rosa and Cesa-Bianchi 2017, section 7;
    ALGORITHMS section 9.2). As in ``split``, the drift detector uses the labels of the random branch alone.
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
    other = conf_tree.chance_at(params, at, limit, lead, weight, classes, t)
    chance = coin * limit + (1.0 - coin) * other
    # Both branches are computed because no processor can predict the coin.
    is_random = rng.uniform(plan[layout.PLAN_COIN_KEY], t << rng.DRAW_BITS) < coin
    random_answer = random.draw(plan, limit, t)
    own = conf_tree.draw(plan, other, t)
    return random_answer if is_random else own, chance
