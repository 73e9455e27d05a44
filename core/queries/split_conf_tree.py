"""Ask for a part of the records at random, for the rest where the leaf is in doubt (SplitConfTree)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from core import rng
from core.jit import kernel
from core.plugin import number
from core.queries import conf_tree, random
from core.tree import layout


@dataclass(frozen=True, slots=True)
class Plugin(conf_tree.Plugin):
    """A coin sends a share ν of the records to ``random``, the others to ``conf_tree``.

    ``{"name": "split_conf_tree", "random": 0.2, "delta": 0}`` (De Rosa and Cesa-Bianchi 2017, section 7;
    ALGORITHMS section 9.2). As in ``split``, the drift detector sees the labels of the random branch alone.
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
    share, other = knobs[at + 1], conf_tree.chance_at(knobs, at, ints, floats, limit, leaf, t)
    chance = share * limit + (1.0 - share) * other
    # Both branches are worked out, as no processor can guess the coin.
    is_random = rng.uniform(plan[layout.PLAN_COIN_KEY], t << rng.DRAW_BITS) < share
    drawn = random.decide(plan, knobs, at, ints, floats, state, limit, node, leaf, t)[0]
    own = conf_tree.draw(plan, other, t)
    return drawn if is_random else own, chance
