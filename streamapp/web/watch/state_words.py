"""State words: how a model does now, as the tiles of its page say it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from streamapp.web.formatting import challenge_in_words, cut, inputs_in_words, number, share
from streamapp.web.layout.times import exact, relative
from streamapp.web.watch.model_words import accuracy_in_words
from streamapp.web.watch.watched import ModelRow

Evaluation = Mapping[str, Any]

CLEAR: Final = 0.05
"""Without intervals, a difference of recent accuracies from this on is a rise or a fall."""


class Tile(NamedTuple):
    """A figure, and the words that belong to it."""

    figure: str
    words: str


def accuracy_tile(model: ModelRow) -> Tile:
    """Return the unbiased accuracy of a model with its interval, or why there is none yet."""
    if model.unbiased is None:
        if model.accuracy is None:
            return Tile("–", f"There is {accuracy_in_words(model)}.")
        return Tile(
            share(model.accuracy),
            "On requested labels alone, which may be the hard ones. There is no figure over all records: no "
            "label was drawn with a known probability; evaluation.share of the spec draws some.",
        )
    if model.low is None or model.high is None:
        return Tile(share(model.unbiased), "Estimated over all records, without an interval.")
    interval = f"{model.low * 100:.1f} to {model.high * 100:.1f} %"
    return Tile(share(model.unbiased), f"Estimated over all records; {interval} with 95 % confidence.")


def trend_tile(points: Sequence[Evaluation], newest: Evaluation | None) -> Tile:
    """Return whether the accuracy rises or falls, and the figures that show it.

    A learning curve has bands of 90 %: only bands that do not meet show a change. Otherwise the recent
    accuracy is compared with the one at half of the labels.
    """
    curve = (newest or {}).get("learning_curve")
    if curve is not None and len(curve["labels"]) >= 2:
        (before, after), (ranges_before, ranges_after) = curve["accuracy"][-2:], curve["labels"][-2:]
        verdict = "Falls" if after[2] < before[1] else "Rises" if after[1] > before[2] else "Steady"
        return Tile(
            verdict,
            f"{_banded(after)} at labels {_range(ranges_after)}, before {_banded(before)} at labels "
            f"{_range(ranges_before)}.",
        )
    recent = [point for point in points if isinstance(point.get("accuracy_windowed"), int | float)]
    if len(recent) < 2:
        return Tile("–", "Not known yet: a trend needs two evaluations.")
    last = recent[-1]
    then = min(recent[:-1], key=lambda point: abs(point["labels"] - last["labels"] / 2))
    difference = last["accuracy_windowed"] - then["accuracy_windowed"]
    verdict = "Falls" if difference <= -CLEAR else "Rises" if difference >= CLEAR else "Steady"
    return Tile(
        verdict,
        f"{share(last['accuracy_windowed'])} on recent labels, {share(then['accuracy_windowed'])} at "
        f"{number(then['labels'])} labels; no interval is known.",
    )


def _banded(figures: Sequence[float]) -> str:
    value, low, high = figures
    return f"{share(value)} ({low * 100:.1f} to {high * 100:.1f})"


def _range(labels: Sequence[float]) -> str:
    return f"{number(labels[0])} to {number(labels[1])}"


def drift_tile(model: ModelRow, newest: Mapping[str, Any] | None, now: int) -> Tile:
    """Return the number of drift alarms, and the newest one; newest: its event, if it is still stored."""
    if not model.drifts:
        return Tile("No drift", "No detector has reported a drift of this model.")
    figure = f"{model.drifts:,} drift{'' if model.drifts == 1 else 's'}"
    words = f"The newest {relative(model.drift_ms, now)} ({exact(model.drift_ms)})"
    if newest is not None:
        detail = newest["detail"]
        words += f": {cut(str(detail.get('detector')))}"
        if detail.get("level") == "input":
            words += f", inputs moved: {inputs_in_words(detail)}"
        else:
            words += f" at error rate {share(detail.get('error_rate'))}"
        words += f", then {cut(str(detail.get('action')))}"
    return Tile(figure, f"{words}.")


def labels_tile(model: ModelRow, newest: Evaluation | None) -> Tile:
    """Return the number of labels, and what became of the requests for labels."""
    figure = f"{model.labels:,} label{'' if model.labels == 1 else 's'}"
    if newest is None:
        return Tile(figure, f"of {number(model.records)} records; no evaluation has counted requests yet.")
    asked, records = newest.get("asked") or 0, newest.get("records") or 0
    if not asked:
        return Tile(figure, f"of {number(records)} records; the model has requested none.")
    of = f" ({share(asked / records)})" if records else ""
    ends = ", ".join(
        f"{number(newest.get(name) or 0)} {name}"
        for name in ("answered", "declined", "expired", "outstanding")
    )
    return Tile(figure, f"Requested for {number(asked)} of {number(records)} records{of}: {ends}.")


def challenger_tile(newest: Evaluation | None) -> Tile:
    """Return how a challenger compares with the model."""
    challenge = (newest or {}).get("challenge")
    if not isinstance(challenge, dict):
        return Tile("None", "'grove models challenge' lets another learner answer the same records.")
    return Tile(cut(str(challenge.get("learner"))), f"{cut(challenge_in_words(challenge), 400)}.")
