"""Ask where the leaf is unsure by a threshold that adapts and is shaken at each record (RndVar)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from core import rng
from core.jit import kernel
from core.queries import variable_uncertainty
from core.queries.base import UNKNOWN
from core.special import normal_cdf, rough_cdf
from core.tree import layout
from core.tree.statistics import largest_share

ROUGHLY_FROM: Final = -2.0
"""Where Φ is above 0.02, an error of 2e-7 is none; further out the quotients would show it."""


@dataclass(frozen=True, slots=True)
class Plugin(variable_uncertainty.Plugin):
    """As variable uncertainty, with the threshold θ·η, η drawn from N(1, 1) for each record.

    ``{"name": "randomised_uncertainty", "step": 0.01}`` (ALGORITHMS section 9.2, RndVar; Žliobaitė et al.
    2014). The threshold is multiplied, as the paper has it; MOA divides the share, which asks whenever η
    is negative [D21]. Records that look sure are asked for now and then, so that a change there is seen.
    """


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
    """Compare the share with θ·η and move θ."""
    # A normal variate takes two draws: half the counter of the record's first one. A rough one will do unless
    # the share is about as large as the threshold.
    key, counter = plan[layout.PLAN_THRESHOLD_KEY], t << (rng.DRAW_BITS - 1)
    share, threshold = largest_share(ints, floats, node), floats[state]
    shaken = 1.0 + rng.rough_normal(key, counter)
    if abs(threshold * shaken - share) <= threshold * (2.0 * rng.ROUGH_NORMAL_ERROR):
        shaken = 1.0 + rng.normal(key, counter)
    chance = UNKNOWN
    if plan[layout.PLAN_SLICE] == 0:  # else nobody wants to know
        z = 1.0 - share / threshold  # the label is asked for iff η > share/θ
        chance = rough_cdf(z) if z > ROUGHLY_FROM else normal_cdf(z)
    return variable_uncertainty.move(knobs, at, floats, state, share < threshold * shaken), chance
