"""Account: the features that episodes of a model have bought, and why they stopped; its blocks share it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from core.layout.plan import PlanRecord
from core.learners.ufodt.features import gathered, thresholds
from core.learners.ufodt.shared import (
    ACCOUNT_WORDS,
    REASONS,
    FirstValues,
    PurchaseAccount,
    gathered_words,
)


@dataclass(frozen=True, slots=True)
class FeatureAccount:
    """Counts of the features that the episodes of a model have bought, offline and over a stream."""

    episodes: int
    bought: int
    """Number of features bought."""
    cost: float
    """Sum of the costs of the features bought."""
    stopped: dict[str, int]
    """Number of episodes by their reason to stop."""
    unavailable: int
    """Requested features that the record did not have."""
    region_differed: int
    """Predictions by naive Bayes whose class differs from the class of the surviving decision region."""
    replayed: int
    """Episodes replayed for labels that came after later labels; their purchases are counted, too."""
    by_feature: dict[str, int]
    """How often each feature was bought."""


def thresholds_of(model: Any) -> dict[str, tuple[float, ...]]:
    """Return the thresholds of each numeric attribute of a UFODT model, by name.

    These are the thresholds of the schema, or even steps of its range, or quantiles of first values (none
    while these are gathered): exactly the numbers that values are compared with.
    """
    dims, learner = model.plan.blocks.dims, model.spec.learner
    first = _shared_at(model) + ACCOUNT_WORDS + dims.attributes
    by_name = {}
    declared = thresholds(dims, learner.n_thresholds)
    for column, cuts, is_gathered in zip(dims.numeric, declared, gathered(dims), strict=True):
        name = model.schema.names[column]
        by_name[name] = cuts
        if is_gathered:
            words = FirstValues(model.ints, model.floats, first)
            by_name[name] = tuple(words.cuts[: int(words.made)].tolist())
            first += gathered_words(learner.n_thresholds, learner.warm_up)
    return by_name


def feature_account(model: Any) -> FeatureAccount:
    """Return the account of a UFODT model (core/model/model.py:Model)."""
    names, first = model.schema.names, _shared_at(model)
    account = PurchaseAccount(model.ints, model.floats, first)
    purchases = model.ints[first + ACCOUNT_WORDS : first + ACCOUNT_WORDS + len(names)]
    return FeatureAccount(
        episodes=int(account.episodes),
        bought=int(account.bought),
        cost=float(account.cost),
        stopped={reason: int(getattr(account, reason)) for reason in REASONS},
        unavailable=int(account.unavailable),
        region_differed=int(account.region_differed),
        replayed=int(account.replayed),
        by_feature=dict(zip(names, purchases.tolist(), strict=True)),
    )


def _shared_at(model: Any) -> int:
    """Return the first of the words that the blocks of a model share."""
    return int(PlanRecord.over(model.plan.ints).shared)
