"""Terms of a `challenge` command, checked against the model that is challenged."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, Final

from core.errors import ParameterError, SpecError
from core.layout.challenge_counts import MOST
from core.measures.challenge_bounds import Rules
from core.schema.schema import Schema
from core.spec import Spec
from streamapp.worker.task.models.challenge import JUDGES, SHARE, WARM_UP, Terms

MEMBERS: Final = ("spec", "share", "decide", "warm_up", *Rules._fields)


def terms_of(body: Mapping[str, Any], spec: Spec, champion: Spec, schema: Schema) -> Terms:
    """Return the terms of a command; GroveError for those that a challenge of this champion cannot have."""
    _check_fit(spec, champion, schema)
    spec = dataclasses.replace(spec, max_classes=champion.max_classes)
    share = _number(body, "share", SHARE)
    if not 0.0 < share <= 0.9:
        message = f"share={share} must be above 0 and at most 0.9, a part of the requests of the strategy"
        raise ParameterError(message)
    decide = body.get("decide", JUDGES[0])
    if decide not in JUDGES:
        message = f"decide={decide!r} must be one of {', '.join(JUDGES)}"
        raise ParameterError(message)
    warm_up = _count(body, "warm_up", WARM_UP)
    if not 0 <= warm_up <= MOST:
        message = f"warm_up={warm_up} must be from 0 to {MOST}, labels that the challenger learns at first"
        raise ParameterError(message)
    defaults = Rules()
    margin = _number(body, "margin", defaults.margin)
    rules = Rules(
        alpha=_number(body, "alpha", defaults.alpha),
        margin=margin,
        worth=_number(body, "worth", max(defaults.worth, margin)),
        max_labels=_count(body, "max_labels", defaults.max_labels),
    )
    rules.check()
    return Terms(spec, share, decide, rules, warm_up)


def check_features(spec: Spec) -> None:
    """Raise SpecError for a spec that buys features: two models would need two episodes for a record."""
    if spec.acquirer is not None:
        message = f"acquire={spec.acquire.name!r} must be 'none' for a key with a challenger"
        raise SpecError(message)


def _check_fit(spec: Spec, champion: Spec, schema: Schema) -> None:
    learner = spec.learner
    check_features(champion)
    check_features(spec)
    learner.check_schema(schema)
    if learner.max_classes is not None and learner.max_classes < champion.max_classes:
        message = (
            f"learner {learner.spelled!r} has at most {learner.max_classes} classes, and the model of the "
            f"key up to {champion.max_classes} (max_classes); challenge it with another learner"
        )
        raise SpecError(message)
    if learner.unit_weights and not champion.learner.unit_weights:
        message = (
            f"learner {learner.spelled!r} counts records, and the labels of this key may have weights; take "
            "a learner that weighs them, such as 'h-tree'"
        )
        raise SpecError(message)


def _number(body: Mapping[str, Any], name: str, default: float) -> float:
    value = body.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int | float):
        message = f"{name}={value!r} must be a number"
        raise ParameterError(message)
    return float(value)


def _count(body: Mapping[str, Any], name: str, default: int) -> int:
    value = body.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int):
        message = f"{name}={value!r} must be a whole number"
        raise ParameterError(message)
    return value
