"""Words of UFODT: where its parameters, features, posterior and episodes lie; no other module defines that.

    block:    words | posterior arrays | the last episode
    shared:   account, and how often each attribute was bought | gathered words
    (core/learners/ufodt/gathering.py)
    plan:     places of the arrays | FEATURE_FIELDS words for each attribute | thresholds

An *episode* covers one record from the first question to its label: a few arrays of plain words. The block
holds the episode of the last record; further episodes lie in buffers of their owners, in the same form. A
feature is an attribute. Its *outcomes* are its values; a numeric attribute has outcomes 0 (at most its
threshold) and 1 (above). ``K`` is the number of thresholds of all numeric attributes. An attribute that
declares neither thresholds nor a range gets them from its first values; before that, it has one outcome for
all values.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from core.kernels.jit import kernel
from core.schema.dimensions import Dimensions
from core.tree import layout as at

# Parameters, in the order of Plugin.constants
CRITERION: Final = 0
HYPOTHESES: Final = 1
ENUMERATE: Final = 2
BY_REGION: Final = 3
COUNTED_PRIOR: Final = 4
DISCOUNT: Final = 5
EXP3: Final = 6
EXP3_RATE: Final = 7
SELECTS: Final = 8
SELECTED: Final = 9
EXPLORATION: Final = 10
STEP: Final = 11
RADIUS: Final = 12
RECORD_BUDGET: Final = 13
WARM_UP: Final = 14
ANSWER: Final = 15
BY_POSTERIOR: Final = 16

CRITERIA: Final = ("ec2", "ig", "us", "random")
EC2, IG, US, RANDOM = range(4)

ANSWERS: Final = ("geometric", "mean", "sampled")
"""Theta of the posterior that the class is computed with."""
GEOMETRIC, MEAN, SAMPLED = range(3)

TIE: Final = 1e-12
"""Relative difference up to which scores or shares are equal (the first wins), against rounding errors."""

# Arrays of a block
LABELS: Final = 0  # weight of labels [class]
NOMINAL: Final = 1  # Dirichlet parameters of nominal attributes [class, value]
ABOVE: Final = 2  # alpha [class, K]
BELOW: Final = 3  # beta [class, K]
USED: Final = 4  # how often a threshold was learned with [class, K]
GAINS: Final = 5  # estimated gains of thresholds [K]
BEGUN: Final = 6  # 1: the class has weights of features
WEIGHTS: Final = 7  # weights of features [class, attribute]
# Arrays of an episode
EPISODE: Final = 8  # EPISODE_WORDS
PRIOR: Final = 9  # P(Y) [class]
STATUS: Final = 10  # [attribute]
OUTCOME: Final = 11  # observed outcome, -1: none
VALUE: Final = 12  # observed value
THRESHOLD: Final = 13  # number of the threshold that the value is or would be compared with
OUTCOMES: Final = 14  # number of outcomes
GAIN: Final = 15  # gain of the sampled threshold, from 0 to 1
CHANCE: Final = 16  # probability of the sampled threshold
EXPLOITED: Final = 17  # 1: among the features with the largest weights
P_NOMINAL: Final = 18  # theta [class, value]
P_ABOVE: Final = 19  # theta [class, K]
P_MEAN: Final = 20  # theta averaged over thresholds, by use [class, numeric]
OWN_THRESHOLDS: Final = (
    21  # thresholds from first values, NaN: none [of attributes without declared thresholds]
)
ARRAYS: Final = 22

# Words of an episode's first array
NUMBER: Final = 0  # number of the episode, from which its random numbers follow
CLASSES: Final = 1  # classes known at the beginning
STATE: Final = 2
REASON: Final = 3  # reason to stop
VERSION: Final = 4  # labels that the model had learned
BOUGHT: Final = 5  # features bought
COST: Final = 6  # their cost (float64)
UTILITY: Final = 7  # utility of the last question (float64)
ASKED: Final = 8  # the last question, -1: none
PLANNED: Final = 9  # 1: a question was planned, and the gains of thresholds are known
PREDICTED: Final = 10  # class
BUDGET: Final = 11  # maximum of the record's cost (float64), 0: unlimited
REGION: Final = 12  # decision region with most of the surviving weight, -1: none survives
UNAVAILABLE_COUNT: Final = 13
EPISODE_WORDS: Final = 16

# States of an episode
NONE: Final = 0
OPEN: Final = 1
ANSWERED: Final = 2
LEARNED: Final = 3

# Status of a feature
UNKNOWN: Final = 0
KNOWN: Final = 1  # it came with the record
BOUGHT_ONE: Final = 2
UNAVAILABLE: Final = 3
LEFT_OUT: Final = 4  # feature selection left it out

REASONS: Final = ("one_region", "none_left", "exhausted", "budget", "finish")
"""Reasons of an episode to stop: one decision region is left, no hypothesis is left, no feature is left, the
budget allows no feature, or an answer was requested.
"""
ONE_REGION, NONE_LEFT, EXHAUSTED, OVER_BUDGET, FINISHED = range(5)

# Account: shared by the blocks of a model
EPISODES: Final = 0
FEATURES_BOUGHT: Final = 1
COST_SPENT: Final = 2  # float64
STOPPED: Final = 3  # episodes by reason to stop
REGION_DIFFERED: Final = 8  # predictions that differ from the class of the surviving region
REPLAYED: Final = 9  # episodes replayed because the label came late
NOT_AVAILABLE: Final = 10
ACCOUNT: Final = 16  # words before the counts of each attribute's purchases

# Words after the places of the arrays
THRESHOLDS_AT: Final = ARRAYS  # first threshold, relative to the places
K: Final = ARRAYS + 1  # number of thresholds of all numeric attributes
STRINGS: Final = ARRAYS + 2  # number of outcomes of all attributes
FEATURES_AT: Final = ARRAYS + 3
# Words of a feature
KIND: Final = 0  # 1: numeric
FIRST: Final = 1  # first place on the axis of values or thresholds
ROOM: Final = 2  # room for values, or number of thresholds
ORDER: Final = 3  # number among the attributes of its kind
FIRST_OUTCOME: Final = 4  # first place on the axis of outcomes of all attributes
PRICE: Final = 5  # float64
LOW: Final = 6  # range of a numeric attribute (float64)
HIGH: Final = 7
GATHERED: Final = 8  # first gathered word, from PLAN_SHARED on; 0: thresholds are declared
OWN: Final = 9  # first place in OWN_THRESHOLDS
FEATURE_FIELDS: Final = 10

# Gathered words of an attribute: a header, n_thresholds words, warm_up words for the first values
SEEN: Final = 0  # first values so far (float64)
MADE: Final = 1  # thresholds made of the first values (float64), 0: they are still gathered
LEAST: Final = 2  # the smallest first value
GREATEST: Final = 3
CUTS: Final = 4  # the thresholds, ascending, NaN: none


def gathered(dims: Dimensions) -> list[bool]:
    """Return for each numeric attribute whether its thresholds come from its first values."""
    return [
        not declared and limits is None for declared, limits in zip(dims.thresholds, dims.ranges, strict=True)
    ]


def thresholds(dims: Dimensions, n: int) -> list[tuple[float, ...]]:
    """Return the thresholds of each numeric attribute: declared thresholds, else n within its range.

    An attribute that declares neither has n NaN here: its thresholds are state of the model.
    """
    found = []
    for declared, limits in zip(dims.thresholds, dims.ranges, strict=True):
        low, high = limits or (math.nan, math.nan)
        even = tuple(low + (high - low) * (j + 1) / (n + 1) for j in range(n))
        found.append(declared or even)
    return found


def gathered_words(n: int, warm_up: int) -> int:
    """Return the number of gathered words of an attribute."""
    return CUTS + n + warm_up


def feature_table(dims: Dimensions, found: list[tuple[float, ...]], warm_up: int) -> list[int]:
    """Return the description of the features for kernels: the words after the places of the arrays."""
    k = sum(map(len, found))
    table = np.zeros((dims.attributes, FEATURE_FIELDS), dtype=np.int64)
    floats = table.view(np.float64)
    floats[:, PRICE] = dims.costs
    for order, column in enumerate(dims.nominal):
        first, room = dims.value_places[column]
        table[column, :PRICE] = 0, first, room, order, first
    used = own_used = 0
    gathered_at = ACCOUNT + dims.attributes
    columns = zip(dims.numeric, found, dims.ranges, gathered(dims), strict=True)
    for order, (column, own, limits, is_gathered) in enumerate(columns):
        table[column, :PRICE] = 1, used, len(own), order, dims.values + 2 * order
        floats[column, LOW], floats[column, HIGH] = limits or (min(own), max(own) + 1.0)
        used += len(own)
        if is_gathered:
            table[column, GATHERED:] = gathered_at, own_used
            gathered_at += gathered_words(len(own), warm_up)
            own_used += len(own)
    flat = [value for own in found for value in own]
    behind = FEATURES_AT + table.size
    head = [behind, k, dims.values + 2 * len(dims.numeric)]
    return [*head, *table.ravel().tolist(), *np.array(flat, dtype=np.float64).view(np.int64).tolist()]


@kernel
def feature_at(plan, feature: int) -> int:
    """Return the word of the plan where the description of a feature begins."""
    return plan[at.PLAN_ARRAYS] + FEATURES_AT + feature * FEATURE_FIELDS


@kernel
def declared_threshold(plan, params, feature: int, number: int) -> float:
    """Return a threshold that the schema gives a numeric attribute, by its number."""
    places = plan[at.PLAN_ARRAYS]
    first = plan[places + FEATURES_AT + feature * FEATURE_FIELDS + FIRST]
    return params[places + plan[places + THRESHOLDS_AT] + first + number]


@kernel
def threshold_of(plan, params, numbers, e: int, feature: int, number: int) -> float:
    """Return a threshold of a numeric attribute in an episode by its number; NaN: there is none."""
    described = feature_at(plan, feature)
    if not 0 <= number < plan[described + ROOM]:
        return math.nan
    if plan[described + GATHERED] != 0:
        return numbers[in_episode(plan, e, OWN_THRESHOLDS) + plan[described + OWN] + number]
    return declared_threshold(plan, params, feature, number)


@kernel
def is_gathering(plan, episode, e: int, feature: int) -> bool:
    """Return whether an attribute had no thresholds when the episode began, and so has one outcome."""
    described = feature_at(plan, feature)
    return plan[described + GATHERED] != 0 and episode[in_episode(plan, e, OUTCOMES) + feature] == 1


@kernel
def k_of(plan) -> int:
    """Return the number of thresholds of all numeric attributes."""
    return plan[plan[at.PLAN_ARRAYS] + K]


@kernel
def parameter(plan, params, number: int) -> float:
    return params[plan[at.PLAN_LEARNER + 1] + number]


@kernel
def in_episode(plan, e: int, number: int) -> int:
    """Return the first word of an array of the episode at word e."""
    places = plan[at.PLAN_ARRAYS]
    return e + plan[places + number] - plan[places + EPISODE]


@kernel
def outcome_of(plan, params, episode, numbers, e: int, feature: int, value: float) -> int:
    """Return the outcome of a value; -1: it has none in the episode."""
    if value - value != 0.0:  # NaN, infinity
        return -1
    if plan[feature_at(plan, feature) + KIND] == 1:
        if is_gathering(plan, episode, e, feature):
            return 0
        number = episode[in_episode(plan, e, THRESHOLD) + feature]
        threshold = threshold_of(plan, params, numbers, e, feature, number)
        if threshold != threshold:
            return -1
        return 1 if value > threshold else 0
    return int(value) if 0.0 <= value < episode[in_episode(plan, e, OUTCOMES) + feature] else -1


@kernel
def share_of(plan, numbers, e: int, c: int, feature: int, threshold: int, outcome: int) -> float:
    """Return P(outcome | class) of a feature under the theta of an episode."""
    described = feature_at(plan, feature)
    first = plan[described + FIRST]
    if plan[described + KIND] == 0:
        return numbers[in_episode(plan, e, P_NOMINAL) + c * plan[at.PLAN_VALUES] + first + outcome]
    above = numbers[in_episode(plan, e, P_ABOVE) + c * k_of(plan) + first + threshold]
    return above if outcome == 1 else 1.0 - above


@kernel
def mean_share_of(plan, numbers, e: int, c: int, feature: int, outcome: int) -> float:
    """Return P(outcome | class) of a feature for hypotheses; numeric: averaged over its thresholds."""
    described = feature_at(plan, feature)
    if plan[described + KIND] == 0:
        return share_of(plan, numbers, e, c, feature, 0, outcome)
    mean = numbers[in_episode(plan, e, P_MEAN) + c * plan[at.PLAN_NUMERIC] + plan[described + ORDER]]
    return mean if outcome == 1 else 1.0 - mean
