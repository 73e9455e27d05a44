"""Sent predictions: what was answered to a record, as far as the topic `predictions` still has it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from streamapp.offline.explaining import Explanation
from topics.records import RawRecords

Comparison = Literal["equal", "different", "not-found"]


def compare(explanation: Explanation, predictions: Iterable[RawRecords]) -> Comparison:
    """Return whether an answer among the predictions of its partition is the one that is explained.

    At least once an instance may have been answered twice: one answer that is equal is enough.
    """
    result: Comparison = "not-found"
    if not explanation.answers or explanation.key is None:
        return result
    key = explanation.key.encode()
    for raw in predictions:
        for of, value in zip(raw.keys, raw.values, strict=True):
            same = explanation.same_as(value) if of == key and value else None
            if same:
                return "equal"
            if same is False:
                result = "different"
    return result
