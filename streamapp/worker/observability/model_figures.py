"""Figures of models: the newest evaluation of each model as gauges of Prometheus.

The name of a gauge is `grove_` and the name of a member of an evaluation (docs/records.md), or `grove_class_`
and the name of a figure of a class, or `grove_challenge_` and the name of a figure of a challenge. A figure
that is not defined has no sample.

The samples of a worker are bounded: MODELS_MAX models with CLASSES_MAX classes each have figures. The models
that were evaluated first have the places, until their partition leaves the worker, or they are deleted, reset
or replaced by an import or by their challengers.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import islice
from typing import Final, NamedTuple

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from streamapp.worker.task.effects.effects import Effects
from topics.columns.records import EvaluationRecord, RawRecords

MODELS_MAX: Final = 20
"""Models that have figures, at most."""
CLASSES_MAX: Final = 10
"""Classes of a model that have figures, at most: those with most labels."""

WINDOWED: Final = "grove_accuracy_ratio"
BASIS: Final = "grove_measured_records"
FIGURES: Final = {
    "accuracy_powered": "Accuracy over all records, by labels and by the shares of all answers",
    "kappa_unbiased": "Cohen's kappa",
    "balanced_accuracy": "Mean recall of the classes",
    "log_loss": "Log-loss in nats",
    "brier": "Brier score: 0 to 1 with two classes, else 0 to 2",
    "auc": "Mean area under the ROC curves of the classes, each against the others",
    "calibration_error": "Expected calibration error of the class answered",
    "coverage": "Share of the labels that were in their conformal sets",
}
"""Members of an evaluation that have an interval → their meaning."""
SINGLE: Final = {"grove_set_size": "Mean number of classes in a conformal set, over all answers"}
"""Metrics of figures without an interval → their meaning."""
BAND: Final = {
    "grove_accuracy_always_low": "Lower end of a band of the accuracy that holds at all times together",
    "grove_accuracy_always_high": "Upper end of a band of the accuracy that holds at all times together",
}
FORECASTS: Final = {
    "accuracy_forecast": "Accuracy over all records to expect after 500 more labels",
    "gain_forecast": "Gain of accuracy to expect by 500 more labels",
}
"""Members of an evaluation that have a band of 90 % → their meaning."""
ADVICE: Final = "grove_label_advice"
ADVICES: Final = ("stop", "go on", "ask again after drift")
CLASS_FIGURES: Final = {
    "precision": "Share of the predictions of a class that are right",
    "recall": "Share of the labels of a class that are predicted",
    "f1": "Harmonic mean of precision and recall of a class",
    "auc": "Area under the ROC curve of a class against the others",
}
"""Members of the figures of a class that have an interval → their meaning."""
CHALLENGE: Final = {
    "difference": "Accuracy of the challenger less that of the model over all records",
    "low": "Lower bound of this difference that holds at all times together",
    "high": "Upper bound of this difference that holds at all times together",
    "labels": "Labels by which the challenger was compared with the model",
}
"""Figures of a challenge → their meaning."""
ENDS: Final = {"low": "Lower", "high": "Upper"}

BEGINS_AGAIN: Final = frozenset({"deleted", "reset", "imported", "promoted"})
"""Events that end the evaluation of a model."""
CHALLENGE_ENDS: Final = ("promoted", "dropped", "undecided")
"""Events that end the challenge of a model."""


Names = tuple[str, ...]
"""Model key, and the name of a class or advice if the metric has one."""


class Kept(NamedTuple):
    """The newest evaluation of a model, and the partition of the model."""

    partition: int
    evaluation: EvaluationRecord


class ModelFigures(Collector):
    """The newest evaluations of the models of a worker; a scrape reads them in another thread."""

    def __init__(self) -> None:
        self._kept: dict[str, Kept] = {}  # by model key as text

    def take(self, raw: RawRecords, effects: Effects) -> None:
        """Keep the evaluations of a run; drop those of models that were deleted, reset or replaced in it.

        The figures of a challenge are dropped when it ends: the next evaluation comes many labels later.
        """
        ended: dict[str, int] = {}  # model key → record at which its former evaluation ended
        compared: dict[str, int] = {}  # model key → record at which its challenge ended
        for record, event, key in effects.happened:
            name = _text(key or raw.keys[record])
            if event.event in BEGINS_AGAIN:
                self._kept.pop(name, None)
                ended[name] = record
            if event.event in CHALLENGE_ENDS:
                compared[name] = record
                if name in self._kept:
                    self._kept[name] = _unchallenged(self._kept[name])
        for record, evaluation, key in effects.evaluations:
            name = _text(key or raw.keys[record])
            has_place = name in self._kept or len(self._kept) < MODELS_MAX
            if has_place and record >= ended.get(name, 0):
                kept = Kept(raw.partition, evaluation)
                self._kept[name] = kept if record >= compared.get(name, 0) else _unchallenged(kept)

    def drop(self, partition: int) -> None:
        """Drop the evaluations of a partition that leaves the worker."""
        self._kept = {name: kept for name, kept in self._kept.items() if kept.partition != partition}

    def collect(self) -> Iterator[Metric]:
        evaluations: dict[Names, EvaluationRecord] = {
            (name,): kept.evaluation for name, kept in list(self._kept.items())
        }
        yield _gauge(
            WINDOWED,
            f"Windowed prequential accuracy, of the first {MODELS_MAX} models evaluated",
            {model: evaluation.accuracy_windowed for model, evaluation in evaluations.items()},
        )
        yield _gauge(
            BASIS,
            "1: the figures with intervals represent all records; 0: the labels that a strategy chose",
            {
                model: float(evaluation.measured == "records")
                for model, evaluation in evaluations.items()
                if evaluation.measured is not None
            },
        )
        yield _gauge(
            ADVICE,
            "1: the advice on asking for more labels; 0: the other two",
            {
                (*model, advice): float(evaluation.advice == advice)
                for model, evaluation in evaluations.items()
                if evaluation.advice is not None
                for advice in ADVICES
            },
            "advice",
        )
        of_models = _with_ends("grove_", FIGURES) | SINGLE | BAND | _with_ends("grove_", FORECASTS, 90)
        for metric, meaning in of_models.items():
            member = metric.removeprefix("grove_")
            values = {model: getattr(evaluation, member) for model, evaluation in evaluations.items()}
            yield _gauge(metric, meaning, values)
        challenges = {
            model: evaluation.challenge
            for model, evaluation in evaluations.items()
            if evaluation.challenge is not None
        }
        for member, meaning in CHALLENGE.items():
            values = {
                model: math.nan if figures[member] is None else float(figures[member])
                for model, figures in challenges.items()
            }
            yield _gauge(f"grove_challenge_{member}", meaning, values)
        of_classes: dict[Names, dict[str, float]] = {
            (*model, class_name): figures
            for model, evaluation in evaluations.items()
            for class_name, figures in islice((evaluation.per_class or {}).items(), CLASSES_MAX)
        }
        weights = {"grove_class_labels": "Labels of a class with which predictions were evaluated, by weight"}
        for metric, meaning in (weights | _with_ends("grove_class_", CLASS_FIGURES)).items():
            member = metric.removeprefix("grove_class_")
            values = {names: figures[member] for names, figures in of_classes.items()}
            yield _gauge(metric, meaning, values, "class")


def _unchallenged(kept: Kept) -> Kept:
    """Return an evaluation without the figures of its challenge, which has ended."""
    return kept._replace(evaluation=replace(kept.evaluation, challenge=None))


def _with_ends(prefix: str, meanings: Mapping[str, str], percent: int = 95) -> dict[str, str]:
    """Return the metrics of figures and of the ends of their intervals, with their help texts."""
    metrics: dict[str, str] = {}
    for member, meaning in meanings.items():
        metrics[f"{prefix}{member}"] = meaning
        for end, which in ENDS.items():
            metrics[f"{prefix}{member}_{end}"] = (
                f"{which} end of the {percent} % interval of {prefix}{member}"
            )
    return metrics


def _gauge(name: str, meaning: str, values: Mapping[Names, float], *labels: str) -> GaugeMetricFamily:
    family = GaugeMetricFamily(name, f"{meaning} (model state).", labels=("model_key", *labels))
    for label_values, value in values.items():
        if not math.isnan(value):
            family.add_metric(label_values, value)
    return family


def _text(key: bytes | None) -> str:
    return (key or b"").decode("utf-8", "replace")
