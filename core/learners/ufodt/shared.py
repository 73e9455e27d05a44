"""Shared words of UFODT: the account of purchases and the first values of attributes.

All blocks of a model share them (``PlanRecord.shared``):

    PurchaseAccount | purchases of each attribute | FirstValues of each attribute without declared thresholds
"""

from __future__ import annotations

from typing import Any, Final

from core.kernels.jit import kernel, tail
from core.kernels.records import Record, offset, word, words_after
from core.layout.plan import PlanRecord

REASONS: Final = ("one_region", "none_left", "exhausted", "budget", "finish")
"""Reasons of an episode to stop: one decision region is left, no hypothesis is left, no feature is left, the
budget allows no feature, or an answer was requested.
"""
ONE_REGION, NONE_LEFT, EXHAUSTED, OVER_BUDGET, FINISHED = range(5)

MOST_EPISODES: Final = 1 << 62
"""Numbers of episodes are below this."""


class PurchaseAccount(Record):
    """The features that the episodes of a model have bought, and why they stopped."""

    episodes: int = word("episodes begun")
    bought: int = word("features bought")
    cost: float = word("sum of their costs")
    one_region: int = word("episodes that stopped because one decision region was left")
    none_left: int = word("episodes that stopped because no hypothesis was left")
    exhausted: int = word("episodes that stopped because no feature was left")
    budget: int = word("episodes that stopped because their budget allowed no feature")
    finish: int = word("episodes that stopped because an answer was requested")
    region_differed: int = word("predictions that differ from the class of the surviving region")
    replayed: int = word("episodes replayed because the label came late")
    unavailable: int = word("requested features that the record did not have")

    @property
    def stopped(self) -> Any:
        """The numbers of episodes by their reason to stop, int64[reason]."""
        return tail(self.ints, self.start + FIRST_REASON)

    @property
    def by_feature(self) -> Any:
        """The number of purchases of each attribute, int64[attribute]."""
        return tail(self.ints, self.start + ACCOUNT_WORDS)


FIRST_REASON: Final = offset(PurchaseAccount, REASONS[0])
ACCOUNT_WORDS: Final = 16
"""Words of an account before the purchases of each attribute; the words after its fields are unused."""


class FirstValues(Record):
    """The first values of an attribute and the thresholds made of them: the gathered words."""

    seen: float = word("first values so far")
    made: float = word("thresholds made of the first values, 0: these are still gathered")
    least: float = word("the smallest first value")
    greatest: float = word("the largest first value")
    cuts: Any = words_after(float, "n_thresholds thresholds, ascending, NaN: none; then warm_up first values")


def gathered_words(n: int, warm_up: int) -> int:
    """Return the number of gathered words of an attribute with n thresholds."""
    return FirstValues.SIZE + n + warm_up


@kernel
def account_of(plan: PlanRecord, block: Record) -> PurchaseAccount:
    """Return the account of the model that holds a block."""
    return PurchaseAccount(block.ints, block.floats, plan.shared)
