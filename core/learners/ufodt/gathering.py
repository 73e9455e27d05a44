"""Gathering: the first values of attributes without declared thresholds, and the thresholds made of them.

The words lie in the part that the blocks of a model share (words.py: SEEN to CUTS), so that every block
compares with the same thresholds. As in the histogram observer (core/observers/histogram.py), a value is
taken in when a label is learned, and only if the episode has observed it.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from core.kernels.jit import kernel
from core.learners.ufodt import words as w
from core.learners.ufodt.words import feature_at, in_episode
from core.numeric import quantiles
from core.tree import layout as at


@kernel
def words_of(plan, feature: int) -> int:
    """Return the first word gathered for an attribute; only for an attribute that declares no thresholds."""
    return plan[at.PLAN_SHARED] + plan[feature_at(plan, feature) + w.GATHERED]


@kernel
def arms(plan, floats, feature: int) -> int:
    """Return how many thresholds a numeric attribute has; 0 while its first values are gathered."""
    described = feature_at(plan, feature)
    if plan[described + w.GATHERED] == 0:
        return plan[described + w.ROOM]
    return int(floats[words_of(plan, feature) + w.MADE])


@kernel
def threshold(plan, params, floats, feature: int, number: int) -> float:
    """Return a threshold of a numeric attribute by its number, below its ``arms``."""
    if plan[feature_at(plan, feature) + w.GATHERED] == 0:
        return w.declared_threshold(plan, params, feature, number)
    return floats[words_of(plan, feature) + w.CUTS + number]


@kernel
def bound(plan, params, floats, feature: int, upper: bool) -> float:
    """Return an end of the range of a numeric attribute: declared, or the range of its first values."""
    described = feature_at(plan, feature)
    if plan[described + w.GATHERED] == 0:
        return params[described + (w.HIGH if upper else w.LOW)]
    return floats[words_of(plan, feature) + (w.GREATEST if upper else w.LEAST)]


@kernel
def is_blind(plan, floats) -> bool:
    """Return whether all attributes of a model are still gathered, so that only labels are known."""
    for feature in range(plan[at.PLAN_ATTRIBUTES]):
        if plan[feature_at(plan, feature) + w.KIND] == 0 or arms(plan, floats, feature) > 0:
            return False
    return True


@kernel
def left(plan, floats) -> int:
    """Return the number of attributes whose first values are still gathered."""
    found = 0
    for feature in range(plan[at.PLAN_ATTRIBUTES]):
        if plan[feature_at(plan, feature) + w.GATHERED] != 0 and arms(plan, floats, feature) == 0:
            found += 1
    return found


@kernel
def begin(plan, floats, episode, numbers, e: int) -> None:
    """Write the present thresholds to an episode; an attribute without thresholds gets one outcome."""
    for feature in range(plan[at.PLAN_ATTRIBUTES]):
        described = feature_at(plan, feature)
        if plan[described + w.GATHERED] == 0:
            continue
        made = arms(plan, floats, feature)
        if made == 0:
            episode[in_episode(plan, e, w.OUTCOMES) + feature] = 1
        own = in_episode(plan, e, w.OWN_THRESHOLDS) + plan[described + w.OWN]
        for j in range(plan[described + w.ROOM]):
            numbers[own + j] = floats[words_of(plan, feature) + w.CUTS + j] if j < made else math.nan


@kernel
def learn(plan, params, floats, episode, numbers, e: int) -> int:
    """Take in the values that an episode observed; return the number of attributes that got thresholds."""
    made = 0
    for feature in range(plan[at.PLAN_ATTRIBUTES]):
        if not w.is_gathering(plan, episode, e, feature) or arms(plan, floats, feature) > 0:
            continue
        status = episode[in_episode(plan, e, w.STATUS) + feature]
        if status == w.KNOWN or status == w.BOUGHT_ONE:
            value = numbers[in_episode(plan, e, w.VALUE) + feature]
            made += 1 if take(plan, params, floats, feature, value) else 0
    return made


@kernel
def take(plan, params, floats, feature: int, value: float) -> bool:
    """Take in a first value of an attribute; return whether thresholds were made of its first values.

    If all values are equal, the value is the threshold.
    """
    words, room = words_of(plan, feature), plan[feature_at(plan, feature) + w.ROOM]
    cuts, wanted = words + w.CUTS, int(w.parameter(plan, params, w.WARM_UP))
    values, n = words + w.CUTS + room, int(floats[words + w.SEEN])
    quantiles.put(floats, values, n, value)
    floats[words + w.SEEN] = n + 1.0
    if n + 1 < wanted:
        return False
    least, greatest = floats[values], floats[values + wanted - 1]
    made = quantiles.cut(floats, values, wanted, room + 1, cuts)
    if made == 0:
        floats[cuts], made = least, 1
    floats[words + w.MADE] = made
    floats[words + w.LEAST] = least
    floats[words + w.GREATEST] = greatest if greatest > least else least + 1.0
    for i in range(wanted):
        floats[values + i] = 0.0
    return True


def problem(dims: Any, learner: Any, shared: Any) -> str | None:
    """Return a problem of the gathered words of a foreign model, or None; shared: float64[n]."""
    size = w.gathered_words(learner.n_thresholds, learner.warm_up)
    first = w.ACCOUNT + dims.attributes
    for column, is_gathered in zip(dims.numeric, w.gathered(dims), strict=True):
        if not is_gathered:
            continue
        words = shared[first : first + size]
        first += size
        seen, made = words[w.SEEN], words[w.MADE]
        if not (0 <= made <= learner.n_thresholds and made == int(made)):
            return f"thresholds of attribute {column} must be a whole number of them, at most n_thresholds"
        if not (
            0 <= seen <= learner.warm_up and seen == int(seen) and (seen == learner.warm_up) == (made > 0)
        ):
            return f"first values of attribute {column} must be fewer than warm_up until it has thresholds"
        cuts = words[w.CUTS : w.CUTS + int(made)]
        ends = words[[w.LEAST, w.GREATEST]]
        if not (np.isfinite(cuts).all() and (np.diff(cuts) > 0.0).all() and np.isfinite(ends).all()):
            return f"thresholds of attribute {column} must be finite numbers in ascending order"
        if made and not ends[0] < ends[1]:
            return f"the least first value of attribute {column} must be below the greatest"
    return None
