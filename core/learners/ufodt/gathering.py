"""Gathering: the first values of attributes without declared thresholds, and the thresholds made of them.

The words lie in the part that the blocks of a model share (shared.py:FirstValues), so that every block
compares with the same thresholds. As in the histogram observer (core/observers/histogram.py), a value is
taken in when a label is learned, and only if the episode has observed it.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from core.kernels.jit import kernel
from core.kernels.records import Record
from core.layout.plan import PlanRecord
from core.learners.ufodt.features import Feature, declared_threshold, feature_of, gathered
from core.learners.ufodt.shared import ACCOUNT_WORDS, FirstValues, gathered_words
from core.learners.ufodt.words import BOUGHT, KNOWN, Episode, UfodtBlock, is_gathering, parameters_of
from core.numeric import quantiles


@kernel
def first_values_of(plan: PlanRecord, block: Record, feature: Feature) -> FirstValues:
    """Return the gathered words of an attribute, which must declare no thresholds."""
    return FirstValues(block.ints, block.floats, plan.shared + feature.gathered)


@kernel
def arms(plan: PlanRecord, block: UfodtBlock, feature: Feature) -> int:
    """Return how many thresholds a numeric attribute has; 0 while its first values are gathered."""
    if not feature.is_gathered:
        return feature.room
    return int(first_values_of(plan, block, feature).made)


@kernel
def threshold(plan: PlanRecord, block: UfodtBlock, feature: Feature, number: int) -> float:
    """Return a threshold of a numeric attribute by its number, below its ``arms``."""
    if not feature.is_gathered:
        return declared_threshold(plan, feature, number)
    return first_values_of(plan, block, feature).cuts[number]


@kernel
def lower_end(plan: PlanRecord, block: UfodtBlock, feature: Feature) -> float:
    """Return the lower end of a numeric attribute's range: declared, or of its first values."""
    return first_values_of(plan, block, feature).least if feature.is_gathered else feature.low


@kernel
def upper_end(plan: PlanRecord, block: UfodtBlock, feature: Feature) -> float:
    """Return the upper end of a numeric attribute's range: declared, or of its first values."""
    return first_values_of(plan, block, feature).greatest if feature.is_gathered else feature.high


@kernel
def is_blind(plan: PlanRecord, block: UfodtBlock) -> bool:
    """Return whether all attributes of a model are still gathered, so that only labels are known."""
    for column in range(plan.attributes):
        feature = feature_of(plan, column)
        if not feature.is_numeric or arms(plan, block, feature) > 0:
            return False
    return True


@kernel
def left(plan: PlanRecord, block: UfodtBlock) -> int:
    """Return the number of attributes whose first values are still gathered."""
    n = 0
    for column in range(plan.attributes):
        feature = feature_of(plan, column)
        if feature.is_gathered and arms(plan, block, feature) == 0:
            n += 1
    return n


@kernel
def begin(plan: PlanRecord, block: UfodtBlock, episode: Episode) -> None:
    """Write the present thresholds to an episode; an attribute without thresholds gets one outcome."""
    own_thresholds, outcomes = episode.own_thresholds(plan), episode.outcomes(plan)
    for column in range(plan.attributes):
        feature = feature_of(plan, column)
        if not feature.is_gathered:
            continue
        n_thresholds = arms(plan, block, feature)
        if n_thresholds == 0:
            outcomes[column] = 1
        cuts = first_values_of(plan, block, feature).cuts
        for j in range(feature.room):
            own_thresholds[feature.own + j] = cuts[j] if j < n_thresholds else math.nan


@kernel
def learn(plan: PlanRecord, block: UfodtBlock, episode: Episode) -> int:
    """Take in the values that an episode observed; return the number of attributes that got thresholds."""
    n_new = 0
    for column in range(plan.attributes):
        feature = feature_of(plan, column)
        if not is_gathering(plan, episode, column) or arms(plan, block, feature) > 0:
            continue
        status = episode.status(plan)[column]
        if status in (KNOWN, BOUGHT):
            n_new += 1 if take(plan, block, feature, episode.value(plan)[column]) else 0
    return n_new


@kernel
def take(plan: PlanRecord, block: UfodtBlock, feature: Feature, value: float) -> bool:
    """Take in a first value of an attribute; return whether thresholds were made of its first values.

    If all values are equal, the value is the threshold.
    """
    gathering, enough, room = (
        first_values_of(plan, block, feature),
        int(parameters_of(plan).warm_up),
        feature.room,
    )
    words, n = gathering.cuts, int(gathering.seen)  # the first values lie after the room for thresholds
    quantiles.put(words, room, n, value)
    gathering.seen = n + 1.0
    if n + 1 < enough:
        return False
    least, greatest = words[room], words[room + enough - 1]
    n_thresholds = quantiles.cut(words, room, enough, room + 1, 0)
    if n_thresholds == 0:
        words[0], n_thresholds = least, 1
    gathering.made = n_thresholds
    gathering.least = least
    gathering.greatest = greatest if greatest > least else least + 1.0
    for i in range(enough):
        words[room + i] = 0.0
    return True


def problem(dims: Any, learner: Any, shared: Any) -> str | None:
    """Return a problem of the gathered words of a foreign model, or None; shared: int64[n]."""
    first = ACCOUNT_WORDS + dims.attributes
    for column, is_gathered in zip(dims.numeric, gathered(dims), strict=True):
        if not is_gathered:
            continue
        words = FirstValues(shared, shared.view(np.float64), first)
        first += gathered_words(learner.n_thresholds, learner.warm_up)
        seen, n_thresholds = words.seen, words.made
        if not (0 <= n_thresholds <= learner.n_thresholds and n_thresholds == int(n_thresholds)):
            return f"thresholds of attribute {column} must be a whole number of them, at most n_thresholds"
        if not (
            0 <= seen <= learner.warm_up
            and seen == int(seen)
            and (seen == learner.warm_up) == (n_thresholds > 0)
        ):
            return f"first values of attribute {column} must be fewer than warm_up until it has thresholds"
        cuts, ends = words.cuts[: int(n_thresholds)], (words.least, words.greatest)
        if not (np.isfinite(cuts).all() and (np.diff(cuts) > 0.0).all() and np.isfinite(ends).all()):
            return f"thresholds of attribute {column} must be finite numbers in ascending order"
        if n_thresholds and not ends[0] < ends[1]:
            return f"the least first value of attribute {column} must be below the greatest"
    return None
