"""Figures of models at `/metrics`: those of the evaluations sent, for a bounded number of models."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from streamapp.worker.observability.metrics import Metrics
from streamapp.worker.observability.model_figures import ADVICES, CHALLENGE, CLASSES_MAX, MODELS_MAX
from streamapp.worker.task.effects.effects import Effects
from tests.topology.partition import ALWAYS, Partition, config, instance
from topics.columns.records import RawRecords

EVERY = 60
ENDS = ("", "_low", "_high")
ONE_ENDED = ("accuracy_always_low", "accuracy_always_high")
OF_MODELS = (
    "accuracy_powered",
    "kappa_unbiased",
    "balanced_accuracy",
    "log_loss",
    "brier",
    "auc",
    "calibration_error",
)
OF_CLASSES = ("precision", "recall", "f1", "auc")

Labels = tuple[tuple[str, str], ...]


class Measured:
    """A partition whose effects are counted as a worker counts them."""

    def __init__(self, **evaluation: Any) -> None:
        spec = ALWAYS | {"evaluation": {"every": EVERY, **evaluation}}
        self.partition, self.metrics = Partition(config(spec)), Metrics()

    def instances(self, labels: Sequence[str], key: str = "m") -> None:
        """Answer and learn instances of one feature that hints at the label."""
        names = sorted(set(labels))
        hints = [names.index(name) + i % 2 for i, name in enumerate(labels)]
        documents = ({"features": {"x": x}, "label": name} for x, name in zip(hints, labels, strict=True))
        self.sent(self.partition.instances(*documents, key=key), "instances", key)

    def control(self, command: str, key: str = "m", **body: Any) -> None:
        self.sent(self.partition.control(command, key=key, **body), "controls", key)

    def sent(self, effects: Effects, source: str, key: str) -> None:
        n = EVERY * 2
        raw = RawRecords(f"t.{source}", 3, list(range(n)), [0] * n, [key.encode()] * n, [b""] * n, [()] * n)
        self.metrics.sent(raw, effects)

    def samples(self) -> dict[str, dict[Labels, float]]:
        """Return the samples of the page: metric → labels → value."""
        found: dict[str, dict[Labels, float]] = {}
        for family in text_string_to_metric_families(generate_latest(self.metrics.registry).decode()):
            for sample in family.samples:
                found.setdefault(sample.name, {})[tuple(sorted(sample.labels.items()))] = sample.value
        return found


def of_models(page: dict[str, dict[Labels, float]]) -> dict[str, dict[Labels, float]]:
    """Return the metrics that have a sample for each model."""
    return {name: values for name, values in page.items() if any("model_key" in dict(at) for at in values)}


def alternating(n: int = 2 * EVERY, names: Sequence[str] = ("a", "b", "b", "c")) -> list[str]:
    return [names[i % len(names)] for i in range(n)]


def test_the_page_has_the_figures_of_the_newest_evaluation() -> None:
    measured = Measured()
    measured.instances(alternating())
    sent = measured.partition.sent["evaluations"][-1].json
    assert sent["labels"] == 2 * EVERY
    page = measured.samples()
    model: Labels = (("model_key", "m"),)
    members = [f"{figure}{end}" for figure in OF_MODELS for end in ENDS] + list(ONE_ENDED)
    shown = {member: page[f"grove_{member}"][model] for member in members}
    assert shown == {member: sent[member] for member in members}
    assert page["grove_accuracy_ratio"] == {model: sent["accuracy_windowed"]}
    assert page["grove_measured_records"] == {model: 1.0}
    of_classes = ["labels", *(f"{figure}{end}" for figure in OF_CLASSES for end in ENDS)]
    assert set(sent["per_class"]) == {"a", "b", "c"}
    for member in of_classes:
        expected = {(("class", name), *model): figures[member] for name, figures in sent["per_class"].items()}
        assert page[f"grove_class_{member}"] == expected, member


def test_the_page_has_the_forecast_and_the_advice() -> None:
    measured = Measured(worth=0.005)
    for _ in range(2):
        measured.instances(alternating())
    sent = measured.partition.sent["evaluations"][-1].json
    page, model = measured.samples(), ("model_key", "m")
    for member in (f"{figure}{end}" for figure in ("accuracy_forecast", "gain_forecast") for end in ENDS):
        assert page[f"grove_{member}"] == {(model,): sent[member]}
    advices = {dict(at)["advice"]: value for at, value in page["grove_label_advice"].items()}
    assert advices == {advice: float(advice == sent["advice"]) for advice in ADVICES}
    assert sum(advices.values()) == 1.0


def test_a_figure_that_is_not_defined_has_no_sample() -> None:
    measured = Measured()
    measured.instances(["a"] * EVERY)
    page = measured.samples()
    assert "grove_auc" not in page, "there are no pairs of two classes"
    assert page["grove_class_recall"] == {(("class", "a"), ("model_key", "m")): 1.0}


def test_a_model_that_keeps_no_measures_shows_its_windowed_accuracy_alone() -> None:
    measured = Measured(per_class=False)
    measured.instances(alternating())
    assert set(of_models(measured.samples())) == {"grove_accuracy_ratio"}


@pytest.mark.parametrize("command", ["delete", "reset", "promote"])
def test_a_model_that_ends_shows_no_figures(command: str) -> None:
    measured = Measured()
    measured.instances(alternating(), key="other")
    measured.instances(alternating())
    if command == "promote":
        measured.control("challenge", spec={"learner": "majority-class", "evaluation": {"every": EVERY}})
    measured.control(command)
    page = measured.samples()
    for metric in ("grove_accuracy_ratio", "grove_kappa_unbiased"):
        assert set(page[metric]) == {(("model_key", "other"),)}
    measured.instances(alternating())
    assert len(measured.samples()["grove_kappa_unbiased"]) == 2, "it is evaluated again"


def test_the_page_has_the_figures_of_a_challenge_until_it_ends() -> None:
    measured = Measured()
    measured.instances(alternating())
    assert not any(f"grove_challenge_{member}" in measured.samples() for member in CHALLENGE)
    measured.control("challenge", spec={"learner": "majority-class"}, warm_up=10, decide="person")
    measured.instances(alternating())
    sent = measured.partition.sent["evaluations"][-1].json["challenge"]
    assert sent["labels"] > 0
    page = measured.samples()
    for member in CHALLENGE:
        assert page[f"grove_challenge_{member}"] == {(("model_key", "m"),): sent[member]}, member
    measured.control("drop")
    page = measured.samples()
    assert not any(f"grove_challenge_{member}" in page for member in CHALLENGE)
    assert "grove_kappa_unbiased" in page, "the model goes on"


def test_a_challenge_that_ends_after_the_last_evaluation_of_a_run_shows_no_figures() -> None:
    """The rule decides in event time, so that evaluation and end may come from the records of one run."""

    def challenged() -> Measured:
        measured = Measured(every=10)
        measured.instances(alternating())
        measured.control("challenge", spec={"learner": "majority-class"}, warm_up=10)
        return measured

    rows = [
        instance({"features": {"x": n % 4}, "label": "abbc"[n % 4]}, at=(n + 1) * 100)
        for n in range(4 * EVERY)
    ]
    twin = challenged().partition
    end = next(n for n, row in enumerate(rows) if twin.feed(row).happened)
    measured = challenged()
    effects = measured.partition.feed(*rows[: end + 1])
    assert [(at, event.event) for at, event, _ in effects.happened] == [(end, "dropped")]
    last, evaluation, _ = effects.evaluations[-1]
    assert last < end and evaluation.challenge is not None
    measured.sent(effects, "instances", "m")
    assert "grove_challenge_difference" not in measured.samples()


def test_ends_of_challenges_are_counted_by_outcome() -> None:
    measured = Measured()
    measured.instances(alternating())
    for command in ("drop", "drop", "promote"):
        measured.control("challenge", spec={"learner": "majority-class"})
        measured.control(command)
    ended = measured.samples()["grove_challenges_ended_total"]
    assert {dict(at)["outcome"]: n for at, n in ended.items()} == {
        "promoted": 1,
        "dropped": 2,
        "undecided": 0,
    }


def test_a_partition_that_leaves_takes_its_figures_along() -> None:
    measured = Measured()
    measured.instances(alternating())
    measured.metrics.figures.drop(2)
    assert "grove_kappa_unbiased" in measured.samples()
    measured.metrics.figures.drop(3)
    assert "grove_kappa_unbiased" not in measured.samples()


def test_the_number_of_samples_is_bounded() -> None:
    measured = Measured(worth=0.005)
    for model in range(MODELS_MAX + 2):
        measured.instances([f"c{i % (CLASSES_MAX + 5):02}" for i in range(2 * EVERY)], key=f"m{model:02}")
    page = measured.samples()
    counts = [len(values) for values in of_models(page).values()]
    assert max(counts) == MODELS_MAX * CLASSES_MAX
    first = {(("model_key", f"m{model:02}"),) for model in range(MODELS_MAX)}
    assert set(page["grove_kappa_unbiased"]) == first
    assert sum(counts) <= 3440 - MODELS_MAX * len(CHALLENGE), "as docs/operations.md has it"
    measured.control("delete", key="m00")
    measured.instances(alternating(), key="m21")
    assert (("model_key", "m21"),) in measured.samples()["grove_kappa_unbiased"], "a place is free again"


def test_names_of_classes_come_through_the_page_as_they_are() -> None:
    measured = Measured()
    names = ['a"b', "c\\d", "e\nf", "g}h,", "ÿ"]
    measured.instances(alternating(names=names), key='k"\\\n{')
    assert set(measured.samples()["grove_class_recall"]) == {
        (("class", name), ("model_key", 'k"\\\n{')) for name in names
    }
