"""How a model does now, in words: figures with their intervals, or why there are none."""

from __future__ import annotations

from typing import Any

import pytest

from streamapp.web.watch.state_words import (
    accuracy_tile,
    challenger_tile,
    drift_tile,
    labels_tile,
    trend_tile,
)
from streamapp.web.watch.watched import ModelRow

HOUR_MS = 3_600_000


def model(**more: Any) -> ModelRow:
    row: dict[str, Any] = {
        "key": "k",
        "partition": 1,
        "learner": "h-tree",
        "state": "",
        "records": 1000,
        "labels": 200,
        "accuracy": 0.7,
        "splits": 3,
        "drifts": 0,
        "last_ms": 0,
        "unbiased": 0.9,
        "low": 0.875,
        "high": 0.921,
        "drift_ms": 0,
    }
    return ModelRow(**(row | more))


def test_the_accuracy_has_its_interval_or_the_reason_why_there_is_none() -> None:
    figure, words = accuracy_tile(model())
    assert figure == "90.0 %"
    assert "87.5 to 92.1 % with 95 % confidence" in words
    figure, words = accuracy_tile(model(unbiased=None))
    assert figure == "70.0 %"
    assert "no label was drawn with a known probability" in words
    figure, words = accuracy_tile(model(unbiased=None, accuracy=None))
    assert (figure, words.partition(":")[0]) == ("–", "There is none yet at 200 labels")


@pytest.mark.parametrize(
    ("newest", "verdict"),
    [([0.8, 0.78, 0.82], "Falls"), ([0.99, 0.98, 1.0], "Rises"), ([0.91, 0.87, 0.95], "Steady")],
)
def test_a_trend_is_a_change_of_bands_that_do_not_meet(newest: list[float], verdict: str) -> None:
    curve: dict[str, Any] = {"labels": [[0, 100], [100, 200], [200, 300]]}
    curve["accuracy"] = [[0.5, 0.4, 0.6], [0.9, 0.86, 0.94], newest]
    tile = trend_tile([], {"learning_curve": curve})
    assert tile.figure == verdict
    assert "at labels 200 to 300, before 90.0 % (86.0 to 94.0) at labels 100 to 200" in tile.words


def test_without_intervals_only_a_large_difference_is_a_trend_and_the_words_say_so() -> None:
    points = [{"labels": at, "accuracy_windowed": 0.9 if at <= 60 else 0.7} for at in range(20, 121, 20)]
    tile = trend_tile(points, None)
    assert tile == ("Falls", "70.0 % on recent labels, 90.0 % at 60 labels; no interval is known.")
    assert trend_tile(points[:3], None).figure == "Steady"
    assert trend_tile(points[:1], None).figure == "–"
    assert trend_tile([], {"learning_curve": {"labels": [[0, 9]], "accuracy": [[1, 1, 1]]}}).figure == "–"


def test_the_newest_drift_is_told_with_the_reaction() -> None:
    assert drift_tile(model(), None, 0).figure == "No drift"
    event = {"detail": {"detector": "ddm", "error_rate": 0.31, "action": "new tree"}}
    tile = drift_tile(model(drifts=2, drift_ms=HOUR_MS), event, 3 * HOUR_MS)
    assert tile.figure == "2 drifts"
    assert "2 h ago (1970-01-01 01:00:00 UTC): ddm at error rate 31.0 %, then new tree." in tile.words


def test_an_alarm_of_inputs_is_told_with_the_inputs() -> None:
    moved = [{"kind": "feature", "feature": "amount", "ks": 0.4, "psi": 1.2}]
    detail = {"level": "input", "detector": "input", "action": "none", "inputs": moved, "moved": 3}
    tile = drift_tile(model(drifts=1, drift_ms=HOUR_MS), {"detail": detail}, 3 * HOUR_MS)
    assert "input, inputs moved: amount (KS 0.4, PSI 1.2) and 2 more, then none." in tile.words
    assert "error rate" not in tile.words


def test_labels_are_told_with_the_ends_of_their_requests() -> None:
    newest = {"asked": 100, "records": 1000, "answered": 80, "declined": 5, "expired": 5, "outstanding": 10}
    assert labels_tile(model(), newest) == (
        "200 labels",
        "Requested for 100 of 1,000 records (10.0 %): 80 answered, 5 declined, 5 expired, 10 outstanding.",
    )
    assert "has requested none" in labels_tile(model(), {"records": 10}).words
    assert "no evaluation" in labels_tile(model(labels=1), None).words


def test_a_challenger_is_told_by_its_learner() -> None:
    assert challenger_tile(None).figure == "None"
    challenge = {"learner": "arf", "labels": 10, "records": 20, "disagreements": 3, "decision": "open"}
    figure, words = challenger_tile({"challenge": challenge})
    assert figure == "arf"
    assert "3 of 20 answers differ" in words
