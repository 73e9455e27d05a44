"""The annotator model: close to the batch estimate, bounded, and the same for equal logs."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from streamapp.people import dawid_skene
from streamapp.people.dawid_skene import (
    ACCURACY,
    ANNOTATORS_MAX,
    CLASSES_MAX,
    OVERALL,
    RECENT_MAX,
    STRENGTH,
    AnnotatorModel,
)
from tests.unit.streamapp.people.crowds import CASES, Record, batch, crowd

GOLDEN = json.loads((Path(__file__).parents[3] / "golden" / "crowds.json").read_text(encoding="utf-8"))
CROWDS = [(2, [1.0, 1.0]), (2, [9.0, 1.0]), (4, [4.0, 3.0, 2.0, 1.0])]


def settled(records: list[Record]) -> tuple[AnnotatorModel, list[dict[str, float]]]:
    model = AnnotatorModel()
    return model, [model.settle(record.answers) for record in records]


def best(probabilities: dict[str, float]) -> str:
    return max(sorted(probabilities), key=lambda name: probabilities[name])


@pytest.mark.parametrize(("n_classes", "shares"), CROWDS)
def test_the_stream_comes_close_to_the_batch_estimate(n_classes: int, shares: list[float]) -> None:
    """Seeds 1 to 8: at most 0.014 more errors; matrices at most 0.075 apart, with a rare class 0.2."""
    records = crowd(5, 800, n_classes, shares)
    model, _ = settled(records)
    posterior, confusion = batch(records, n_classes)
    truth = np.array([int(record.truth[1:]) for record in records])
    n_wrong = sum(best(model.posterior(record.answers)) != record.truth for record in records)
    n_batch_wrong = int((posterior.argmax(1) != truth).sum())
    assert n_wrong - n_batch_wrong <= 0.014 * len(records)
    order = [model.classes.index(f"c{label}") for label in range(n_classes)]
    for annotator, expected in confusion.items():
        estimate = np.array(model.confusion(annotator))[np.ix_(order, order)]
        assert np.abs(estimate - expected).mean() < 0.1, annotator


@pytest.mark.parametrize("case", CASES)
def test_the_stream_comes_close_to_the_estimate_of_crowd_kit(case: str) -> None:
    """Crowd-kit's estimate has no prior, and its matrices of rare classes are noisier than ours."""
    records = crowd(*CASES[case])
    model, _ = settled(records)
    labels = [best(model.posterior(record.answers)) for record in records]
    same = [ours == theirs for ours, theirs in zip(labels, GOLDEN[case]["labels"], strict=True)]
    assert sum(same) > 0.95 * len(same)
    distances = []
    for annotator, rows in GOLDEN[case]["confusion"].items():
        estimate = model.confusion(annotator)
        assert estimate is not None
        for true, row in rows.items():
            ours_row = estimate[model.classes.index(true)]
            distances += [abs(ours_row[model.classes.index(label)] - p) for label, p in row.items()]
    assert sum(distances) / len(distances) < 0.06


@pytest.mark.parametrize(("n_classes", "shares"), CROWDS)
def test_labels_of_a_crowd_with_spammers_are_better_than_those_of_the_majority(
    n_classes: int, shares: list[float]
) -> None:
    records = crowd(7, 800, n_classes, shares)
    _, posteriors = settled(records)
    n_wrong = sum(best(p) != record.truth for p, record in zip(posteriors, records, strict=True))
    n_majority_wrong = sum(
        Counter(record.answers.values()).most_common(1)[0][0] != record.truth for record in records
    )
    assert n_wrong < 0.9 * n_majority_wrong
    sure = [(max(p.values()), best(p) == record.truth) for p, record in zip(posteriors, records, strict=True)]
    assert abs(np.mean([p for p, _ in sure]) - np.mean([right for _, right in sure])) < 0.05


def test_spammers_and_adversaries_are_told_from_people_who_answer() -> None:
    model, _ = settled(crowd(3, 600, 2, [1.0, 1.0]))
    accuracies = {name: model.accuracy(name) or 0.0 for name in model.counts}
    assert all(accuracies[f"a{n:02}"] > 0.6 for n in range(4, 20))
    assert all(accuracies[f"a{n:02}"] < 0.6 for n in range(4))
    assert model.posterior({"a02": "c0"})["c1"] > 0.6, "an adversary's answer counts for the other class"


@pytest.mark.parametrize("seed", range(1, 5))
def test_a_class_that_spammers_always_give_does_not_take_over(seed: int) -> None:
    records = crowd(seed, 400, 2, [1.0, 1.0], ["constant"] * 4)
    model, posteriors = settled(records)
    n_wrong = sum(best(p) != record.truth for p, record in zip(posteriors, records, strict=True))
    n_majority_wrong = sum(
        Counter(record.answers.values()).most_common(1)[0][0] != record.truth for record in records
    )
    assert n_wrong < 1.25 * n_majority_wrong
    assert sum((model.accuracy(f"a{n:02}") or 0.0) > 0.6 for n in range(4, 20)) >= 14


def test_a_first_answer_has_the_prior_and_a_declined_one_is_no_evidence() -> None:
    model = AnnotatorModel()
    assert model.posterior({"ann": "a"}) == {"a": 1.0}
    assert model.posterior({"ann": "a"}, {"a": 0.5, "b": 0.5}) == pytest.approx(
        {"a": ACCURACY, "b": 1 - ACCURACY}
    )
    before = model.posterior({}, {"a": 0.5, "b": 0.5})
    assert model.settle({"ann": None, "bob": None}, {"a": 0.5, "b": 0.5}) == before
    assert (model.counts, model.classes) == ({}, [])


def test_gold_answers_are_counts_of_a_known_class() -> None:
    model = AnnotatorModel()
    for label in ["b"] * 6 + ["a"] * 2 + [None]:
        model.learn_gold("ann", "a", label)
    rows = model.confusion("ann")
    assert rows is not None
    a, b = model.classes.index("a"), model.classes.index("b")
    overall = ((2 + OVERALL * ACCURACY) / (8 + OVERALL) + ACCURACY) / 2
    assert rows[a][b] == pytest.approx((6 + STRENGTH * (1 - overall)) / (8 + STRENGTH))
    assert model.posterior({"ann": "b"})["a"] > model.posterior({"bob": "b"})["a"]


def test_the_tree_counts_as_far_as_it_was_right() -> None:
    good, bad = AnnotatorModel(), AnnotatorModel()
    for record in crowd(9, 300, 2, [1.0, 1.0]):
        other = "c1" if record.truth == "c0" else "c0"
        good.settle(record.answers, {record.truth: 0.9, other: 0.1})
        bad.settle(record.answers, {"c0": 0.9, "c1": 0.1})
    shares = {"c0": 0.1, "c1": 0.9}
    assert good.tree_weight() > 0.4 > 0.15 > bad.tree_weight()
    alone = good.posterior({"new": "c0"})["c1"]
    assert good.posterior({"new": "c0"}, shares)["c1"] > alone + 0.1
    assert bad.posterior({"new": "c0"}, shares)["c1"] == pytest.approx(alone, abs=0.05)


def test_a_model_that_is_written_and_read_goes_on_to_the_bit() -> None:
    records = crowd(11, RECENT_MAX + 60, 3, [1.0, 1.0, 1.0])
    whole, _ = settled(records)
    model = AnnotatorModel()
    for record in records:
        model = dawid_skene.read(json.loads(json.dumps(dawid_skene.written(model))))
        model.settle(dict(reversed(record.answers.items())), None)
    assert dawid_skene.written(model) == dawid_skene.written(whole)
    assert list(model.counts) == list(whole.counts)


def test_memory_is_bounded_by_classes_annotators_and_requests() -> None:
    model = AnnotatorModel()
    for number in range(CLASSES_MAX):
        model.settle({"ann": f"c{number}"})
    assert model.settle({"ann": "one too many"}) == {}
    # A copy with all these classes would have the square of their number for each annotator.
    assert model.settle({"ann": "c0"}, {f"p{number}": 0.0 for number in range(100_000)}) == {}
    model.learn_gold("ann", "gold too many", "c1")
    assert len(model.classes) == CLASSES_MAX
    model = AnnotatorModel()
    for number in range(ANNOTATORS_MAX + RECENT_MAX):
        model.settle({"keen": "a", f"once-{number}": "ab"[number % 2]})
    assert (len(model.counts), len(model.recent)) == (ANNOTATORS_MAX, RECENT_MAX)
    assert "keen" in model.counts and "once-0" not in model.counts
    assert all(count >= 0.0 for rows in model.counts.values() for row in rows for count in row)


def test_probabilities_of_many_answers_stay_probabilities() -> None:
    model, _ = settled(crowd(13, 400, 2, [1.0, 1.0]))
    probabilities = model.posterior({f"a{n:02}": f"c{n % 2}" for n in range(198)})
    assert sum(probabilities.values()) == pytest.approx(1.0)
    assert all(0.0 <= p <= 1.0 for p in probabilities.values())
