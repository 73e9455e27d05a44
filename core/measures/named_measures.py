"""Measures as a document: the names that evaluations, commands and pages use."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

from core.measures.class_measures import Measures
from core.measures.estimate import Estimate

FIGURES: Final = ("balanced_accuracy", "log_loss", "brier", "auc", "calibration_error")
CLASS_FIGURES: Final = ("precision", "recall", "f1", "auc")


def named(measures: Measures, names: Sequence[str], listed: Sequence[int] | None = None) -> dict[str, Any]:
    """Return figures by name, those of intervals with ``_low`` and ``_high``; NaN: not defined.

    names: of the classes, by code; listed: codes of the classes in ``per_class`` and ``confusion``, None: of
    all classes. ``confusion`` is None if there are more classes than a matrix has.
    """
    codes = range(len(measures.classes)) if listed is None else listed
    document: dict[str, Any] = {"measured": measures.basis}
    document |= _with_ends("accuracy_powered", measures.accuracy.accuracy)
    document["accuracy_always_low"] = measures.accuracy.always_low
    document["accuracy_always_high"] = measures.accuracy.always_high
    document |= _with_ends("kappa_unbiased", measures.kappa)
    for figure in FIGURES:
        document |= _with_ends(figure, getattr(measures, figure))
    document["per_class"] = {names[code]: _of_class(measures, code) for code in codes}
    document["confusion"] = None
    if measures.confusion is not None:
        cells = measures.confusion[list(codes)][:, list(codes)]
        document["confusion"] = {"classes": [names[code] for code in codes], "weights": cells.tolist()}
    return document


def defined(value: Any) -> Any:
    """Return a document in which NaN is None, as JSON has it."""
    if isinstance(value, dict):
        return {key: defined(part) for key, part in value.items()}
    if isinstance(value, list):
        return [defined(part) for part in value]
    return None if isinstance(value, float) and math.isnan(value) else value


def _of_class(measures: Measures, code: int) -> dict[str, float]:
    of = measures.classes[code]
    figures = {"labels": of.labels, "predictions": of.predictions}
    for figure in CLASS_FIGURES:
        figures |= _with_ends(figure, getattr(of, figure))
    return figures | {"auc_error": of.auc_error}


def _with_ends(name: str, estimate: Estimate) -> dict[str, float]:
    return {name: estimate.value, f"{name}_low": estimate.low, f"{name}_high": estimate.high}
