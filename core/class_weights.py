"""Class weights: how much more the label of a rare class counts when a model learns it.

A model whose records are nearly all of one class can be right most of the time without a look at their
features, and a tree of it stays at that class. A weight above 1 for the labels of the rare class moves the
majority of leaves, the choice between leaf models and the splits alike. The weights are a part of the spec:

    null               each label counts as its record does
    "balanced"         n / (K·n_c), for n labels so far, K known classes and n_c labels of the class (as
                       ``class_weight="balanced"`` of scikit-learn): all classes have the same total weight
    "sqrt_balanced"    the square root of that, a compromise between the rare class and accuracy
    {"class": weight}  these weights; 1 for all other classes

The counts are the labels that the evaluation of the model has counted, plus one for each class, so that a
class has a weight before its first label. Under either rule the total weight of the labels is at most about
their number (by the inequality of Cauchy and Schwarz), so that confidence bounds do not see more labels than
there are.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

from core.errors import ParameterError
from core.kernels.jit import kernel
from core.layout.model import ACTUAL, ModelHeader
from core.layout.plan import PlanRecord
from core.learners.protocol import Learner

ClassWeights: TypeAlias = str | tuple[tuple[str, float], ...] | None
"""The class weights of a spec: the name of a rule, or class and weight in the order of the classes."""

# Values of PlanRecord.weighting
NONE: Final = 0
GIVEN: Final = 1
BALANCED: Final = 2
SQRT_BALANCED: Final = 3

RULES: Final = {"balanced": BALANCED, "sqrt_balanced": SQRT_BALANCED}
LEAST: Final = 1e-6
MOST: Final = 1e6
MOST_CHARACTERS: Final = 1 << 20
"""Most characters of all names with a weight: each `configure` may add names, and every snapshot has them."""
LEAST_MASS: Final = math.ulp(0.0)
"""Least weight of a learned record: a product of tiny weights may round to 0, which learners do not take."""


def checked(given: Any, learner: Learner) -> ClassWeights:
    """Return class weights as a spec holds them; raise ParameterError if they are not valid."""
    if given is None:
        return None
    if learner.unit_weights:
        msg = (
            f"class_weights={given!r} must go with a learner that weighs records, not with "
            f"{learner.spelled!r}, which counts them; leave it out"
        )
        raise ParameterError(msg)
    if isinstance(given, str) and given in RULES:
        return given
    if not isinstance(given, Mapping):
        rules = ", ".join(map(repr, RULES))
        msg = f"class_weights={given!r} must be null, {rules}, or an object with the weights of classes"
        raise ParameterError(msg)
    characters = sum(map(len, given))
    if characters > MOST_CHARACTERS:
        msg = (
            f"class_weights={{…}} has {characters} characters in the names of {len(given)} classes and "
            f"must have at most {MOST_CHARACTERS}; leave out classes of weight 1"
        )
        raise ParameterError(msg)
    return tuple((name, _weight(name, given[name])) for name in sorted(given))


def _weight(name: str, value: Any) -> float:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not LEAST <= value <= MOST:
        msg = f"class_weights[{name!r}]={value!r} must be a number from {LEAST:g} to {MOST:g}"
        raise ParameterError(msg)
    return float(value)


def as_json(weights: ClassWeights) -> str | dict[str, float] | None:
    """Return class weights as a spec writes them."""
    return dict(weights) if isinstance(weights, tuple) else weights


def kind_of(weights: ClassWeights) -> int:
    """Return the value of PlanRecord.weighting for class weights."""
    if isinstance(weights, tuple):
        return GIVEN
    return NONE if weights is None else RULES[weights]


def by_code(weights: ClassWeights, classes: Sequence[str], room: int) -> tuple[float, ...]:
    """Return the given weights by class code, float[room]; empty if a rule computes them.

    classes: names by code; room: the number of classes that there is room for.
    """
    if not isinstance(weights, tuple):
        return ()
    given = dict(weights)
    return tuple(given.get(name, 1.0) for name in classes) + (1.0,) * (room - len(classes))


@kernel
def weight_of(plan: PlanRecord, model: ModelHeader, label: int) -> float:
    """Return the factor of the weight of a record with this label."""
    if plan.weighting == GIVEN:
        return plan.floats[plan.class_weights + label]
    counts, labels = model.evaluation(plan).counts, 0
    for c in range(model.classes):
        labels += counts[ACTUAL * plan.classes + c]
    share = (counts[ACTUAL * plan.classes + label] + 1.0) / (labels + model.classes)
    weight = 1.0 / (model.classes * share)
    return math.sqrt(weight) if plan.weighting == SQRT_BALANCED else weight


@kernel
def mass_of(plan: PlanRecord, model: ModelHeader, label: int, weight: float) -> float:
    """Return the weight with which a record with this label is learned, above 0; weight: the record's."""
    return max(weight * weight_of(plan, model, label), LEAST_MASS)
