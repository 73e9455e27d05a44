"""Tasks and annotations: a label request as Label Studio's task, an annotation as a label."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from streamapp.bridge.label_tool import ANNOTATOR_MAX, Given, is_text, members_of, place_of
from streamapp.web.queue.cards import Request

MODEL: Final = "grove"
INT64: Final = 1 << 63


@dataclass(frozen=True, slots=True)
class Choice:
    """Names of the choices in the project's labelling configuration."""

    from_name: str = "label"
    to_name: str = "record"


def task_of(request: Request, choice: Choice) -> dict[str, Any]:
    """Return the task of a request: its features as data, the model's prediction as a pre-annotation."""
    features = dict(request.features)
    task: dict[str, Any] = {
        "data": members_of(request)
        | {"record": [{"feature": str(name), "value": value} for name, value in features.items()]}
    }
    if request.prediction is not None:
        result = {
            "from_name": choice.from_name,
            "to_name": choice.to_name,
            "type": "choices",
            "value": {"choices": [request.prediction]},
        }
        # The Data Manager sorts by the score, lowest first, so that the most useful request comes first.
        score = 0.0 if math.isnan(request.utility) else 1.0 - min(max(request.utility, 0.0), 1.0)
        task["predictions"] = [{"model_version": MODEL, "score": score, "result": [result]}]
    return task


def given_by(task: Mapping[str, Any], annotation: Mapping[str, Any]) -> Given | None:
    """Return the label of an annotation; None: the task is not ours, or no class was chosen yet.

    A cancelled annotation (skipped in the label tool) is a declined label.
    """
    number, place = annotation.get("id"), place_of(task.get("data"))
    if place is None or type(number) is not int or not 0 <= number < INT64:
        return None
    who = annotation.get("completed_by")
    who = who.get("email") or who.get("id") if isinstance(who, dict) else who
    label = None
    if not annotation.get("was_cancelled"):
        label = _choice_of(annotation.get("result"))
        if label is None:
            return None
    annotator = f"label-studio:{str(who)[:ANNOTATOR_MAX] if who is not None else '?'}"
    if not is_text(annotator) or (label is not None and not is_text(label)):
        return None
    return Given(number, *place, label, annotator)


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _choice_of(result: Any) -> str | None:
    """Return the class that was chosen; None if there is not exactly one."""
    choices = [
        choice
        for region in _list(result)
        if isinstance(region, dict)
        and region.get("type") == "choices"
        and isinstance(region.get("value"), dict)
        for choice in _list(region["value"].get("choices"))
    ]
    return choices[0] if len(choices) == 1 and isinstance(choices[0], str) and choices[0] else None
