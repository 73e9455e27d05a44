"""RndVar: request labels as VarUn does, with the threshold multiplied by a random factor at each record."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from core.active.queries import variable_uncertainty
from core.active.queries.base import UNKNOWN, Uncertainty
from core.active.queries.variable_uncertainty import ThresholdState
from core.kernels.jit import kernel
from core.layout.model import ModelHeader
from core.layout.plan import PlanRecord
from core.numeric import rng
from core.numeric.special import normal_cdf, rough_cdf

ROUGHLY_FROM: Final = -2.0
"""Above this argument Φ exceeds 0.02, and its error of 2e-7 does not matter in quotients."""


@dataclass(frozen=True, slots=True)
class Plugin(variable_uncertainty.Plugin):
    """Variable uncertainty with the threshold θ·η, η drawn from N(1, 1) for each record.

    ``{"name": "randomised_uncertainty", "step": 0.01}`` (RndVar; Žliobaitė et al. 2014). The threshold is
    multiplied, as in the paper; MOA divides the share, which requests whenever η is negative [D21]. Labels of
    confident predictions are requested now and then, so that a change there is noticed.
    """


@kernel
def decide(
    plan: PlanRecord, p, model: ModelHeader, state: ThresholdState, limit: float, uncertainty: Uncertainty
) -> tuple[int, float]:
    # A normal variate takes two draws: half the counter of the record's first draw. An approximate variate is
    # enough unless the share is about as large as the threshold.
    key, counter = plan.threshold_key, uncertainty.number << (rng.DRAW_BITS - 1)
    share, threshold = uncertainty.share, state.threshold
    shaken = 1.0 + rng.rough_normal(key, counter)
    if abs(threshold * shaken - share) <= threshold * (2.0 * rng.ROUGH_NORMAL_ERROR):
        shaken = 1.0 + rng.normal(key, counter)
    chance = UNKNOWN
    if plan.slice == 0:  # else the probability is not used
        z = 1.0 - share / threshold  # the label is requested iff η > share/θ
        chance = rough_cdf(z) if z > ROUGHLY_FROM else normal_cdf(z)
    return variable_uncertainty.move(p, state, share < threshold * shaken), chance


PROBLEMS, problem = variable_uncertainty.PROBLEMS, variable_uncertainty.problem
"""The state is the same as in variable uncertainty."""
