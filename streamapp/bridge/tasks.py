"""Tasks and annotations: a label request as Label Studio's task, an annotation as a label."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from streamapp.web.queue.cards import Request

REQUEST, KEY, INSTANCE, PARTITION = "grove_request_id", "grove_key", "grove_instance_id", "grove_partition"
"""Members of a task's data that identify the request of an annotation."""
OURS: Final = (REQUEST, KEY, INSTANCE, PARTITION, "grove_asked_ms", "grove_expires_ms", "grove_strategy")
MODEL: Final = "grove"
INT32, INT64 = 1 << 31, 1 << 63
WHO_MAX: Final = 200
"""Characters of a user's name in a label, at most."""


@dataclass(frozen=True, slots=True)
class Given:
    """A label that an annotator gave in the label tool."""

    annotation: int
    key: bytes
    partition: int
    instance_id: str
    label: str | None  # None: declined
    annotator: str


@dataclass(frozen=True, slots=True)
class Choice:
    """Names of the choices in the project's labelling configuration."""

    from_name: str = "label"
    to_name: str = "record"


def task_of(request: Request, choice: Choice) -> dict[str, Any]:
    """Return the task of a request: its features as data, the model's prediction as a pre-annotation."""
    data: dict[str, Any] = {
        REQUEST: request.request_id,
        KEY: request.key,
        INSTANCE: request.instance_id,
        PARTITION: request.partition,
        "grove_asked_ms": request.asked_ms,
        "grove_expires_ms": request.expires_ms,
        "grove_strategy": request.strategy,
    }
    features = dict(request.features)
    task: dict[str, Any] = {
        "data": data
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
    data = task.get("data")
    if not isinstance(data, dict) or not all(
        isinstance(data.get(name), str) for name in (REQUEST, KEY, INSTANCE)
    ):
        return None
    number, partition = annotation.get("id"), data.get(PARTITION)
    if type(number) is not int or type(partition) is not int or not 0 <= partition < INT32:
        return None
    if not 0 <= number < INT64 or not all(map(_is_text, (data[KEY], data[INSTANCE]))):
        return None
    who = annotation.get("completed_by")
    who = who.get("email") or who.get("id") if isinstance(who, dict) else who
    label = None
    if not annotation.get("was_cancelled"):
        label = _choice_of(annotation.get("result"))
        if label is None:
            return None
    annotator = f"label-studio:{str(who)[:WHO_MAX] if who is not None else '?'}"
    if not _is_text(annotator) or (label is not None and not _is_text(label)):
        return None
    return Given(number, data[KEY].encode(), partition, data[INSTANCE], label, annotator)


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _is_text(text: str) -> bool:
    """Return whether a text can be sent: JSON may contain half a surrogate pair, UTF-8 may not."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


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
