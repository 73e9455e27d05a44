"""Features of UFODT in the plan: the places of a block's arrays, the description of each feature, thresholds.

    FeaturePlan | a Feature for each attribute | declared thresholds

A feature is an attribute; its number is the attribute's column. Its *outcomes* are its values; a numeric
attribute has outcomes 0 (at most its threshold) and 1 (above). ``K`` is the number of thresholds of all
numeric attributes. An attribute that declares neither thresholds nor a range gets them from its first values;
before that, it has one outcome for all values.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from core.kernels.jit import kernel
from core.kernels.records import Record, offset, word
from core.layout.plan import PlanRecord
from core.learners.ufodt.shared import ACCOUNT_WORDS, gathered_words
from core.schema.dimensions import Dimensions


class FeaturePlan(Record):
    """The learner's words in the plan; the places of arrays are relative to the block."""

    labels: int = word("place: weight of labels [class]")
    nominal: int = word("place: Dirichlet parameters of nominal attributes [class, value]")
    above: int = word("place: alpha [class, K]")
    below: int = word("place: beta [class, K]")
    used: int = word("place: how often a threshold was learned with [class, K]")
    gains: int = word("place: estimated gains of thresholds [K]")
    begun: int = word("place: whether the class has weights of features, 1 or 0 [class]")
    weights: int = word("place: weights of features [class, attribute]")
    episode: int = word("place: header of the episode; the arrays after it belong to the episode")
    prior: int = word("place: P(Y) [class]")
    status: int = word("place: UNKNOWN … LEFT_OUT [attribute]")
    outcome: int = word("place: observed outcome [attribute]")
    value: int = word("place: observed value [attribute]")
    threshold: int = word("place: number of the threshold that a value is compared with [attribute]")
    outcomes: int = word("place: number of outcomes [attribute]")
    gain: int = word("place: gain of the sampled threshold [attribute]")
    chance: int = word("place: probability of the sampled threshold [attribute]")
    exploited: int = word("place: whether the feature has one of the largest weights, 1 or 0 [attribute]")
    p_nominal: int = word("place: theta [class, value]")
    p_above: int = word("place: theta [class, K]")
    p_mean: int = word("place: theta averaged over thresholds, by use [class, numeric]")
    own_thresholds: int = word("place: thresholds from first values [of attributes without declared ones]")
    declared: int = word("position of the first declared threshold, relative to this record")
    n_thresholds: int = word("K, the number of thresholds of all numeric attributes")
    n_outcomes: int = word("number of outcomes of all attributes")


class Feature(Record):
    """The description of a feature."""

    kind: int = word("1: numeric, 0: nominal")
    first: int = word("first place on the axis of values or thresholds")
    room: int = word("room for values, or number of thresholds")
    order: int = word("number among the attributes of its kind")
    first_outcome: int = word("first place on the axis of outcomes of all attributes")
    price: float = word("cost of a value")
    low: float = word("lower end of the range of a numeric attribute")
    high: float = word("upper end of this range")
    gathered: int = word("place of its FirstValues in the shared words; 0: thresholds are declared")
    own: int = word("first place in own_thresholds")

    @property
    def is_numeric(self) -> bool:
        return self.kind == 1

    @property
    def is_gathered(self) -> bool:
        """Whether the thresholds come from first values."""
        return self.gathered != 0


FIRST_FEATURE: Final = FeaturePlan.SIZE
FEATURE_WORDS: Final = Feature.SIZE


def gathered(dims: Dimensions) -> list[bool]:
    """Return for each numeric attribute whether its thresholds come from its first values."""
    return [
        not declared and limits is None for declared, limits in zip(dims.thresholds, dims.ranges, strict=True)
    ]


def thresholds(dims: Dimensions, n: int) -> list[tuple[float, ...]]:
    """Return the thresholds of each numeric attribute: declared thresholds, else n within its range.

    An attribute that declares neither has n NaN here: its thresholds are state of the model.
    """
    cuts = []
    for declared, limits in zip(dims.thresholds, dims.ranges, strict=True):
        low, high = limits or (math.nan, math.nan)
        even = tuple(low + (high - low) * (j + 1) / (n + 1) for j in range(n))
        cuts.append(declared or even)
    return cuts


def feature_table(dims: Dimensions, cuts: list[tuple[float, ...]], warm_up: int) -> list[int]:
    """Return the words of the plan after the places of the arrays; cuts: thresholds by numeric attribute."""
    table = np.zeros((dims.attributes, FEATURE_WORDS), dtype=np.int64)
    floats = table.view(np.float64)
    features = [Feature(row, row.view(np.float64), 0) for row in table]
    floats[:, offset(Feature, "price")] = dims.costs
    for order, column in enumerate(dims.nominal):
        feature = features[column]
        feature.first, feature.room = dims.value_places[column]
        feature.order, feature.first_outcome = order, feature.first
    used = own_used = 0
    gathered_at = ACCOUNT_WORDS + dims.attributes
    columns = zip(dims.numeric, cuts, dims.ranges, gathered(dims), strict=True)
    for order, (column, values, limits, is_gathered) in enumerate(columns):
        feature = features[column]
        feature.kind, feature.first, feature.room = 1, used, len(values)
        feature.order, feature.first_outcome = order, dims.values + 2 * order
        feature.low, feature.high = limits or (min(values), max(values) + 1.0)
        used += len(values)
        if is_gathered:
            feature.gathered, feature.own = gathered_at, own_used
            gathered_at += gathered_words(len(values), warm_up)
            own_used += len(values)
    flat = np.array([value for values in cuts for value in values], dtype=np.float64)
    head = [FIRST_FEATURE + table.size, used, dims.values + 2 * len(dims.numeric)]
    return [*head, *table.ravel().tolist(), *flat.view(np.int64).tolist()]


@kernel
def feature_plan(plan: PlanRecord) -> FeaturePlan:
    return FeaturePlan(plan.ints, plan.floats, plan.arrays)


@kernel
def feature_of(plan: PlanRecord, column: int) -> Feature:
    return Feature(plan.ints, plan.floats, plan.arrays + FIRST_FEATURE + column * FEATURE_WORDS)


@kernel
def declared_threshold(plan: PlanRecord, feature: Feature, number: int) -> float:
    """Return a threshold that the schema gives a numeric attribute, by its number."""
    return plan.floats[plan.arrays + feature_plan(plan).declared + feature.first + number]
