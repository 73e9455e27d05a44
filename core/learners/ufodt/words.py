"""Words of UFODT: its parameters, the posterior in a block, and the episode.

    block:    words | posterior arrays | the last episode

An *episode* covers one record from the first question to its label: a header and a few arrays. The block
holds the episode of the last record; further episodes lie in buffers of their owners, in the same form.
``FeaturePlan`` holds the places of all arrays (features.py).
"""

from __future__ import annotations

import math
from typing import Any, Final

from core.kernels.jit import kernel, tail
from core.kernels.records import Record, word
from core.layout.plan import PlanRecord
from core.learners.ufodt.features import declared_threshold, feature_of, feature_plan
from core.learners.ufodt.shared import FINISHED

CRITERIA: Final = ("ec2", "ig", "us", "random")
EC2, IG, US, RANDOM = range(4)

ANSWERS: Final = ("geometric", "mean", "sampled")
"""Theta of the posterior that the class is computed with."""
GEOMETRIC, MEAN, SAMPLED = range(3)

TIE: Final = 1e-12
"""Relative difference up to which scores or shares are equal (the first wins), against rounding errors."""

# States of an episode
NONE: Final = 0
OPEN: Final = 1
ANSWERED: Final = 2
LEARNED: Final = 3

# Status of a feature
UNKNOWN: Final = 0
KNOWN: Final = 1
"""The value came with the record."""
BOUGHT: Final = 2
UNAVAILABLE: Final = 3
LEFT_OUT: Final = 4
"""Feature selection left the feature out."""


class UfodtParameters(Record):
    """The parameters of the learner (ufodt.py:Plugin) as numbers."""

    criterion: float = word("number in CRITERIA")
    hypotheses: float = word("hypotheses that an episode samples")
    enumerate: float = word("1: enumerate the hypotheses if there are few")
    by_region: float = word("1: the class is the decision region with most of the surviving weight")
    counted_prior: float = word("1: the prior of the classes follows from the labels")
    discount: float = word("share of the knowledge that is forgotten with each label")
    exp3: float = word("1: thresholds are sampled by Exp3, 0: searched")
    exp3_rate: float = word("learning rate of Exp3")
    selects: float = word("1: features are selected")
    selected: float = word("selected features; 0: half of them")
    exploration: float = word("share of the episodes that ask among random features")
    step: float = word("step of the perceptron")
    radius: float = word("largest norm of the perceptron's weights")
    record_budget: float = word("maximum of the cost of a record; 0: unlimited")
    warm_up: float = word("first values that thresholds are made of")
    answer: float = word("number in ANSWERS")
    by_posterior: float = word("1: the class follows from the posterior")


class Episode(Record):
    """The header of an episode; methods return the arrays, with [attribute] by column."""

    number: int = word("number of the episode, from which its random numbers follow")
    classes: int = word("classes known at the beginning")
    state: int = word("NONE … LEARNED", low=NONE, high=LEARNED)
    reason: int = word("reason to stop (shared.py:REASONS)", low=0, high=FINISHED)
    version: int = word("labels that the model had learned")
    bought: int = word("features bought")
    cost: float = word("their cost")
    utility: float = word("utility of the last question")
    asked: int = word("the last question, -1: none")
    planned: int = word("1: a question was planned, and the gains of thresholds are known")
    predicted: int = word("class")
    budget: float = word("maximum of the record's cost, 0: unlimited")
    region: int = word("decision region with most of the surviving weight, -1: none survives")
    unavailable: int = word("requested features that were unavailable")

    def prior(self, plan: PlanRecord) -> Any:
        """Return P(Y), float64[class]."""
        places = feature_plan(plan)
        return tail(self.floats, self.start + places.prior - places.episode)

    def status(self, plan: PlanRecord) -> Any:
        """Return UNKNOWN … LEFT_OUT, int64[attribute]."""
        places = feature_plan(plan)
        return tail(self.ints, self.start + places.status - places.episode)

    def outcome(self, plan: PlanRecord) -> Any:
        """Return the observed outcomes, -1: none, int64[attribute]."""
        places = feature_plan(plan)
        return tail(self.ints, self.start + places.outcome - places.episode)

    def value(self, plan: PlanRecord) -> Any:
        """Return the observed values, float64[attribute]."""
        places = feature_plan(plan)
        return tail(self.floats, self.start + places.value - places.episode)

    def threshold(self, plan: PlanRecord) -> Any:
        """Return the number of the threshold that a value is or would be compared with, int64[attribute]."""
        places = feature_plan(plan)
        return tail(self.ints, self.start + places.threshold - places.episode)

    def outcomes(self, plan: PlanRecord) -> Any:
        """Return the number of outcomes, int64[attribute]."""
        places = feature_plan(plan)
        return tail(self.ints, self.start + places.outcomes - places.episode)

    def gain(self, plan: PlanRecord) -> Any:
        """Return the gain of the sampled threshold, from 0 to 1, float64[attribute]."""
        places = feature_plan(plan)
        return tail(self.floats, self.start + places.gain - places.episode)

    def chance(self, plan: PlanRecord) -> Any:
        """Return the probability of the sampled threshold, float64[attribute]."""
        places = feature_plan(plan)
        return tail(self.floats, self.start + places.chance - places.episode)

    def exploited(self, plan: PlanRecord) -> Any:
        """Return 1 for the features with the largest weights, else 0, int64[attribute]."""
        places = feature_plan(plan)
        return tail(self.ints, self.start + places.exploited - places.episode)

    def p_nominal(self, plan: PlanRecord) -> Any:
        """Return theta of nominal attributes, float64[class, value]."""
        places = feature_plan(plan)
        return tail(self.floats, self.start + places.p_nominal - places.episode)

    def p_above(self, plan: PlanRecord) -> Any:
        """Return theta of thresholds, float64[class, K]."""
        places = feature_plan(plan)
        return tail(self.floats, self.start + places.p_above - places.episode)

    def p_mean(self, plan: PlanRecord) -> Any:
        """Return theta averaged over the thresholds of an attribute, by use, float64[class, numeric]."""
        places = feature_plan(plan)
        return tail(self.floats, self.start + places.p_mean - places.episode)

    def own_thresholds(self, plan: PlanRecord) -> Any:
        """Return the thresholds from first values, NaN: none; Feature.own is an attribute's first place."""
        places = feature_plan(plan)
        return tail(self.floats, self.start + places.own_thresholds - places.episode)


EPISODE_WORDS: Final = 16
"""Words of the first array of an episode; those after the fields of its header are unused."""


class UfodtBlock(Record):
    """A block; methods return its arrays."""

    words: int = word("words of the block")

    def labels(self, plan: PlanRecord) -> Any:
        """Return the weight of labels, float64[class]."""
        return tail(self.floats, self.start + feature_plan(plan).labels)

    def nominal(self, plan: PlanRecord) -> Any:
        """Return the Dirichlet parameters of nominal attributes, float64[class, value]."""
        return tail(self.floats, self.start + feature_plan(plan).nominal)

    def above(self, plan: PlanRecord) -> Any:
        """Return alpha, float64[class, K]."""
        return tail(self.floats, self.start + feature_plan(plan).above)

    def below(self, plan: PlanRecord) -> Any:
        """Return beta, float64[class, K]."""
        return tail(self.floats, self.start + feature_plan(plan).below)

    def used(self, plan: PlanRecord) -> Any:
        """Return how often a threshold was learned with, float64[class, K]."""
        return tail(self.floats, self.start + feature_plan(plan).used)

    def gains(self, plan: PlanRecord) -> Any:
        """Return the estimated gains of thresholds, float64[K]."""
        return tail(self.floats, self.start + feature_plan(plan).gains)

    def begun(self, plan: PlanRecord) -> Any:
        """Return 1 for the classes that have weights of features, else 0, int64[class]."""
        return tail(self.ints, self.start + feature_plan(plan).begun)

    def weights(self, plan: PlanRecord) -> Any:
        """Return the weights of features, float64[class, attribute]."""
        return tail(self.floats, self.start + feature_plan(plan).weights)

    def episode(self, plan: PlanRecord) -> Episode:
        """Return the last episode."""
        return Episode(self.ints, self.floats, self.start + feature_plan(plan).episode)


@kernel
def parameters_of(plan: PlanRecord) -> UfodtParameters:
    return UfodtParameters(plan.ints, plan.floats, plan.learner_at)


@kernel
def threshold_of(plan: PlanRecord, episode: Episode, column: int, number: int) -> float:
    """Return a threshold of a numeric attribute in an episode by its number; NaN: there is none."""
    feature = feature_of(plan, column)
    if not 0 <= number < feature.room:
        return math.nan
    if feature.is_gathered:
        return episode.own_thresholds(plan)[feature.own + number]
    return declared_threshold(plan, feature, number)


@kernel
def is_gathering(plan: PlanRecord, episode: Episode, column: int) -> bool:
    """Return whether an attribute had no thresholds when the episode began, and so has one outcome."""
    return feature_of(plan, column).is_gathered and episode.outcomes(plan)[column] == 1


@kernel
def outcome_of(plan: PlanRecord, episode: Episode, column: int, value: float) -> int:
    """Return the outcome of a value; -1: it has none in the episode."""
    if value - value != 0.0:  # NaN, infinity
        return -1
    if feature_of(plan, column).is_numeric:
        if is_gathering(plan, episode, column):
            return 0
        threshold = threshold_of(plan, episode, column, episode.threshold(plan)[column])
        if threshold != threshold:
            return -1
        return 1 if value > threshold else 0
    return int(value) if 0.0 <= value < episode.outcomes(plan)[column] else -1


@kernel
def share_of(plan: PlanRecord, episode: Episode, c: int, column: int, threshold: int, outcome: int) -> float:
    """Return P(outcome | class) of a feature under the theta of an episode."""
    feature = feature_of(plan, column)
    if not feature.is_numeric:
        return episode.p_nominal(plan)[c * plan.values + feature.first + outcome]
    above = episode.p_above(plan)[c * feature_plan(plan).n_thresholds + feature.first + threshold]
    return above if outcome == 1 else 1.0 - above


@kernel
def mean_share_of(plan: PlanRecord, episode: Episode, c: int, column: int, outcome: int) -> float:
    """Return P(outcome | class) of a feature for hypotheses; numeric: averaged over its thresholds."""
    feature = feature_of(plan, column)
    if not feature.is_numeric:
        return share_of(plan, episode, c, column, 0, outcome)
    mean = episode.p_mean(plan)[c * plan.numeric + feature.order]
    return mean if outcome == 1 else 1.0 - mean
