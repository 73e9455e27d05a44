"""Account: the features that episodes of a model have bought, and why they stopped; its blocks share it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from core.learners.ufodt import words as w
from core.tree import layout as at


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
    size = w.gathered_words(learner.n_thresholds, learner.warm_up)
    first = int(model.plan.ints[at.PLAN_SHARED]) + w.ACCOUNT + dims.attributes
    found = {}
    declared = w.thresholds(dims, learner.n_thresholds)
    for column, own, is_gathered in zip(dims.numeric, declared, w.gathered(dims), strict=True):
        cuts = own
        if is_gathered:
            words = model.floats[first : first + size]
            cuts = tuple(words[w.CUTS : w.CUTS + int(words[w.MADE])].tolist())
            first += size
        found[model.schema.names[column]] = cuts
    return found


def feature_account(model: Any) -> FeatureAccount:
    """Return the account of a UFODT model (core/model/model.py:Model)."""
    names, first = model.schema.names, int(model.plan.ints[at.PLAN_SHARED])
    words = model.ints[first : first + w.ACCOUNT + len(names)]
    stopped = words[w.STOPPED : w.STOPPED + len(w.REASONS)].tolist()
    return FeatureAccount(
        episodes=int(words[w.EPISODES]),
        bought=int(words[w.FEATURES_BOUGHT]),
        cost=float(words.view(np.float64)[w.COST_SPENT]),
        stopped=dict(zip(w.REASONS, stopped, strict=True)),
        unavailable=int(words[w.NOT_AVAILABLE]),
        region_differed=int(words[w.REGION_DIFFERED]),
        replayed=int(words[w.REPLAYED]),
        by_feature=dict(zip(names, words[w.ACCOUNT :].tolist(), strict=True)),
    )
